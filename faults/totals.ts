import { readFileSync } from 'node:fs'

import { writeFileAtomic } from '../src/base/files.ts'
import type { Outcome } from './method.ts'

/** What a method has seen so far, in all its campaigns. */
export interface Total {
  title: string
  /** What one case is, in the plural. */
  unit: string
  cases: number
  runs: number
  effects: number
  faults: Record<string, number>
  failures: number
  /** How many cases took up to so many milliseconds to recover; the last is everything beyond. */
  recovery: number[]
  peaks: Record<string, number>
  nextSeed: number
  seconds: number
  campaigns: CampaignTotal[]
}

/** One campaign, so that every figure has its commit and its seeds. */
export interface CampaignTotal {
  at: string
  commit: string
  first: number
  last: number
  cases: number
  faults: number
  failures: number
  /** The seeds of the first of them. */
  failed: number[]
  seconds: number
}

export type Totals = Record<string, Total>

/** Upper bounds of the classes of recovery times. */
export const RECOVERY_MS = [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000] as const

export const emptyTotal = (title: string, unit: string): Total => ({
  title,
  unit,
  cases: 0,
  runs: 0,
  effects: 0,
  faults: {},
  failures: 0,
  recovery: Array.from({ length: RECOVERY_MS.length + 1 }, () => 0),
  peaks: {},
  nextSeed: 1,
  seconds: 0,
  campaigns: [],
})

export function add(total: Total, outcome: Outcome): void {
  total.cases += 1
  total.runs += outcome.runs
  total.effects += outcome.effects
  total.nextSeed = Math.max(total.nextSeed, outcome.seed + 1)
  if (outcome.problems.length > 0) total.failures += 1
  for (const [kind, times] of Object.entries(outcome.faults)) total.faults[kind] = (total.faults[kind] ?? 0) + times
  for (const [name, value] of Object.entries(outcome.peaks ?? {}))
    total.peaks[name] = Math.max(total.peaks[name] ?? value, value)
  if (outcome.recoveryMs === undefined) return
  const found = RECOVERY_MS.findIndex((most) => (outcome.recoveryMs ?? 0) <= most)
  const place = found < 0 ? RECOVERY_MS.length : found
  total.recovery[place] = (total.recovery[place] ?? 0) + 1
}

export const faultsOf = ({ faults }: Pick<Total, 'faults'>): number =>
  Object.values(faults).reduce((sum, times) => sum + times, 0)

export function readTotals(path: string): Totals {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Totals
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

export const writeTotals = (path: string, totals: Totals): Promise<void> =>
  writeFileAtomic(path, `${JSON.stringify(totals, null, 2)}\n`, { mode: 0o644 })
