/** Instants are whole milliseconds since 1970; durations are milliseconds. */
export type Instant = number & { readonly __instant?: never }

/** As instants are shown and sent: ISO 8601, in UTC. */
export const iso = (instant: Instant): string => new Date(instant).toISOString()

/** Time comes in through this port; only `systemClock` touches the real one. */
export interface Clock {
  /** Wall-clock time: for what is shown and stored. */
  now(): Instant
  /** Never steps back, unaffected by anyone setting the clock: for measuring leases and waits. */
  monotonicMs(): number
  /** Calls back once after `ms`; the returned function takes it back. An armed timer does not keep a process alive unless `ref`. */
  after(ms: number, callback: () => void, options?: { readonly ref?: boolean }): () => void
}

// A longer delay would overflow the runtime's 32-bit timer and fire at once.
const LONGEST_TIMER_MS = 2 ** 31 - 1

// Not `performance`: loading that takes 1.4 ms, a tenth of what opening a store takes.
const BEGAN = process.hrtime()

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs() {
    const [seconds, nanoseconds] = process.hrtime(BEGAN)
    return seconds * 1_000 + nanoseconds / 1e6
  },
  after(ms, callback, options = {}) {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), LONGEST_TIMER_MS))
    if (options.ref !== true) timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Resolves after `ms`, or as soon as `signal` aborts: waiting is never a reason to be late for a stop. `ref`: as for `after`. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal, options = { ref: true }): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve()
    const done = () => {
      cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const cancel = clock.after(ms, done, options)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** When everything that is under way in this turn of the event loop has come as far as it can. */
export const afterThisTurn = (work: () => void): void => void setImmediate(work)
