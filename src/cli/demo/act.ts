import type { Stage } from './stage.ts'

/** One sentence for a person, as it happens. */
export type Tell = (sentence: string) => void

/**
 * One part of the demo. It plays and gathers what was seen; whether that is what it should be is judged apart, so that
 * the judge can be given something else in a test.
 */
export interface Act<Facts> {
  readonly name: string
  readonly title: string
  play(stage: Stage, tell: Tell): Promise<Facts>
  judge(facts: Facts): Check[]
}

export interface Check {
  readonly what: string
  readonly ok: boolean
  /** What was seen, for whoever has to find out why it is not ok. */
  readonly seen: unknown
}

export const check = (what: string, ok: boolean, seen: unknown): Check => ({ what, ok, seen })

/** `one, two, one` from the lines of a ledger: the key behind each entry is for its probe. */
export const entriesIn = (ledger: string): string[] =>
  ledger
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(' ')[0] ?? '')

export const sameList = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((each, index) => each === other[index])
