import type { Answer } from '../../api/routes.ts'
import { parseDuration } from '../../base/duration.ts'
import { HoldfastError } from '../../base/errors.ts'
import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import { visible } from '../words/output.ts'
import { lasting } from './workspace-words.ts'

type Report = Answer<'workspaces.report'>

export interface ReportFlags {
  readonly since?: string
}

/** From what is recorded alone: it says the same however often it is made. */
export async function showReport({ api, output, clock }: Operator, { since }: ReportFlags): Promise<number> {
  const from = since === undefined ? undefined : instantOf(since, clock.now())
  const report = await api.call('workspaces.report', from === undefined ? {} : { since: from })
  output.result(report, () => describe(report))
  return EXIT.done
}

function instantOf(given: string, now: number): string {
  if (/^\d+(ms|s|m|h|d)$/.test(given)) return new Date(now - parseDuration(given)).toISOString()
  const at = Date.parse(given)
  if (Number.isFinite(at)) return new Date(at).toISOString()
  throw new HoldfastError('usage/since', `"${given}" is no time`, { remedy: 'as in --since 7d or --since 2026-01-31' })
}

function describe(report: Report): string {
  const { runs, open, wouldLand, wouldDiscard, unchanged, from, to } = report
  if (runs === 0) return report.advice
  return [
    `${count(runs, 'run')} in shadow mode${from === undefined || to === undefined ? '' : `, from ${from} to ${to}`}`,
    [
      `would have landed:     ${tally(wouldLand)}`,
      `would have discarded:  ${tally(wouldDiscard)}, which went into your tree instead`,
      `changed nothing:       ${count(unchanged, 'run')}`,
      ...(open === 0 ? [] : [`not looked at yet:     ${count(open, 'run')}`]),
    ].join('\n'),
    describeReasons(report),
    describeChecks(report),
    describeRepositories(report),
    report.advice,
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

const count = (value: number, one: string) => `${value} ${one}${value === 1 ? '' : 's'}`
const tally = ({ runs, files, added, removed }: Report['wouldLand']) =>
  `${count(runs, 'run')} with ${count(files, 'file')} (+${added} −${removed} lines)`

const describeReasons = ({ reasons }: Report) =>
  reasons.length === 0
    ? ''
    : ['why they would have been discarded:', ...reasons.map((each) => `  ${each.runs} × ${line(each.reason)}`)].join(
        '\n',
      )

const line = (text: string) => visible(text).replaceAll('\n', '\\n')

function describeChecks({ checks }: Report): string {
  const { passed, failed, timedOut, notValidated, notReached, without, medianMs, longestMs } = checks
  const said = [
    [passed, 'passed'],
    [failed, 'failed'],
    [timedOut, 'took too long'],
    [notValidated, 'not validated'],
    [notReached, 'not reached, because the run had failed before'],
    [without, 'without a check'],
  ] as const
  const words = said.filter(([number]) => number > 0).map(([number, word]) => `${number} ${word}`)
  const times =
    medianMs === undefined
      ? ''
      : `; half of them within ${lasting(medianMs)}, all within ${lasting(longestMs ?? medianMs)}`
  return `checks: ${words.length === 0 ? 'none' : words.join(', ')}${times}`
}

const describeRepositories = ({ repositories }: Report) =>
  repositories.length < 2
    ? ''
    : [
        'by repository:',
        ...repositories.map(
          ({ repository, wouldLand, wouldDiscard }) =>
            `  ${line(repository)}: ${wouldLand} would have landed, ${wouldDiscard} would have been discarded`,
        ),
      ].join('\n')
