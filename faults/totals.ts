import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'

import type { Outcome } from './method.ts'

/** What was counted, in one campaign or in all of a method. */
export interface Figures {
  cases: number
  runs: number
  effects: number
  faults: Record<string, number>
  failures: number
  /** How many cases took up to so many milliseconds to recover; the last is everything beyond. */
  recovery: number[]
  peaks: Record<string, number>
  seconds: number
}

/** What a method has seen so far, in all its campaigns. */
export interface Total extends Figures {
  title: string
  /** What one case is, in the plural. */
  unit: string
  nextSeed: number
  campaigns: CampaignTotal[]
}

/** One campaign, so that every figure has its commit and its seeds. */
export interface CampaignTotal {
  /** The first ones had none, nor figures of their own. */
  id?: string
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
  /** What it added to the total, so that it can be taken out again, or be added to another. */
  own?: Figures
  /** Of a method that is a table. */
  table?: Part
}

/** Which of a table's cases a campaign has told, in which of the rounds through it. */
export interface Part {
  size: number
  /** Of all its cases. The first ones had none. */
  digest?: string
  round: number
  /** First and last of each row of seeds. */
  told: [number, number][]
}

export type Totals = Record<string, Total>

/** Upper bounds of the classes of recovery times. */
export const RECOVERY_MS = [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000] as const

export const noFigures = (): Figures => ({
  cases: 0,
  runs: 0,
  effects: 0,
  faults: {},
  failures: 0,
  recovery: Array.from({ length: RECOVERY_MS.length + 1 }, () => 0),
  peaks: {},
  seconds: 0,
})

export const emptyTotal = (title: string, unit: string): Total => ({
  title,
  unit,
  ...noFigures(),
  nextSeed: 1,
  campaigns: [],
})

export function add(figures: Figures, outcome: Outcome): void {
  figures.cases += 1
  figures.runs += outcome.runs
  figures.effects += outcome.effects
  if (outcome.problems.length > 0) figures.failures += 1
  for (const [kind, times] of Object.entries(outcome.faults)) figures.faults[kind] = (figures.faults[kind] ?? 0) + times
  raise(figures.peaks, outcome.peaks ?? {})
  if (outcome.recoveryMs === undefined) return
  const found = RECOVERY_MS.findIndex((most) => (outcome.recoveryMs ?? 0) <= most)
  const place = found < 0 ? RECOVERY_MS.length : found
  figures.recovery[place] = (figures.recovery[place] ?? 0) + 1
}

function raise(peaks: Record<string, number>, others: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(others)) peaks[name] = Math.max(peaks[name] ?? value, value)
}

/** A campaign that was entered before is replaced by what it has become. */
export function enter(total: Total, campaign: CampaignTotal): void {
  const place = total.campaigns.findIndex(({ id }) => id !== undefined && id === campaign.id)
  if (place < 0) total.campaigns.push(campaign)
  else {
    count(total, total.campaigns[place]!.own, -1)
    total.campaigns[place] = campaign
  }
  count(total, campaign.own, 1)
  total.nextSeed = Math.max(total.nextSeed, campaign.last + 1)
}

/** Peaks stay: a campaign only becomes more than it was. */
function count(total: Figures, own: Figures | undefined, times: 1 | -1): void {
  if (own === undefined) return
  for (const name of ['cases', 'runs', 'effects', 'failures', 'seconds'] as const) total[name] += times * own[name]
  for (const [kind, often] of Object.entries(own.faults)) total.faults[kind] = (total.faults[kind] ?? 0) + times * often
  for (const [place, often] of own.recovery.entries())
    total.recovery[place] = (total.recovery[place] ?? 0) + times * often
  raise(total.peaks, own.peaks)
}

export const faultsOf = ({ faults }: Pick<Figures, 'faults'>): number =>
  Object.values(faults).reduce((sum, times) => sum + times, 0)

export function readTotals(path: string): Totals {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Totals
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

/** At once, since a process that ends can wait for nothing; and whole, whoever reads it meanwhile. */
export function writeTotals(path: string, totals: Totals): void {
  const beside = `${path}.${randomBytes(4).toString('hex')}`
  writeFileSync(beside, `${JSON.stringify(totals, null, 2)}\n`)
  renameSync(beside, path)
}
