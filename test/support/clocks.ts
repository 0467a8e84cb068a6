import type { Clock } from '../../src/base/clock.ts'

/** A wall clock that stands until a test moves it, on which every wait is over at once. */
export interface HurriedClock extends Clock {
  step(ms: number): void
}

export function hurriedClock(start = Date.UTC(2026, 0, 1)): HurriedClock {
  let wall = start
  let monotonic = 0
  return {
    now: () => wall,
    monotonicMs: () => monotonic,
    after(ms, callback) {
      const immediate = setImmediate(() => {
        monotonic += ms
        callback()
      })
      return () => clearImmediate(immediate)
    },
    step(ms) {
      wall += ms
    },
  }
}

/** A clock that stands until a test moves it. */
export interface HandClock extends Clock {
  readonly armed: number
  /** Calls whoever is due by then, in turn. */
  pass(ms: number): void
}

export function handClock(): HandClock {
  let at = 0
  const timers = new Set<{ readonly at: number; readonly callback: () => void }>()
  const dueBy = (end: number) => [...timers].filter((timer) => timer.at <= end).toSorted((a, b) => a.at - b.at)[0]
  return {
    now: () => at,
    monotonicMs: () => at,
    after(ms, callback) {
      const timer = { at: at + ms, callback }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    get armed() {
      return timers.size
    },
    pass(ms) {
      const end = at + ms
      for (let next = dueBy(end); next !== undefined; next = dueBy(end)) {
        timers.delete(next)
        at = next.at
        next.callback()
      }
      at = end
    },
  }
}
