import type { Pool } from 'pg'

import { sleep } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { HoldfastError, describeError } from '../../base/errors.ts'
import type { Randomness } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import type { HoldingProbe } from '../store.ts'
import { performBatch, rowsOf, takeBatch } from './batch.ts'
import type { Manner, Member, Progress } from './batch.ts'
import type { AnyChange } from '../rounds.ts'
import type { Change } from '../transition.ts'
import { explain, isConnectionLost, isThere, isUnlikely, restartsFor } from './errors.ts'
import { Lane, RequestFailed } from './lane.ts'
import { lookUpBatch } from './look-up.ts'
import type { Renderer, Request } from './statement.ts'

export interface GroupCommitOptions {
  readonly pool: Pool
  readonly clock: Clock
  readonly random: Randomness
  readonly renderer: Renderer
  readonly opening: readonly Request[]
  readonly probe?: HoldingProbe
  readonly onCommit: (topics: ReadonlySet<string>) => void
}

/** What became of a batch. */
type Fate =
  | {
      readonly kind: 'committed'
      readonly values: readonly unknown[]
      readonly changed: boolean
      readonly topics: ReadonlySet<string>
    }
  | { readonly kind: 'undone'; readonly error: unknown }
  | { readonly kind: 'unknown'; readonly error: unknown }

