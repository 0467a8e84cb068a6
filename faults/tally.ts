import { randomUUID } from 'node:crypto'

import type { Outcome } from './method.ts'
import { partOf, rowsOf } from './rounds.ts'
import type { Round } from './rounds.ts'
import { add, faultsOf, noFigures } from './totals.ts'
import type { CampaignTotal } from './totals.ts'

/** Enough to begin with. */
const MOST_NAMED = 20

/** What one campaign has counted so far. */
export class Tally {
  readonly figures = noFigures()
  readonly failed: number[] = []
  readonly #id = randomUUID()
  readonly #began = performance.now()
  readonly #commit: string
  readonly #first: number
  readonly #round: Round | undefined
  readonly #told = new Set<number>()
  #last: number

  constructor(commit: string, first: number, round?: Round) {
    this.#commit = commit
    this.#first = first
    this.#last = first - 1
    this.#round = round
  }

  tell(outcome: Outcome): void {
    add(this.figures, outcome)
    this.#told.add(outcome.seed)
    this.#last = Math.max(this.#last, outcome.seed)
    if (outcome.problems.length > 0) this.failed.push(outcome.seed)
  }

  /** The highest seed that was told. */
  get last(): number {
    return this.#last
  }

  get isEmpty(): boolean {
    return this.#told.size === 0
  }

  get minutes(): number {
    return (performance.now() - this.#began) / 60_000
  }

  /** As it stands in the counter file. */
  entry(): CampaignTotal {
    const seconds = Math.round(this.minutes * 60)
    const { cases, failures } = this.figures
    const round = this.#round
    return {
      id: this.#id,
      at: new Date().toISOString().slice(0, 16),
      commit: this.#commit,
      first: this.#first,
      last: this.#last,
      cases,
      faults: faultsOf(this.figures),
      failures,
      failed: this.failed.slice(0, MOST_NAMED),
      seconds,
      own: { ...structuredClone(this.figures), seconds },
      ...(round === undefined ? {} : { table: partOf(round, rowsOf(this.#told)) }),
    }
  }
}
