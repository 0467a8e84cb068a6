import type { Clock, Instant } from '../../src/base/clock.ts'

interface Timer {
  readonly due: number
  /** Undefined: taken back. */
  callback: (() => void) | undefined
}

/** The clock of a world: it stands still until the world lets the next timer fire. Those of one instant fire in the order in which they were set. */
export class SimClock implements Clock {
  #now: Instant = Date.UTC(2026, 0, 1)
  #monotonic = 0
  /** By their due time, the next one last. */
  readonly #timers: Timer[] = []

  now(): Instant {
    return Math.floor(this.#now)
  }

  monotonicMs(): number {
    return this.#monotonic
  }

  after(ms: number, callback: () => void): () => void {
    const timer: Timer = { due: this.#monotonic + Math.max(ms, 0), callback }
    let [low, high] = [0, this.#timers.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#timers[middle]!.due > timer.due) low = middle + 1
      else high = middle
    }
    this.#timers.splice(low, 0, timer)
    return () => void (timer.callback = undefined)
  }

  /** Moves on to the next timer and fires it; or to `until`, if none comes before. Says whether one fired. */
  fireNext(until: number): boolean {
    for (let next = this.#timers.at(-1); next !== undefined && next.due <= until; next = this.#timers.at(-1)) {
      this.#timers.pop()
      if (next.callback === undefined) continue
      this.#moveTo(next.due)
      next.callback()
      return true
    }
    this.#moveTo(until)
    return false
  }

  /** Someone sets the wall clock; nothing fires and the monotonic clock does not notice. */
  step(ms: number): void {
    this.#now += ms
  }

  #moveTo(instant: number): void {
    const ms = Math.max(0, instant - this.#monotonic)
    this.#now += ms
    this.#monotonic += ms
  }
}
