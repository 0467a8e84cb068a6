import { expect } from 'vitest'

import type { RunId } from '../../src/base/ids.ts'
import { runEventsAfter } from '../../src/events/event.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { Store } from '../../src/store/store.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { addWorker, claim, submitted } from '../support/world.ts'
import { counted, increment } from './support.ts'

/** No test needs nearly so many; a loop that gets here would otherwise never end. */
const MOST_ROUNDS = 20_000

/**
 * Callers that count and callers that bring runs to their end, all at once, until told to stop; and afterwards the books
 * are checked: what was answered happened once, what was refused did not, and nothing else did.
 */
export class Load {
  readonly #stores: readonly Store[]
  readonly counts = new Map<string, Settled[]>()
  readonly runs: RunId[] = []
  /** Commits that were acknowledged, as a sign of life. */
  done = 0

  constructor(stores: readonly Store[]) {
    this.#stores = stores
  }

  /** Until `enough` says so. */
  async work(enough: () => boolean, callers = 4): Promise<void> {
    const each = this.#stores.flatMap((store, at) =>
      Array.from({ length: callers }, (_, caller) =>
        caller % 4 === 3
          ? this.#finishRuns(store, enough)
          : this.#count(store, caller === 0 ? 'shared' : `counter-${at}-${caller}`, enough),
      ),
    )
    await Promise.all(each)
  }

  async #count(store: Store, scope: string, enough: () => boolean): Promise<void> {
    const answers = this.counts.get(scope) ?? []
    this.counts.set(scope, answers)
    for (let round = 0; !enough() && round < MOST_ROUNDS; round++) {
      answers.push(await settled(store.apply(increment, scope)))
      this.done += 1
    }
  }

  /** Each step is a surprise if it meets its own trace: `existing`, `reconciled`. */
  async #finishRuns(store: Store, enough: () => boolean): Promise<void> {
    const workerId = await addWorker(store)
    for (let round = 0; !enough() && round < MOST_ROUNDS; round++) {
      const { id } = await submitted(store)
      // A claim passes over a row that is locked, be it by its own first try on a connection that has not died yet.
      const { run, attempt } = await until(`${id} is claimed`, () => claim(store, workerId, {}, id))
      const ref = { id: attempt.id, runId: id, fence: run.fence }
      const finish = await store.apply(finishRun, ref, { state: 'succeeded', result: { round } })
      if (finish.kind !== 'finished') throw new Error(`${run.id} was ${finish.kind}`)
      this.runs.push(run.id)
      this.done += 1
    }
  }
}

/** How many answers there were; fails if any of them was wrong. */
export async function expectBalanced({ counts, runs }: Load, store: Store): Promise<number> {
  for (const [name, answers] of counts) {
    const numbers = answers.filter((each) => typeof each === 'number')
    const refused = answers.filter((each) => typeof each !== 'number')
    expect(refused, `${name}: nobody was refused`).toEqual([])
    expect(new Set(numbers).size, `${name}: every number was given once`).toBe(numbers.length)
    expect(await store.read(counted, name), `${name}: what was answered is what happened`).toBe(numbers.length)
  }
  for (const id of runs) {
    const events = (await store.read(runEventsAfter, id, 0, 100)).map(({ type }) => type)
    expect(events).toEqual(['run.queued', 'run.started', 'run.finished'])
  }
  await assertInvariants(store)
  return [...counts.values()].reduce((sum, answers) => sum + answers.length, runs.length)
}

type Settled = number | { readonly code: unknown; readonly message: string }

const settled = (promise: Promise<number>): Promise<Settled> =>
  promise.catch((error: unknown) => ({ code: (error as { code?: unknown }).code, message: String(error) }))
