import type { Clock } from '../../base/clock.ts'
import { LIMITS } from '../../base/limits.ts'
import { clockGap, storeClock } from '../../events/retention.ts'
import type { Store } from '../../store/store.ts'

const DAY_MS = 86_400_000

export interface ClockTrustOptions {
  readonly store: Store
  readonly clock: Clock
  readonly warn: (message: string) => void
}

interface Seen {
  /** By the clock of the store, and by one that nobody sets. */
  readonly now: number
  readonly at: number
  readonly isTrusted: boolean
}

/** What is removed is gone for good: a clock that is suddenly far ahead has a day to be set right before anything is removed on its word. */
export class ClockTrust {
  readonly #options: ClockTrustOptions
  #seen: Seen | undefined
  #doubtsSince: number | undefined

  constructor(options: ClockTrustOptions) {
    this.#options = options
  }

  async holds(): Promise<boolean> {
    const { store, clock } = this.#options
    const { now } = await store.read(storeClock)
    const at = clock.monotonicMs()
    const passed = at - (this.#seen?.at ?? Number.NEGATIVE_INFINITY)
    const jumped = now - (this.#seen?.now ?? now) - passed
    if (this.#seen !== undefined && passed < LIMITS.forgetRestMs && jumped < LIMITS.clockDoubtMs)
      return this.#seen.isTrusted
    const isTrusted = await this.#judge(at)
    this.#seen = { now, at, isTrusted }
    return isTrusted
  }

  async #judge(at: number): Promise<boolean> {
    const { store, warn } = this.#options
    const gapMs = await store.read(clockGap, LIMITS.clockDoubtMs)
    if (gapMs <= LIMITS.clockDoubtedMs) {
      this.#doubtsSince = undefined
      return true
    }
    if (this.#doubtsSince === undefined)
      warn(
        `the clock went ahead by ${Math.floor(gapMs / DAY_MS)} days since the last event: nothing old is forgotten for a day, in case it is wrong`,
      )
    this.#doubtsSince ??= at
    return at - this.#doubtsSince >= LIMITS.clockDoubtMs
  }
}
