import { AsyncLocalStorage } from 'node:async_hooks'

/*
 * A function that is a tool shares its process with the program around it. Whatever it calls, and whatever that waits for,
 * is inside of the run that called the tool: what it says is no person's decision.
 */
const around = new AsyncLocalStorage<string>()

export const insideOf = <T>(runId: string, work: () => T): T => around.run(runId, work)

/** The run whose tool is calling, if one is. */
export const runAround = (): string | undefined => around.getStore()
