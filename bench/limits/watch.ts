/** What of some work is measured: from `begin` to `end`, once or often. */
import { pause } from '../product.ts'

export interface Watch {
  begin(): void
  end(): void
  /** Idle for a while, as somebody is who asks now and then. */
  rest(ms: number): Promise<void>
  /** A look from outside that is no part of the work. */
  aside<T>(look: () => T): T
}

export interface Lap {
  readonly ms: number
  readonly processorMs: number
}

export class Stopwatch implements Watch {
  readonly laps: Lap[] = []
  #from = 0
  #used = process.cpuUsage()

  begin(): void {
    this.#used = process.cpuUsage()
    this.#from = performance.now()
  }

  end(): void {
    const ms = performance.now() - this.#from
    const { user, system } = process.cpuUsage(this.#used)
    this.laps.push({ ms, processorMs: (user + system) / 1_000 })
  }

  rest(ms: number): Promise<void> {
    return pause(ms)
  }

  aside<T>(look: () => T): T {
    return look()
  }
}

/** Marks of the watch between what is recorded. */
export type Mark =
  | { readonly kind: 'begin' }
  | { readonly kind: 'end' }
  | { readonly kind: 'rest'; readonly ms: number }

/** A statement had another effect than when it was recorded: then it is not the same work, and says nothing. */
export class AnotherWay extends Error {
  constructor(text: string, recorded: number, now: number) {
    super(`the replay went another way: ${now} rows instead of ${recorded} at: ${text}`)
  }
}

/** Without what came after the last end. */
export const untilEnd = <E extends { readonly kind: string }>(entries: readonly E[]): readonly E[] =>
  entries.slice(0, entries.findLastIndex(({ kind }) => kind === 'end') + 1)
