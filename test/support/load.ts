import { newAttemptId, newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, WorkerId } from '../../src/base/ids.ts'
import { runEventsAfter } from '../../src/events/event.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { Store } from '../../src/store/store.ts'
import { counted, increment, incrementBoth } from './counters.ts'
import { violations } from './invariants.ts'
import { until } from './until.ts'
import { LEASE_MS, addWorker, reread, someIdentity, submit } from './world.ts'

/** No test needs nearly so many; a loop that gets here would otherwise never end. */
const MOST_ROUNDS = 20_000

/** What a caller was told instead of an answer. */
export interface Refusal {
  readonly code: unknown
  readonly message: string
}

/** Nobody knows whether it happened: whoever wants to know looks it up. */
const isUnknown = ({ code }: Refusal) => code === 'store/unknown-commit'

/** What a store may answer while its database is not there, or others are in the way. */
const EXPECTED = new Set<unknown>(['store/unknown-commit', 'store/unreachable', 'store/busy', 'store/slow'])

/**
 * Callers that count and callers that bring runs to their end, all at once, until told to stop; and afterwards the books
 * are checked: what was answered happened once, what was refused did not, and nothing else did.
 */
export class Load {
  readonly #stores: readonly Store[]
  readonly counts = new Map<string, (number | Refusal)[]>()
  readonly runs: RunId[] = []
  readonly refusals: Refusal[] = []
  /** Commits that were acknowledged, as a sign of life. */
  done = 0

  constructor(stores: readonly Store[]) {
    this.#stores = stores
  }

  /** Until `enough` says so. `crossing`: some of them lock two rows, in opposite orders. */
  async work(enough: () => boolean, callers = 4, crossing = false): Promise<void> {
    const each = this.#stores.flatMap((store, at) =>
      Array.from({ length: callers }, (_, caller) =>
        caller % 4 === 3
          ? this.#finishRuns(store, enough)
          : crossing && caller % 4 === 2
            ? this.#cross(store, at % 2 === 0 ? ['left', 'right'] : ['right', 'left'], enough)
            : this.#count(store, caller === 0 ? 'shared' : `counter-${at}-${caller}`, enough),
      ),
    )
    await Promise.all(each)
  }

  async #count(store: Store, scope: string, enough: () => boolean): Promise<void> {
    for (let round = 0; !enough() && round < MOST_ROUNDS; round++)
      await this.#note([scope], async () => [await store.apply(increment, scope)])
  }

  async #cross(store: Store, [left, right]: readonly [string, string], enough: () => boolean): Promise<void> {
    for (let round = 0; !enough() && round < MOST_ROUNDS; round++)
      await this.#note([left, right], () => store.apply(incrementBoth, left, right))
  }

  async #note(scopes: readonly string[], count: () => Promise<readonly number[]>): Promise<void> {
    const given = await count().catch((error: unknown) => this.#refused(error))
    const isAnswered = Array.isArray(given)
    for (const [at, scope] of scopes.entries()) {
      if (!this.counts.has(scope)) this.counts.set(scope, [])
      this.counts.get(scope)!.push(isAnswered ? given[at]! : given)
    }
    if (isAnswered) this.done += 1
  }

  #refused(error: unknown): Refusal {
    const refusal = { code: (error as { code?: unknown }).code, message: String(error) }
    this.refusals.push(refusal)
    return refusal
  }

  async #finishRuns(store: Store, enough: () => boolean): Promise<void> {
    const workerId = await this.#insist(() => addWorker(store))
    for (let round = 0; !enough() && round < MOST_ROUNDS; round++) {
      this.runs.push(await this.#finishOne(store, workerId, round))
      this.done += 1
    }
  }

  /** Each step is a surprise if it meets its own trace (`existing`, `reconciled`), unless somebody was told to look it up. */
  async #finishOne(store: Store, workerId: WorkerId, round: number): Promise<RunId> {
    const given = { id: newRunId(random), threadId: newThreadId(random) }
    const before = this.refusals.length
    const surprised = (is: boolean, what: string) => {
      if (is && this.refusals.length === before) throw new Error(`${given.id} was ${what}`)
    }
    const { kind } = await this.#insist(() => submit(store, given))
    surprised(kind !== 'submitted', kind)
    const ref = await until(`${given.id} is claimed`, () => this.#claim(store, workerId, given.id))
    const outcome = { state: 'succeeded', result: { round } } as const
    const finish = await this.#insist(() => store.apply(finishRun, ref, outcome))
    surprised(finish.kind !== 'finished', finish.kind)
    if (finish.run.state !== 'succeeded') throw new Error(`${given.id} is ${finish.run.state}`)
    return given.id
  }

  /** A claim passes over a row that is locked, be it by its own first try on a connection that has not died yet. */
  async #claim(store: Store, workerId: WorkerId, only: RunId): Promise<AttemptRef | undefined> {
    const attempt = { id: newAttemptId(random), mark: random.hex(16) }
    const claimant = { workerId, leaseMs: LEASE_MS, limits: {}, attempt, host: someIdentity().host, only }
    const before = this.refusals.length
    const claimed = await this.#insist(() => store.apply(claimRun, claimant))
    if (claimed !== undefined) return { id: attempt.id, runId: only, fence: claimed.run.fence }
    if (this.refusals.length === before) return undefined
    // Nobody else wants it: if it was claimed, then by the try that nobody heard the answer of.
    const run = await this.#insist(() => reread(store, only))
    return run.state === 'running' ? { id: attempt.id, runId: only, fence: run.fence } : undefined
  }

  /** Again, when it was refused for the time being. */
  #insist<T>(act: () => Promise<T>): Promise<T> {
    return until('the store answers', async () => {
      try {
        return { answer: await act() }
      } catch (error) {
        const refusal = this.#refused(error)
        if (!EXPECTED.has(refusal.code)) throw error
        return undefined
      }
    }).then(({ answer }) => answer)
  }
}

/** What is wrong with the books. */
export async function imbalances({ counts, runs, refusals }: Load, store: Store): Promise<string[]> {
  const wrong = (await violations(store)).map((violation) => `invariant: ${violation}`)
  for (const [name, answers] of counts) {
    const numbers = answers.filter((each) => typeof each === 'number')
    const unknown = answers.filter((each) => typeof each !== 'number' && isUnknown(each)).length
    const happened = await store.read(counted, name)
    if (new Set(numbers).size < numbers.length) wrong.push(`${name}: a number was given twice`)
    if (happened < numbers.length || happened > numbers.length + unknown)
      wrong.push(`${name}: ${numbers.length} were answered and ${unknown} unknown, but ${happened} happened`)
  }
  for (const id of runs) {
    const events = (await store.read(runEventsAfter, id, 0, 100)).map(({ type }) => type).join(', ')
    if (events !== 'run.queued, run.started, run.finished') wrong.push(`${id}: ${events}`)
  }
  for (const { code, message } of refusals) if (!EXPECTED.has(code)) wrong.push(`refused: ${message}`)
  return wrong
}

/** How many answers there were. */
export const answersOf = ({ counts, runs }: Load): number =>
  [...counts.values()].reduce((sum, answers) => sum + answers.length, runs.length)
