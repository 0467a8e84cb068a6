/**
 * A method that is a table goes round it: each campaign begins with the first case that this round has not had, and after the
 * last one the next round begins. One with other cases is another table, even if there are as many of them.
 */
import type { CampaignTotal, Part } from './totals.ts'

/** Known by how many cases it has, and by a digest of them. */
export interface Table {
  readonly size: number
  readonly digest?: string | undefined
}

export interface Round extends Table {
  readonly number: number
}

export interface Next extends Round {
  readonly first: number
  /** Up to the last one that is missing. */
  readonly most: number
}

/** How far a round has come. */
export interface Progress extends Round {
  /** How many of its cases, each counted once. */
  readonly distinct: number
  readonly commits: readonly string[]
}

/** Rows of numbers that follow each other. */
export function rowsOf(numbers: Iterable<number>): [number, number][] {
  const rows: [number, number][] = []
  for (const number of [...numbers].toSorted((a, b) => a - b)) {
    const row = rows.at(-1)
    if (row !== undefined && row[1] >= number - 1) row[1] = number
    else rows.push([number, number])
  }
  return rows
}

export function nextOf(campaigns: readonly CampaignTotal[], size: number, digest?: string): Next {
  const parts = campaigns.flatMap(({ table }) => table ?? [])
  const last = parts.reduce((most, { round }) => Math.max(most, round), 0)
  const table = { size, ...(digest === undefined ? {} : { digest }) }
  const told = toldIn(parts, { ...table, number: last })
  if (told.size === 0 || told.size >= size) return { ...table, number: last + 1, first: 1, most: size }
  const missing = Array.from({ length: size }, (_, index) => index + 1).filter((seed) => !told.has(seed))
  const first = missing[0]!
  return { ...table, number: last, first, most: missing.at(-1)! - first + 1 }
}

/** The last round that was whole, if there is one, and the one that is under way. */
export function progressOf(campaigns: readonly CampaignTotal[]): {
  readonly whole?: Progress
  readonly now?: Progress
} {
  const rounds = new Map<string, Progress>()
  for (const part of campaigns.flatMap(({ table }) => table ?? []))
    rounds.set(`${part.size} ${part.digest} ${part.round}`, progress(campaigns, roundOf(part)))
  const sorted = [...rounds.values()].toSorted((a, b) => a.number - b.number)
  const whole = sorted.findLast(({ distinct, size }) => distinct === size)
  const last = sorted.at(-1)
  return { ...(whole === undefined ? {} : { whole }), ...(last === undefined || last === whole ? {} : { now: last }) }
}

function progress(campaigns: readonly CampaignTotal[], round: Round): Progress {
  const mine = campaigns.filter(({ table }) => table !== undefined && isOf(table, round))
  const told = toldIn(
    mine.flatMap(({ table }) => table ?? []),
    round,
  )
  return { ...round, distinct: told.size, commits: [...new Set(mine.map(({ commit }) => commit))] }
}

const isOf = (part: Part, { size, digest, number }: Round): boolean =>
  part.size === size && part.digest === digest && part.round === number

const roundOf = ({ size, digest, round }: Part): Round => ({
  size,
  number: round,
  ...(digest === undefined ? {} : { digest }),
})

/** What a campaign has told of its round, as it is written down. */
export const partOf = ({ size, digest, number }: Round, told: [number, number][]): Part => ({
  size,
  ...(digest === undefined ? {} : { digest }),
  round: number,
  told,
})

function toldIn(parts: readonly Part[], round: Round): Set<number> {
  const told = new Set<number>()
  for (const part of parts.filter((each) => isOf(each, round)))
    for (const [first, last] of part.told) for (let seed = first; seed <= last; seed++) told.add(seed)
  return told
}
