import { iso } from '../base/clock.ts'
import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { reportLines } from '../workspace/report.ts'
import type { ReportLine } from '../workspace/report.ts'
import type { Desk } from './desk.ts'
import { filled } from './page.ts'

type Report = Answer<'workspaces.report'>

/** The evidence on which one decides to switch transactions on: what shadows saw, counted. */
export async function report(desk: Desk, ask: Ask<'workspaces.report'>): Promise<Report> {
  const since = ask.since === undefined ? undefined : Date.parse(ask.since)
  if (since !== undefined && !Number.isFinite(since)) {
    throw new HoldfastError('usage/request', `"${ask.since}" is no time`, { remedy: 'as in 2026-01-31T12:00:00Z' })
  }
  return countLines(await shadows(desk, since))
}

async function shadows(desk: Desk, since: number | undefined): Promise<readonly ReportLine[]> {
  const lines: ReportLine[] = []
  for (;;) {
    const after = lines.at(-1)?.runId
    const limit = LIMITS.longestPage
    const page = await desk.read(reportLines, { mode: 'shadow', limit, ...filled({ since, after }) })
    lines.push(...page)
    if (page.length < limit) return lines
  }
}

export function countLines(lines: readonly ReportLine[]): Report {
  const ended = lines.filter(({ state }) => state === 'would_land' || state === 'would_discard')
  const changing = ended.filter(({ changedCount }) => changedCount > 0)
  const discarded = changing.filter(({ state }) => state === 'would_discard')
  const counted = {
    ...spanOf(lines),
    runs: lines.length,
    open: lines.length - ended.length,
    wouldLand: tally(changing.filter(({ state }) => state === 'would_land')),
    wouldDiscard: tally(discarded),
    unchanged: ended.length - changing.length,
    reasons: reasonsOf(discarded),
    checks: checksOf(ended),
    repositories: repositoriesOf(changing),
  }
  return { ...counted, advice: adviceOn(counted) }
}

/** Sorted: there may be more lines than a function takes arguments. */
function spanOf(lines: readonly ReportLine[]): Pick<Report, 'from' | 'to'> {
  const instants = lines.map(({ openedAt }) => openedAt).toSorted((a, b) => a - b)
  const [first, last] = [instants[0], instants.at(-1)]
  return first === undefined || last === undefined ? {} : { from: iso(first), to: iso(last) }
}

const sum = (values: readonly number[]) => values.reduce((total, each) => total + each, 0)

const tally = (lines: readonly ReportLine[]): Report['wouldLand'] => ({
  runs: lines.length,
  files: sum(lines.map(({ changedCount }) => changedCount)),
  added: sum(lines.map(({ linesAdded }) => linesAdded)),
  removed: sum(lines.map(({ linesRemoved }) => linesRemoved)),
})

function reasonsOf(lines: readonly ReportLine[]): Report['reasons'] {
  const groups = Map.groupBy(lines, ({ reason }) => reason ?? 'no reason was recorded')
  return [...groups]
    .map(([reason, all]) => ({ reason, runs: all.length }))
    .toSorted((a, b) => b.runs - a.runs || (a.reason < b.reason ? -1 : 1))
}

function checksOf(lines: readonly ReportLine[]): Report['checks'] {
  // A run that failed is not checked.
  const verdicts = lines.map(({ verdict, runState }) => {
    const said = verdict?.verdict ?? 'none'
    return said === 'none' && runState !== 'succeeded' ? 'not_reached' : said
  })
  const count = (wanted: string) => verdicts.filter((verdict) => verdict === wanted).length
  const times = lines.flatMap(({ verdict }) => verdict?.durationMs ?? []).toSorted((a, b) => a - b)
  const median = times[Math.floor((times.length - 1) / 2)]
  return {
    passed: count('passed'),
    failed: count('failed'),
    timedOut: count('timed_out'),
    notValidated: count('not_validated'),
    notReached: count('not_reached'),
    without: count('none'),
    ...(median === undefined ? {} : { medianMs: median, longestMs: times.at(-1)! }),
  }
}

function repositoriesOf(lines: readonly ReportLine[]): Report['repositories'] {
  return [...Map.groupBy(lines, ({ top }) => top)]
    .map(([repository, all]) => {
      const wouldLand = all.filter(({ state }) => state === 'would_land').length
      return { repository, wouldLand, wouldDiscard: all.length - wouldLand }
    })
    .toSorted((a, b) => (a.repository < b.repository ? -1 : 1))
}

const SWITCH_ON =
  '`holdfast run --workspace DIR --workspace-mode transaction …`, or "mode": "transaction" in the "workspace" of an agent'

function adviceOn({ runs, wouldDiscard, checks }: Omit<Report, 'advice'>): string {
  if (runs === 0)
    return 'no shadow has seen a run yet: `holdfast run --workspace DIR --check CMD -- …` changes nothing and records what a transaction would have done'
  if (wouldDiscard.runs > 0) {
    const them = wouldDiscard.runs === 1 ? 'that run' : `those ${wouldDiscard.runs} runs`
    return `with transactions the half-finished work of ${them} would not have touched your tree. To switch them on: ${SWITCH_ON}`
  }
  const without = checks.without === runs ? ' None of them had a check: add one with --check.' : ''
  return `nothing would have been kept out so far.${without} To switch transactions on: ${SWITCH_ON}`
}
