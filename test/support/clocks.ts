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
