import { appendFileSync, existsSync, readFileSync } from 'node:fs'

import { z } from 'zod'

import { createRuntime, defineAgent, defineFunction, defineTool, notDone } from '../../src/index.ts'
import type { CallInfo, Runtime } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import type { Dice } from '../simulation/seeded.ts'

/** Shorter than a black hole is noticed, so that some runs change hands. */
const LEASE = '8s'

export interface Effect {
  readonly runId: string
  readonly key: string
  readonly entry: string
}

/** A file that effects are appended to, with nothing of ours in between. */
export class FileLedger {
  readonly #file: string

  constructor(file: string) {
    this.#file = file
  }

  write({ runId, key, entry }: Effect): void {
    appendFileSync(this.#file, `${JSON.stringify({ runId, key, entry })}\n`)
  }

  effects(): Effect[] {
    if (!existsSync(this.#file)) return []
    const lines = readFileSync(this.#file, 'utf8').split('\n').filter(Boolean)
    return lines.map((line) => JSON.parse(line) as Effect)
  }

  timesOf(key: string): number {
    return this.effects().filter((effect) => effect.key === key).length
  }
}

interface Work {
  readonly ledger: FileLedger
  readonly dice: Dice
  /** Whether a write that was cut off can be asked about. */
  readonly probes: boolean
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Takes a moment before its effect and after it. */
async function perform({ ledger, dice }: Work, effect: Effect, signal: AbortSignal): Promise<void> {
  await pause(dice.below(15))
  if (signal.aborted) throw notDone('it was told to stop')
  ledger.write(effect)
  await pause(dice.below(15))
}

const answerOf = ({ ledger }: Work, key: string) =>
  ledger.timesOf(key) > 0 ? ({ outcome: 'done', result: 'in the ledger' } as const) : ({ outcome: 'not_done' } as const)

function writeTool(name: string, work: Work) {
  const described = {
    name,
    description: name,
    effect: 'write',
    input: z.object({ entry: z.string() }),
    async run({ entry }: { readonly entry: string }, signal: AbortSignal, { key, runId }: CallInfo) {
      await perform(work, { runId, key, entry: `${name} ${entry}` }, signal)
      return { entry }
    },
  } as const
  if (!work.probes) return defineTool(described)
  return defineTool({ ...described, probe: (_input, _signal, { key }) => answerOf(work, key) })
}

/** One write, one that a person must allow, and a word at the end; for each message. */
function clerk(work: Work) {
  const calling = (tool: string) => ({ toolCalls: [{ tool, input: { entry: '{{message}}' } }] })
  return defineAgent({
    name: 'clerk',
    model: scriptedModel({ repeat: true, replies: [calling('note'), calling('pay'), { text: 'did {{message}}' }] }),
    system: 'You keep the ledger.',
    tools: [writeTool('note', work), writeTool('pay', work)],
  })
}

/** Two steps. What did not happen is said so, and it goes on. */
function adder(work: Work) {
  return defineFunction<number>('adder', async (run) => {
    const done: string[] = []
    for (const name of ['one', 'two']) {
      const entry = `${name} ${run.input}`
      const step = run.step(
        name,
        ({ key, signal }) => perform(work, { runId: run.id, key, entry }, signal).then(() => name),
        work.probes ? { probe: ({ key }) => answerOf(work, key) } : {},
      )
      done.push(await step.catch((error: unknown) => (run.signal.aborted ? Promise.reject(error) : `not ${name}`)))
    }
    return done
  })
}

/** A program with a worker in it, as its user would write it. */
export async function openOffice(home: string, store: string, work: Work, warnings: string[]): Promise<Runtime> {
  const runtime = await createRuntime({
    home,
    store,
    agents: [clerk(work), adder(work)],
    policy: [{ decision: 'allow' }, { tool: 'pay', decision: 'ask' }],
    lease: LEASE,
    warn: (message) => warnings.push(message),
  })
  await runtime.start()
  return runtime
}
