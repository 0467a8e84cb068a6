import { actionIdOf } from '../../src/actions/step-doubt.ts'
import { sleep } from '../../src/base/clock.ts'
import type { RunId } from '../../src/base/ids.ts'
import type { FunctionBody, FunctionRun, StepOptions } from '../../src/define/function.ts'
import type { Tool, ToolContext } from '../../src/loop/ports.ts'
import type { Ledger } from './ledger.ts'
import type { SimProcess } from './sim-process.ts'

const ENTRY = { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] } as const

interface WriteTool {
  readonly name: string
  readonly repeat: Tool['repeat']
  /** Whether a write that was cut off can be asked about. */
  readonly probes: boolean
}

/** Leaves one line in the ledger, with a moment before and a moment after at which its process may be stopped or die. */
export function writeTool({ name, repeat, probes }: WriteTool, process: SimProcess, ledger: Ledger): Tool {
  const entryOf = (input: unknown) => (input as { entry: string }).entry
  return {
    name,
    description: name,
    inputSchema: ENTRY,
    effect: 'write',
    repeat,
    timeoutMs: 60_000,
    idempotent: false,
    identity: entryOf,
    validate: (input) => ({ input }),
    async perform(input, { runId, key }: ToolContext) {
      await process.gate('before effect')
      ledger.write({ runId, actionId: key, tool: name, entry: entryOf(input) })
      await process.gate('after effect')
      return { kind: 'done', result: `did ${entryOf(input)}` }
    },
    ...(probes
      ? {
          async probe(_input: unknown, { key }: ToolContext) {
            await process.gate('before probe')
            return ledger.holds(key)
              ? ({ kind: 'done', result: 'it is in the ledger' } as const)
              : ({ kind: 'failed', error: 'it is not in the ledger' } as const)
          },
        }
      : {}),
  }
}

export const READ = 'look'
const LOOK_MS = 40

/** Changes nothing, and says who looked. Whoever takes its run over looks again. */
export function readTool(process: SimProcess): Tool {
  return {
    name: READ,
    description: READ,
    inputSchema: ENTRY,
    effect: 'read',
    repeat: 'each',
    timeoutMs: 60_000,
    idempotent: true,
    identity: () => READ,
    validate: (input) => ({ input }),
    async perform() {
      await process.gate('before effect')
      // Long enough for one who was given up to come back meanwhile.
      await sleep(process.clock, LOOK_MS)
      await process.gate('after effect')
      return { kind: 'done', result: process.name }
    },
  }
}

export const STEPS = ['reserve', 'charge', 'confirm'] as const

/** A function of three writes, one of which can be asked about. */
export function stepsBody(process: SimProcess, ledger: Ledger): FunctionBody {
  const write = (runId: string, tool: string) => async () => {
    await process.gate('before effect')
    ledger.write({ runId, actionId: actionIdOf(runId as RunId, tool), tool, entry: 'step' })
    await process.gate('after effect')
    return tool
  }
  const probe = (runId: string, tool: string) => async () => {
    await process.gate('before probe')
    const isThere = ledger.holds(actionIdOf(runId as RunId, tool))
    return isThere ? ({ outcome: 'done', result: tool } as const) : ({ outcome: 'not_done' } as const)
  }
  return async (run: FunctionRun<never>) => {
    for (const name of STEPS) {
      const options: StepOptions = name === 'charge' ? { probe: probe(run.id, name) } : {}
      await run.step(name, write(run.id, name), options)
    }
    return 'all three'
  }
}