/**
 * Transitions that arrive while others are being committed wait and then share a transaction, so round trips and syncs
 * are paid once for many. If a batch fails, none of it happened, and its members run again one by one; one that lost
 * against another transaction is started again within a bound. A connection that breaks before the commit was sent has
 * committed nothing; one that breaks after it leaves the question open, and the batch number answers it.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions
  #lanes = new WeakMap<object, Lane>()
  readonly #waiting: Member[] = []
  readonly #busy = new Set<Promise<void>>()
  #kept: { readonly lane: Lane; readonly cancel: () => void } | undefined
  #scheduled = false
  #closed = false

  constructor(options: GroupCommitOptions) {
    this.#options = options
  }

  submit<Args extends readonly unknown[], T>(change: Change<Args, T>, args: Args): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed)
        return reject(new HoldfastError('store/closed', 'this store was closed', { remedy: 'open it again' }))
      this.#waiting.push({ change: change as unknown as AnyChange, args, rows: rowsOf(args), resolve, reject })
      this.#schedule()
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    while (this.#waiting.length > 0 || this.#busy.size > 0) {
      await Promise.all(this.#busy)
      await new Promise((resolve) => setImmediate(resolve))
    }
    this.#letGo()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    // Callers that were just answered submit their next transition before this turn of the event loop ends.
    setImmediate(() => {
      this.#scheduled = false
      if (this.#waiting.length === 0 || this.#busy.size >= LIMITS.writingConnections) return
      const members = takeBatch(this.#waiting)
      const work = this.#commitTogether(members).catch((error: unknown) =>
        members.forEach((member) => member.reject(error)),
      )
      this.#busy.add(work)
      void work.finally(() => {
        this.#busy.delete(work)
        if (this.#waiting.length > 0) this.#schedule()
      })
      if (this.#waiting.length > 0) this.#schedule()
    })
  }

  async #commitTogether(members: readonly Member[]): Promise<void> {
    const hopeful = await this.#attempt(members, 'hopeful')
    const isSo = hopeful.kind !== 'undone' || !(isUnlikely(hopeful.error) || isThere(hopeful.error))
    const fate = isSo ? hopeful : await this.#attempt(members, 'careful')
    if (fate.kind !== 'undone') return this.#answer(members, fate)
    if (members.length === 1) return this.#commitAlone(members[0]!, fate)
    // A few at a time: a hundred that wait for a connection would take each other's turns for a server that does not answer.
    const left = members.values()
    const work = async () => {
      for (const member of left) await this.#commitAlone(member)
    }
    await Promise.all(Array.from({ length: LIMITS.poolConnections / 2 }, work))
  }

  /** Undone by a lost race or a lost connection: again, within a bound. Anything else is the caller's to know. */
  async #commitAlone(member: Member, tried?: Fate): Promise<void> {
    const { clock, random } = this.#options
    const deadline = clock.monotonicMs() + LIMITS.lockWaitMs
    for (let attempt = 1; ; attempt++) {
      const fate = attempt === 1 && tried !== undefined ? tried : await this.#attempt([member], 'careful')
      if (fate.kind !== 'undone') return this.#answer([member], fate)
      const lostRace = attempt < restartsFor(fate.error)
      const mayRecover = lostRace || isConnectionLost(fate.error)
      if (!mayRecover || clock.monotonicMs() > deadline) return member.reject(explain(fate.error))
      if (isUnlikely(fate.error)) this.#numberAnew()
      await sleep(clock, Math.min(2 ** attempt * 5, 1_000) * (0.5 + random.fraction()))
    }
  }

  #answer(members: readonly Member[], fate: Exclude<Fate, { kind: 'undone' }>): void {
    if (fate.kind === 'unknown') return members.forEach((member) => member.reject(unknownCommit(fate.error)))
    members.forEach((member, index) => member.resolve(fate.values[index]))
    if (fate.changed) this.#options.onCommit(fate.topics)
  }

  /** One transaction for these members. */
  async #attempt(members: readonly Member[], manner: Manner): Promise<Fate> {
    const { renderer, opening, probe } = this.#options
    const progress: Progress = {}
    let lane: Lane | undefined
    try {
      lane = await this.#acquire()
      const performed = await performBatch(members, manner, { lane, renderer, opening, probe }, progress)
      this.#keep(lane)
      return { kind: 'committed', ...performed }
    } catch (failure) {
      return this.#afterFailure(failure, lane, progress)
    }
  }

  async #afterFailure(failure: unknown, lane: Lane | undefined, { committing }: Progress): Promise<Fate> {
    const { error, answered } = readFailure(failure)
    // A transaction that failed is over with its connection: nothing of it can linger in the pool, and no number is used again.
    if (lane !== undefined) this.#lanes.delete(lane.client)
    lane?.client.release(true)
    if (lane === undefined || committing === undefined || answered) return { kind: 'undone', error }
    const { batch, late, topics, values } = committing
    const found = await lookUpBatch(this.#options, { lane: lane.id, batch, late: late() })
    if (found.kind !== 'committed') return { kind: found.kind === 'missing' ? 'undone' : 'unknown', error }
    try {
      return { kind: 'committed', values: values(found.late), topics, changed: true }
    } catch (unread) {
      // It is committed, and what it came to cannot be told: what it stored is gone again.
      return { kind: 'unknown', error: unread }
    }
  }

  /**
   * For a moment one is at hand for whoever comes next: a commit of its own takes a twentieth less than by way of the pool. No longer:
   * the pool looks after those that nobody uses, and others may need it.
   */
  #keep(lane: Lane): void {
    const { pool, clock } = this.#options
    if (this.#kept !== undefined || pool.waitingCount > 0) return lane.client.release()
    this.#kept = { lane, cancel: clock.after(LIMITS.keptConnectionMs, () => this.#letGo()) }
  }

  /** A server that took over without the last batches knows other numbers: of no connection from before they are right. */
  #numberAnew(): void {
    this.#letGo()
    this.#lanes = new WeakMap()
  }

  #letGo(): void {
    const lane = this.#takeKept()
    lane?.client.release(lane.isOver)
  }

  #takeKept(): Lane | undefined {
    const kept = this.#kept
    this.#kept = undefined
    kept?.cancel()
    return kept?.lane
  }

  async #acquire(): Promise<Lane> {
    const { pool, random } = this.#options
    const kept = this.#takeKept()
    if (kept?.isOver === false) return kept
    kept?.client.release(true)
    const client = await pool.connect()
    const lane = this.#lanes.get(client) ?? new Lane(client, random)
    this.#lanes.set(client, lane)
    return lane
  }
}

/** `answered`: the server itself said no, so the transaction was rolled back. */
function readFailure(failure: unknown): { readonly error: unknown; readonly answered: boolean } {
  if (!(failure instanceof RequestFailed)) return { error: failure, answered: false }
  return { error: failure.cause, answered: !failure.lost }
}

function unknownCommit(cause: unknown): HoldfastError {
  return new HoldfastError(
    'store/unknown-commit',
    `it is not known whether the last change was committed (${describeError(explain(cause))})`,
    { remedy: 'look the change up before doing it again', cause },
  )
}
