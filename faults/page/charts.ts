/** One plot of faults for each method, and one of recovery times where there are any. */
import type { Bar, Chart } from '../../scripts/docs/svg.ts'
import { RECOVERY_MS } from '../totals.ts'
import type { CampaignTotal, Total } from '../totals.ts'
import type { Described } from './described.ts'

export interface Plot extends Chart {
  readonly file: string
}

/** More lines than that nobody reads. */
const MOST_CAMPAIGNS = 12
const MOST_KINDS = 16
const USUAL_TIMES = 'from the last fault until everything had come to its end'

export function plotsOf({ name, heading, times = USUAL_TIMES }: Described, total: Total): Plot[] {
  const faults: Plot = {
    file: name,
    title: `${heading}: faults`,
    subtitle: 'by kind, and in all after each campaign',
    unit: '',
    scale: 'log',
    legend: false,
    bars: [...kindBars(total), ...campaignBars(total.campaigns)],
  }
  const recovery: Plot = {
    file: `${name}-recovery`,
    title: `${heading}: recovery`,
    subtitle: `cases, by the time: ${times}`,
    unit: '',
    scale: 'linear',
    legend: false,
    bars: total.recovery.map((value, place) => ({ label: className(place), value, kind: 'ours' })),
  }
  return [faults, recovery].filter(({ bars }) => bars.some(({ value }) => (value ?? 0) > 0))
}

function kindBars({ faults }: Total): Bar[] {
  const sorted = Object.entries(faults).toSorted(([, one], [, other]) => other - one)
  const rest = sorted.slice(MOST_KINDS)
  const shown =
    rest.length === 0 ? sorted : [...sorted.slice(0, MOST_KINDS), [`${rest.length} other kinds`, sum(rest)] as const]
  return shown.map(([label, value]) => ({ group: 'by kind', label, value, kind: 'ours' }))
}

const sum = (entries: readonly (readonly [string, number])[]) => entries.reduce((all, [, value]) => all + value, 0)

/** What had come together by the end of each; of many, the newest. */
function campaignBars(campaigns: readonly CampaignTotal[]): Bar[] {
  let all = 0
  return campaigns
    .map(({ at, commit, faults }): Bar => {
      all += faults
      return {
        group: 'in all, after the campaign of',
        label: `${at.replace('T', ' ')}, ${commit}`,
        value: all,
        kind: 'raw',
      }
    })
    .slice(-MOST_CAMPAIGNS)
}

export const inTime = (ms: number) => (ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`)

const className = (place: number) => {
  const most = RECOVERY_MS[place]
  return most === undefined ? `over ${inTime(RECOVERY_MS.at(-1) ?? 0)}` : `up to ${inTime(most)}`
}

/** The class in which this share of the cases has recovered; undefined: none was measured. */
export function recoveredWithin({ recovery }: Pick<Total, 'recovery'>, share: number): string | undefined {
  const all = recovery.reduce((before, value) => before + value, 0)
  let seen = 0
  for (const [place, value] of recovery.entries()) {
    seen += value
    if (all > 0 && seen >= all * share) return className(place)
  }
  return undefined
}
