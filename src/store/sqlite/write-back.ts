import type { Clock } from '../../base/clock.ts'
import { LIMITS } from '../../base/limits.ts'

/** What a commit puts into the log, about: the pages that each one changes, and one for so many rows of those that share it. */
const PAGES_A_COMMIT = 6
const ROWS_A_PAGE = 10

/**
 * When the log is written back into the database: in a moment of rest. SQLite does it within a commit, once the log has so many pages, and
 * all who share that commit wait for it: 4 ms on a quick disk, where a commit takes 0.2. That is left for a store that never rests.
 */
export class WriteBack {
  readonly #clock: Clock
  readonly #write: () => void
  #pages = 0
  #committedAt = 0
  #cancel: (() => void) | undefined

  constructor(clock: Clock, write: () => void) {
    this.#clock = clock
    this.#write = write
  }

  committed(rows: number): void {
    this.#pages += PAGES_A_COMMIT + rows / ROWS_A_PAGE
    this.#committedAt = this.#clock.monotonicMs()
    if (this.#pages >= LIMITS.restLogPages) this.#cancel ??= this.#look(LIMITS.restMs)
  }

  close(): void {
    this.#cancel?.()
  }

  #look(waitMs: number): () => void {
    return this.#clock.after(waitMs, () => {
      const restMs = this.#clock.monotonicMs() - this.#committedAt
      this.#cancel = restMs < LIMITS.restMs ? this.#look(LIMITS.restMs - restMs) : undefined
      if (this.#cancel !== undefined) return
      this.#pages = 0
      this.#write()
    })
  }
}
