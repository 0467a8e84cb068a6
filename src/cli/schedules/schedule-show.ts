import { formatDuration } from '../../base/duration.ts'
import { LIMITS } from '../../base/limits.ts'
import { DECISION } from '../../runs/park.ts'
import { fromNow, rounded, shownTime } from '../../schedule/words.ts'
import type { Answer } from '../../api/routes.ts'
import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import { ago, table, visibleLine } from '../words/output.ts'
import { describeOptions, describeTarget, describeWhen } from './schedule-words.ts'
import type { OccurrenceView } from '../words/views.ts'

type Whole = Answer<'schedules.show'>

/** The last and the next firings, with now between them. */
export async function show({ api, output, clock }: Operator, given: string): Promise<number> {
  const schedule = await api.call('schedules.show', { schedule: given })
  output.result(schedule, () => [describe(schedule, clock.now()), draw(schedule, clock.now())].join('\n\n'))
  return EXIT.done
}

function describe(schedule: Whole, now: number): string {
  const {
    name,
    id,
    kind,
    state,
    reason,
    target,
    options,
    ownerThreadId: owner,
    ownerAgent,
    failures,
    firings,
  } = schedule
  const isCommand = target.kind === 'command'
  const lines = [
    [kind === 'followup' ? 'follow-up' : 'schedule', name === id ? id : `${name} (${id})`],
    ['state', reason?.startsWith(state) === true ? reason : `${state}${reason === undefined ? '' : `: ${reason}`}`],
    ['when', describeWhen(schedule)],
    ['what', describeTarget(target)],
    ['folder', isCommand ? target.cwd : ''],
    ['timeout', isCommand && target.timeoutMs !== undefined ? formatDuration(target.timeoutMs) : ''],
    ['why', options.why ?? ''],
    ['rules', describeOptions(options, schedule.zone).join('; ')],
    ['owner', owner === undefined ? '' : `${owner}${ownerAgent === undefined ? '' : ` (${ownerAgent})`}`],
    ['made', `${ago(Date.parse(schedule.createdAt), now)} by ${schedule.madeBy}`],
    ['firings', `${firings}${failures === 0 ? '' : `, the last ${failures === 1 ? 'one' : failures} failed`}`],
  ]
  return lines
    .filter(([, value]) => value !== '')
    .map(([label, value]) => `${`${label}:`.padEnd(10)} ${visibleLine(value ?? '')}`)
    .join('\n')
}

function draw(schedule: Whole, now: number): string {
  const { zone, last } = schedule
  const next = schedule.next.map(({ at }) => Date.parse(at))
  const rows = [
    ...last.map((each) => [
      `${MARKS[each.state]} ${shownTime(Date.parse(each.dueAt), zone)}`,
      stateOf(each),
      remarksOn(each, zone),
    ]),
    [`▸ ${shownTime(now, zone)}`, 'now', ''],
    ...next.map((at) => [`· ${shownTime(at, zone)}`, at <= now ? 'due' : 'to come', fromNow(at, now)]),
  ]
  return [table([`  TIME IN ${zone}`, 'STATE', ''], rows), ...whyNothing(schedule)].join('\n')
}

function whyNothing({ state, name, next }: Whole): string[] {
  if (state === 'paused') return [`  nothing fires before \`holdfast schedule resume ${name}\``]
  return next.length === 0 ? ['  nothing comes any more'] : []
}

const MARKS = { due: '…', dispatched: '…', succeeded: '✓', failed: '✗', dropped: '✗', skipped: '–' } as const

/** One that is under way is what its run is. */
export function stateOf({ state, waits, runState, runParkedFor }: OccurrenceView): string {
  if (state === 'due') return waits === 'retry' ? 'to be retried' : 'waiting'
  if (state !== 'dispatched') return state
  if (runState === undefined) return 'in the inbox'
  if (runState === 'parked') return runParkedFor === DECISION ? 'waiting for a person' : 'parked'
  return runState === 'queued' ? 'queued' : 'at work'
}

/** A second is nothing: a commit and a look at the clock. */
const LATE_MS = 1_000

export function remarksOn(occurrence: OccurrenceView, zone: string): string {
  const { reason, error, attempts, lateMs, origin, instants = 1, lastAt, nextAttemptAt, waits, runId, by } = occurrence
  const shown = (at: string) => shownTime(Date.parse(at), zone)
  return [
    instants > 1
      ? `${instants === LIMITS.instantsCounted ? `${instants} or more` : instants} instants${lastAt === undefined ? '' : ` until ${shown(lastAt)}`}`
      : '',
    origin === 'run_now' ? `by hand${by === undefined ? '' : ` (${by})`}` : '',
    lateMs >= LATE_MS ? `${rounded(lateMs)} late` : '',
    attempts > 1 ? `${attempts} attempts` : '',
    reason ?? (waits === 'retry' ? (error ?? '') : ''),
    waits === 'retry' && nextAttemptAt !== undefined ? `again at ${shown(nextAttemptAt)}` : '',
    runId ?? '',
  ]
    .filter((part) => part !== '')
    .join('; ')
}
