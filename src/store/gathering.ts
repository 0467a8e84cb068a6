import type { Clock } from '../base/clock.ts'
import { LIMITS } from '../base/limits.ts'

/**
 * When other processes are told of commits: soon after one that somebody there may wait for, and not before a while where only readers of
 * events look at what it says. A burst tells them once.
 */
export class Gathering {
  readonly #clock: Clock
  readonly #tell: () => void
  #cancel: (() => void) | undefined
  #isSoon = false

  constructor(clock: Clock, tell: () => void) {
    this.#clock = clock
    this.#tell = tell
  }

  add(topics: ReadonlySet<string>): void {
    const isSoon = topics.size > 0
    if (this.#cancel !== undefined && (this.#isSoon || !isSoon)) return
    this.#cancel?.()
    this.#isSoon = isSoon
    const waitMs = isSoon ? LIMITS.wakeGatherMs : LIMITS.quietWakeGatherMs
    this.#cancel = this.#clock.after(waitMs, () => {
      this.#cancel = undefined
      this.#tell()
    })
  }

  /** Whether there is anything to tell; whoever takes it tells it. */
  take(): boolean {
    const isAny = this.#cancel !== undefined
    this.#cancel?.()
    this.#cancel = undefined
    return isAny
  }
}
