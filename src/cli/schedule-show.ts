import { localTime } from '../base/zone.ts'
import { formatDuration } from '../base/duration.ts'
import { theSchedule } from '../control/find.ts'
import { findRun } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import { listOccurrences } from '../schedule/occurrence.ts'
import type { Occurrence } from '../schedule/occurrence.ts'
import { until } from '../schedule/plan.ts'
import { nextInstants } from '../schedule/rule.ts'
import type { Schedule } from '../schedule/schedule.ts'
import { viewOccurrence, viewSchedule } from '../schedule/view.ts'
import type { Store } from '../store/store.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import { ago, table, visibleLine } from './output.ts'
import { describeOptions, describeTarget, describeWhen, fromNow, rounded, shownTime, zoneOf } from './schedule-words.ts'

/** An occurrence, and while it is open the run that it led to. */
export interface Line {
  readonly occurrence: Occurrence
  readonly run: Run | undefined
}

export const viewLine = ({ occurrence, run }: Line) => viewOccurrence(occurrence, run)

export async function withRuns(store: Store, occurrences: readonly Occurrence[]): Promise<Line[]> {
  return Promise.all(
    occurrences.map(async (occurrence) => {
      const { runId, state } = occurrence
      const isOpen = state === 'dispatched' && runId !== null
      return { occurrence, run: isOpen ? await store.read(findRun, runId) : undefined }
    }),
  )
}

const LAST = 10
const NEXT = 5

/** The last and the next firings, with now between them. */
export async function show({ runtime, output }: Context, given: string): Promise<number> {
  const { store, clock } = runtime
  const schedule = await theSchedule(store, given)
  const found = await store.read(listOccurrences, { scheduleId: schedule.id, limit: LAST })
  const lines = await withRuns(store, found.toReversed())
  const next = schedule.state === 'active' ? comingInstants(schedule, NEXT) : []
  const zone = zoneOf(schedule.rule)
  const value = {
    ...viewSchedule(schedule),
    zone,
    last: lines.map(viewLine),
    next: next.map((at) => ({ at: new Date(at).toISOString(), local: localTime(at, zone) })),
  }
  output.result(value, () => [describe(schedule, clock.now()), draw(schedule, lines, next, clock.now())].join('\n\n'))
  return EXIT.done
}

/** From the instant that is stored: it may be late, and then it still comes. */
export function comingInstants(schedule: Schedule, count: number): readonly number[] {
  const { nextAt, rule, options, firings } = schedule
  if (nextAt === null) return []
  const left = options.maxFirings === undefined ? count : Math.max(Math.min(count, options.maxFirings - firings), 1)
  return [nextAt, ...nextInstants(rule, nextAt, left - 1)].filter((at) => until({ options }, at) !== undefined)
}

function describe(schedule: Schedule, now: number): string {
  const { name, id, kind, state, reason, rule, target, options, ownerThread, ownerAgent, failures, firings } = schedule
  const zone = zoneOf(rule)
  const isCommand = target.kind === 'command'
  const lines = [
    [kind === 'followup' ? 'follow-up' : 'schedule', name === id ? id : `${name} (${id})`],
    ['state', reason?.startsWith(state) === true ? reason : `${state}${reason === null ? '' : `: ${reason}`}`],
    ['when', describeWhen(rule)],
    ['what', describeTarget(target)],
    ['folder', isCommand ? target.cwd : ''],
    ['timeout', isCommand && target.timeoutMs !== undefined ? formatDuration(target.timeoutMs) : ''],
    ['why', options.why ?? ''],
    ['rules', describeOptions(options, zone).join('; ')],
    ['owner', ownerThread === null ? '' : `${ownerThread}${ownerAgent === null ? '' : ` (${ownerAgent})`}`],
    ['made', `${ago(schedule.createdAt, now)} by ${schedule.madeBy}`],
    ['firings', `${firings}${failures === 0 ? '' : `, the last ${failures === 1 ? 'one' : failures} failed`}`],
  ]
  return lines
    .filter(([, value]) => value !== '')
    .map(([label, value]) => `${`${label}:`.padEnd(10)} ${visibleLine(value ?? '')}`)
    .join('\n')
}

function draw(schedule: Schedule, lines: readonly Line[], next: readonly number[], now: number): string {
  const zone = zoneOf(schedule.rule)
  const rows = [
    ...lines.map((line) => [
      `${MARKS[line.occurrence.state]} ${shownTime(line.occurrence.dueAt, zone)}`,
      stateOf(line),
      remarksOn(line, zone),
    ]),
    [`▸ ${shownTime(now, zone)}`, 'now', ''],
    ...next.map((at) => [`· ${shownTime(at, zone)}`, at <= now ? 'due' : 'to come', fromNow(at, now)]),
  ]
  return [table([`  TIME IN ${zone}`, 'STATE', ''], rows), ...whyNothing(schedule, next)].join('\n')
}

function whyNothing({ state, name }: Schedule, next: readonly number[]): string[] {
  if (state === 'paused') return [`  nothing fires before \`holdfast schedule resume ${name}\``]
  return next.length === 0 ? ['  nothing comes any more'] : []
}

const MARKS = { due: '…', dispatched: '…', succeeded: '✓', failed: '✗', dropped: '✗', skipped: '–' } as const

/** One that is under way is what its run is. */
export function stateOf({ occurrence, run }: Line): string {
  const { state, waits } = occurrence
  if (state === 'due') return waits === 'retry' ? 'to be retried' : 'waiting'
  if (state !== 'dispatched') return state
  if (run === undefined) return 'in the inbox'
  if (run.state === 'parked') return run.parkedFor === 'approval' ? 'waiting for a yes' : 'parked'
  return run.state === 'queued' ? 'queued' : 'at work'
}

/** A second is nothing: a commit and a look at the clock. */
const LATE_MS = 1_000

export function remarksOn({ occurrence }: Line, zone: string): string {
  const { reason, error, attempts, lateMs, origin, instants, lastAt, nextAttemptAt, waits, runId, byWhom } = occurrence
  return [
    instants > 1 ? `${instants} instants${lastAt === null ? '' : ` until ${shownTime(lastAt, zone)}`}` : '',
    origin === 'run_now' ? `by hand${byWhom === null ? '' : ` (${byWhom})`}` : '',
    lateMs >= LATE_MS ? `${rounded(lateMs)} late` : '',
    attempts > 1 ? `${attempts} attempts` : '',
    reason ?? (waits === 'retry' ? (error ?? '') : ''),
    waits === 'retry' && nextAttemptAt !== null ? `again at ${shownTime(nextAttemptAt, zone)}` : '',
    runId ?? '',
  ]
    .filter((part) => part !== '')
    .join('; ')
}
