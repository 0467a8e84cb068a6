/**
 * Puts the campaigns of two counter files together, such as those of two clones, in the first of them.
 *
 *   node faults/merge.ts INTO.json FROM.json
 *
 * What both have is counted once.
 */
import type { CampaignTotal, Total, Totals } from './totals.ts'
import { enter, readTotals, writeTotals } from './totals.ts'

/** The first campaigns have no name: nobody began two of the same seeds in the same minute. */
const nameOf = ({ id, at, commit, first, last, cases }: CampaignTotal) =>
  id ?? [at, commit, first, last, cases].join(' ')

export function merge(one: Totals, other: Totals): Totals {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries(
    [...names].map((name) => {
      const [left, right] = [one[name], other[name]]
      return [name, left === undefined || right === undefined ? (left ?? right!) : mergeTotal(name, left, right)]
    }),
  )
}

/** Begins with the one that has more campaigns whose figures are only in its sums. */
function mergeTotal(method: string, left: Total, right: Total): Total {
  const [base, added] = isBare(lacking(left, right)) ? [right, left] : [left, right]
  const total = structuredClone(base)
  const missing = lacking(total, added)
  const bare = missing.find(({ own }) => own === undefined)
  if (bare !== undefined)
    throw new Error(
      `${method}: the campaign of ${bare.at} has no figures of its own, and each file has one that the other has not`,
    )
  for (const campaign of missing) enter(total, campaign)
  total.nextSeed = Math.max(base.nextSeed, added.nextSeed)
  total.campaigns.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
  return total
}

const isBare = (campaigns: readonly CampaignTotal[]) => campaigns.some(({ own }) => own === undefined)

/** Those that it has not, or not as far as they have come. */
function lacking(total: Total, other: Total): CampaignTotal[] {
  const known = new Map(total.campaigns.map((campaign) => [nameOf(campaign), campaign.cases]))
  return other.campaigns.filter((campaign) => (known.get(nameOf(campaign)) ?? -1) < campaign.cases)
}

if (import.meta.main) {
  const [into, from] = process.argv.slice(2)
  if (into === undefined || from === undefined) {
    console.error('node faults/merge.ts INTO.json FROM.json')
    process.exit(2)
  }
  writeTotals(into, merge(readTotals(into), readTotals(from)))
}
