import { AsyncLocalStorage } from 'node:async_hooks'

/** A run of a function of this program, or just the id of the run whose tool is at work. */
type Around = string | { readonly id: string }

/*
 * A function that is a tool shares its process with the program around it. Whatever it calls, and whatever that waits for,
 * is inside of the run that called the tool: what it says is no person's decision.
 */
const around = new AsyncLocalStorage<Around>()

/** A tool of a function's run stays inside of that function. */
export function insideOf<T>(run: Around, work: () => T): T {
  const outer = around.getStore()
  return typeof outer === 'object' && outer.id === run ? work() : around.run(run, work)
}

/** The run whose tool is calling, if one is. */
export function runAround(): string | undefined {
  const inside = around.getStore()
  return typeof inside === 'object' ? inside.id : inside
}

/** The function's run that is calling, if one is. */
export function functionAround(): object | undefined {
  const inside = around.getStore()
  return typeof inside === 'object' ? inside : undefined
}
