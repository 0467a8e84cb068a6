import type { Clock, Instant } from '../base/clock.ts'

/** A clock that stands still until a test moves it. Timers fire in order of their due time, each at its own instant. */
export class FakeClock implements Clock {
  #now: Instant
  #monotonic = 0
  #timers: { readonly due: number; readonly callback: () => void }[] = []

  constructor(start: Instant = Date.UTC(2026, 0, 1)) {
    this.#now = start
  }

  now(): Instant {
    return this.#now
  }

  monotonicMs(): number {
    return this.#monotonic
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { due: this.#monotonic + Math.max(ms, 0), callback }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  /** Lets time pass on both clocks and fires what comes due. */
  advance(ms: number): void {
    const end = this.#monotonic + ms
    for (let next = this.#nextDue(end); next !== undefined; next = this.#nextDue(end)) {
      this.#timers = this.#timers.filter((timer) => timer !== next)
      this.#move(next.due - this.#monotonic)
      next.callback()
    }
    this.#move(end - this.#monotonic)
  }

  /** The process is stopped for a while: both clocks move on, and what came due fires once, late, when it goes on. */
  pause(ms: number): void {
    this.#move(ms)
    const due = this.#timers.filter((timer) => timer.due <= this.#monotonic)
    this.#timers = this.#timers.filter((timer) => !due.includes(timer))
    for (const { callback } of due) callback()
  }

  /** Someone sets the wall clock; nothing fires and the monotonic clock does not notice. */
  step(ms: number): void {
    this.#now += ms
  }

  #move(ms: number): void {
    this.#now += ms
    this.#monotonic += ms
  }

  #nextDue(end: number) {
    return this.#timers.filter(({ due }) => due <= end).toSorted((a, b) => a.due - b.due)[0]
  }
}
