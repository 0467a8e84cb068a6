import type { Clock } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import type { AttemptId, WorkerId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { renewLeases } from '../runs/attempt.ts'
import type { AttemptRef } from '../runs/attempt.ts'
import type { Store } from '../store/store.ts'

export interface LeaseOptions {
  readonly store: Store
  readonly clock: Clock
  readonly workerId: WorkerId
  readonly leaseMs: number
  readonly held: () => Iterable<AttemptId>
  /** These were held when a renewal was sent, and the database no longer knows them as this worker's. */
  readonly onLost: (lost: readonly AttemptId[]) => void
  /** Everything that is this worker's by the database. */
  readonly onRenewed: (renewed: readonly AttemptRef[]) => void
  /** Renewing failed for so long that the lease is about to end: the processes must be stopped now. */
  readonly onFenced: () => void
  readonly warn: (message: string) => void
}

/** Looks a lease: fine enough that self-fencing comes well before the lease ends. */
const TICKS_PER_LEASE = 15

/**
 * Renews all of a worker's leases, and tells when that no longer works. Measured from before each renewal was sent, by
 * the monotonic clock: whatever the database made of it, the lease ends no earlier than that.
 */
export class Lease {
  readonly #options: LeaseOptions
  readonly #tickMs: number
  #renewedAt: number
  #triedAt: number
  #tickedAt: number
  #failing = false
  /** After a pause: until this instant an answer is waited for before anything is stopped. */
  #patientUntil = 0
  #fenced = false
  #cancel: (() => void) | undefined
  #stopped = false

  constructor(options: LeaseOptions) {
    this.#options = options
    this.#tickMs = options.leaseMs / TICKS_PER_LEASE
    this.#renewedAt = this.#triedAt = this.#tickedAt = options.clock.monotonicMs()
    this.#schedule()
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
  }

  /** Its end is near, and nobody could be asked: nothing may run on under it, and nothing may begin. */
  get isFenced(): boolean {
    return this.#fenced
  }

  async renew(): Promise<void> {
    const { store, clock, workerId, leaseMs, held, onLost, onRenewed, warn } = this.#options
    const asked = (this.#triedAt = clock.monotonicMs())
    // What is claimed while the renewal is under way is not in its answer, and not lost.
    const before = [...held()]
    try {
      const renewed = await store.apply(renewLeases, workerId, leaseMs)
      this.#renewedAt = Math.max(this.#renewedAt, asked)
      this.#failing = this.#fenced = false
      this.#patientUntil = 0
      const still = new Set(renewed.map(({ id }) => id))
      onLost(before.filter((attempt) => !still.has(attempt)))
      onRenewed(renewed)
    } catch (error) {
      if (!this.#failing) warn(`the leases could not be renewed: ${describeError(error)}`)
      this.#failing = true
      this.#patientUntil = 0
    }
  }

  #schedule(): void {
    if (!this.#stopped) this.#cancel = this.#options.clock.after(this.#tickMs, () => this.#tick())
  }

  #tick(): void {
    const { clock, leaseMs } = this.#options
    const at = clock.monotonicMs()
    // A process that was stopped or starved did not fail to renew. It may have been taken over meanwhile, so that its
    // commands are another worker's: it asks before it stops anything.
    const wasPaused = at - this.#tickedAt > 3 * this.#tickMs
    this.#tickedAt = at
    if (wasPaused) this.#patientUntil = at + leaseMs * LIMITS.selfFenceShare
    if (at >= this.#patientUntil) this.#fenceIfLate(at)
    if (this.#failing || wasPaused || at - this.#triedAt >= leaseMs / LIMITS.renewalsPerLease) void this.renew()
    this.#schedule()
  }

  #fenceIfLate(at: number): void {
    const { leaseMs, onFenced } = this.#options
    if (this.#fenced || at - this.#renewedAt <= leaseMs * LIMITS.selfFenceShare) return
    this.#fenced = true
    onFenced()
  }
}
