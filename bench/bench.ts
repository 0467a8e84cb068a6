/** What every benchmark here is: a name, a sentence, two sets of sizes, and a function that returns rows of the one table. */

export type Engine = 'sqlite' | 'postgres'

/** What must hold of a row; a ratio where there is a raw limit to compare with, since that survives a change of machine. */
export interface Bound {
  readonly of: 'value' | 'ratio'
  readonly most?: number
  readonly least?: number
}

export interface Row {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** The same unit, measured in the same run: what the store, the disk or the runtime itself takes for it. */
  readonly raw?: number
  /** Ours to raw, or what the name says. */
  readonly ratio?: number
  /** The same unit: what ours asks of its database, asked by nobody (bench/limits); and which way is better. */
  readonly statements?: number
  readonly better?: 'high' | 'low'
  readonly bound?: Bound
}

export type Sizes = Readonly<Record<string, number>>

/** Where a benchmark works, and what it may use. */
export interface Place {
  /** Removed afterwards. */
  readonly folder: string
  readonly engines: readonly Engine[]
  /** A PostgreSQL whose commits are synced, started when somebody asks for it first. */
  readonly postgres: () => Promise<string>
  readonly say: (line: string) => void
}

export interface Bench {
  readonly name: string
  readonly what: string
  readonly full: Sizes
  readonly quick: Sizes
  run(sizes: Sizes, place: Place): Promise<Row[]>
}

/** Checks the sizes' names against what the function reads. */
export function defineBench<Given extends Sizes>(bench: {
  readonly name: string
  readonly what: string
  readonly full: Given
  readonly quick: { readonly [Key in keyof Given]: number }
  run(sizes: { readonly [Key in keyof Given]: number }, place: Place): Promise<Row[]>
}): Bench {
  return bench
}

/** `slack`: how many times worse it may be, on a machine that has other work. */
export function holds({ value, ratio, bound }: Row, slack = 1): boolean {
  if (bound === undefined) return true
  const measured = bound.of === 'value' ? value : (ratio ?? Number.NaN)
  return measured <= (bound.most ?? Infinity) * slack && measured >= (bound.least ?? -Infinity) / slack
}

/** Ours beside the limit. For a rate the ratio is the share of it that is reached, for a time how many times as long it takes. */
export function beside(name: string, unit: string, ours: number, raw: number, bound?: Omit<Bound, 'of'>): Row {
  const row = { name, unit, value: ours, raw, ratio: ours / raw }
  return bound === undefined ? row : { ...row, bound: { of: 'ratio', ...bound } }
}

export const median = (values: readonly number[]): number => percentile(values, 0.5)

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN
}
