import type { RunId, ScheduleId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { row, text } from '../store/row.ts'
import { held, literals, now, sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { all, first, holding, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { tellThread } from '../threads/notice.ts'
import { findThread } from '../threads/thread.ts'
import { OPEN_OCCURRENCES, occurrenceRow } from './occurrence.ts'
import type { Occurrence } from './occurrence.ts'
import { passDue } from './passed-over.ts'
import { LIVE_SCHEDULES, hash, scheduleRow } from './schedule.ts'
import type { Retry, Schedule } from './schedule.ts'

/*
 * The one way in which an occurrence comes to its end, for firings on time, by hand, caught up and recovered alike. Everything
 * that follows is the same transaction: another try, the next in line, the schedule's own end or pause, who is told.
 */

export type Settlement =
  /** `run`: what its run cost. */
  | { readonly kind: 'succeeded'; readonly costMicrousd?: number | 'run' }
  /** The run it led to failed. `transient`: it had done nothing yet, and may be tried again. */
  | { readonly kind: 'failed'; readonly reason: string; readonly transient: boolean; readonly costMicrousd?: number }
  /** It cannot be, whatever one tries. */
  | { readonly kind: 'dropped'; readonly reason: string }
  | { readonly kind: 'skipped'; readonly reason: string }

/** Whoever fires, settles or changes a schedule holds its row first: so none of them misses what another has just done. */
export function* holdSchedule(id: ScheduleId): Transition<Schedule | undefined> {
  return yield* holding(`schedule:${id}`, first(scheduleRow, sql`select * from schedules where id = ${id} ${held}`))
}

export function* settleOccurrence(occurrence: Occurrence, settlement: Settlement): Transition<void> {
  const schedule = yield* holdSchedule(occurrence.scheduleId)
  if (schedule === undefined) return
  const isOver = schedule.state === 'ended' || schedule.state === 'removed'
  const spent = isSpent(schedule, occurrence, settlement)
  if (settlement.kind === 'failed' && settlement.transient && !isOver && !spent) {
    if (occurrence.attempts <= schedule.options.retry.tries) return yield* tryAgain(schedule, occurrence, settlement)
  }
  const settled = yield* writeEnd(occurrence, spent ? withCeiling(settlement) : settlement)
  if (settled === undefined) return
  const told = hasFailed(settled)
    ? yield* tellOwner(schedule, `occurrence:${settled.id}`, wordsOn(schedule, settled))
    : undefined
  const data = { ...briefly(settled, schedule), ...(told === undefined ? {} : { told }) }
  const event = { type: 'occurrence.settled', ...placeOf(settled), data } as const
  // Only who waits for this one is due by it; without such a one nobody need look.
  if (yield* releaseNext(schedule)) yield* record(event)
  else yield* record(event, 'firing.settled')
  yield* follow(schedule, settled)
}

/** Whoever waits for the one that ended is next. */
function* releaseNext({ id }: Schedule): Transition<boolean> {
  const released =
    yield* run(sql`update occurrences set next_attempt_at = ${AT_ONCE} where state = 'due' and waits = 'overlap' and id = (
    select id from occurrences where schedule_id = ${id} and state = 'due' and waits = 'overlap' order by due_at, id limit 1)`)
  return released > 0
}

/** Of what this firing may cost nothing is left for another try. */
function isSpent({ options }: Schedule, { costMicrousd }: Occurrence, settlement: Settlement): boolean {
  if (options.firingMicrousd === undefined || settlement.kind !== 'failed' || !settlement.transient) return false
  return costMicrousd + (settlement.costMicrousd ?? 0) >= options.firingMicrousd
}

const withCeiling = (settlement: Settlement): Settlement =>
  'reason' in settlement ? { ...settlement, reason: `${settlement.reason}; what it may cost is spent` } : settlement

function* tryAgain(
  { options, name }: Schedule,
  occurrence: Occurrence,
  { reason: error, costMicrousd = 0 }: Extract<Settlement, { kind: 'failed' }>,
): Transition<void> {
  const waitMs = waitBefore(options.retry, occurrence)
  const again = yield* first(
    occurrenceRow,
    sql`update occurrences set state = 'due', waits = 'retry', error = ${error}, next_attempt_at = ${now} + ${waitMs}, wait_ms = ${waitMs},
        run_id = null, message_id = null, cost_microusd = cost_microusd + ${costMicrousd}
      where id = ${occurrence.id} and state in (${literals(OPEN_OCCURRENCES)}) and attempts = ${occurrence.attempts} returning *`,
  )
  if (again === undefined) return
  const data = { scheduleId: again.scheduleId, name, dueAt: again.dueAt, attempts: again.attempts, waitMs, error }
  yield* record({ type: 'occurrence.retrying', ...placeOf(occurrence), data })
}

/** 200, 400, 800 ms; with jitter a share more, the same whoever computes it. */
function waitBefore({ baseMs, factor, jitter }: Retry, { id, attempts }: Occurrence): number {
  const waitMs = baseMs * factor ** Math.max(attempts - 1, 0)
  return Math.round(waitMs * (1 + (jitter * (hash(`${id}.${attempts}`) % 1_000)) / 1_000))
}

function* writeEnd(occurrence: Occurrence, settlement: Settlement): Transition<Occurrence | undefined> {
  const { state, reason } = endOf(occurrence, settlement)
  const cost = costOf(settlement)
  return yield* first(
    occurrenceRow,
    sql`update occurrences set state = ${state}, reason = ${reason}, error = ${settlement.kind === 'failed' ? settlement.reason : occurrence.error},
        waits = null, next_attempt_at = null, wait_ms = null, settled_at = ${now}, cost_microusd = cost_microusd + ${cost}
      where id = ${occurrence.id} and state in (${literals(OPEN_OCCURRENCES)}) returning *`,
  )
}

function costOf(settlement: Settlement): Sql {
  const cost = 'costMicrousd' in settlement ? (settlement.costMicrousd ?? 0) : 0
  return cost === 'run'
    ? sql`coalesce((select r.cost_microusd from runs r where r.id = occurrences.run_id), 0)`
    : sql`${cost}`
}

/** What failed for now, and was tried as often as it may be, is dropped: the last error and the number of attempts say why. */
function endOf({ attempts }: Occurrence, settlement: Settlement) {
  if (settlement.kind === 'succeeded') return { state: 'succeeded', reason: null } as const
  if (settlement.kind !== 'failed' || !settlement.transient)
    return { state: settlement.kind, reason: settlement.reason } as const
  return {
    state: 'dropped',
    reason: `${settlement.reason} (after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'})`,
  } as const
}

const placeOf = ({ threadId, runId }: Occurrence) => ({
  ...(threadId === null ? {} : { threadId }),
  ...(runId === null ? {} : { runId }),
})

const briefly = ({ scheduleId, dueAt, state, reason, attempts, origin }: Occurrence, { name }: Schedule) => ({
  scheduleId,
  name,
  dueAt,
  state,
  origin,
  attempts,
  ...(reason === null ? {} : { reason }),
})

/** One that gave way to the next is nobody's failure. */
const hasFailed = (occurrence: Occurrence) =>
  (occurrence.state === 'failed' || occurrence.state === 'dropped') && !gaveWay(occurrence)

const gaveWay = ({ reason }: Occurrence) => reason?.startsWith(OVERLAP) === true

/** Whose turn has come: no clock that is set back makes it wait. */
export const AT_ONCE = 0

/** How the reasons of those begin that met another one of their schedule. */
export const OVERLAP = 'overlap: '

function* follow(schedule: Schedule, settled: Occurrence): Transition<void> {
  const failures = settled.state === 'succeeded' ? 0 : schedule.failures + (hasFailed(settled) ? 1 : 0)
  if (failures !== schedule.failures)
    yield* run(sql`update schedules set failures = ${failures} where id = ${schedule.id}`)
  const { state, options } = schedule
  if (state === 'ended' || state === 'removed') return
  // A firing by hand is none of its own: the regular one is still to come.
  if (options.deleteAfterRun && settled.state !== 'skipped' && settled.origin !== 'run_now' && !gaveWay(settled))
    return void (yield* endSchedule(schedule, 'removed', `it was to be deleted after its run: ${settled.state}`))
  if (schedule.nextAt === null) return yield* endWhenOver(schedule, settled)
  if (state !== 'active' || options.pauseAfter === 0 || failures < options.pauseAfter) return
  yield* pauseItself(schedule, settled, failures)
}

function* pauseItself(schedule: Schedule, last: Occurrence, failures: number): Transition<void> {
  const reason = failures === 1 ? 'a failure' : `${failures} failures in a row`
  const paused = yield* run(
    sql`update schedules set state = 'paused', reason = ${reason}, updated_at = ${now} where id = ${schedule.id} and state = 'active'`,
  )
  if (paused === 0) return
  const words = `your job ${schedule.name} is paused after ${reason}; look at it with \`holdfast schedule show ${schedule.name}\``
  const told = yield* tellOwner(schedule, `paused:${last.id}`, words)
  const data = { scheduleId: schedule.id, name: schedule.name, reason, by: 'itself', told }
  yield* record({ type: 'schedule.paused', data })
}

const openRow = row({ id: text() })

/** No instant lies ahead: once nothing of it is open any more, it is over. */
export function* endWhenOver(schedule: Schedule, last?: Occurrence): Transition<void> {
  const open = yield* first(
    openRow,
    sql`select id from occurrences where schedule_id = ${schedule.id} and state in (${literals(OPEN_OCCURRENCES)}) limit 1`,
  )
  if (open !== undefined) return
  const why = last === undefined ? 'no instant lies ahead' : `its last firing ${last.state}`
  yield* endSchedule(schedule, 'ended', last?.reason == null ? why : `${why}: ${last.reason}`)
}

/** It never fires again. What of it is under way goes on to its own end; what had come due and was not begun has its line. */
export function* endSchedule(schedule: Schedule, state: 'ended' | 'removed', reason: string): Transition<boolean> {
  if (schedule.state === 'active' || schedule.state === 'paused')
    yield* passDue(schedule, `its schedule is over: ${reason}`)
  const ended = yield* run(
    sql`update schedules set state = ${state}, reason = ${reason}, next_at = null, next_fire_at = null, ended_at = ${now}, updated_at = ${now}
      where id = ${schedule.id} and state not in ('removed', ${state})`,
  )
  if (ended === 0) return false
  const data = { scheduleId: schedule.id, name: schedule.name, state, reason }
  const place = schedule.targetThread === null ? {} : { threadId: schedule.targetThread }
  yield* record({ type: 'schedule.ended', ...place, data }, 'firing.over')
  return true
}

/** Its owner, else the owner's parent; `operator`: there is neither, and the event is for a person. */
function* tellOwner(schedule: Schedule, key: string, words: string): Transition<'owner' | 'parent' | 'operator'> {
  const { ownerThread } = schedule
  if (ownerThread === null) return 'operator'
  if (yield* tellThread(ownerThread, key, words)) return 'owner'
  const parent: ThreadId | null = (yield* findThread.single(ownerThread))?.parentId ?? null
  return parent !== null && (yield* tellThread(parent, key, words)) ? 'parent' : 'operator'
}

function wordsOn({ name, kind }: Schedule, { dueAt, state, reason, attempts }: Occurrence): string {
  const what = kind === 'followup' ? 'follow-up' : 'job'
  const tries = attempts > 1 ? `, tried ${attempts} times` : ''
  return `the ${what} ${name} that was due at ${new Date(dueAt).toISOString()} ${state === 'failed' ? 'failed' : 'was dropped'}${tries}: ${reason ?? 'for a reason that is not known'}`
}

/** The message of a firing was taken: by a run, whose end will be its outcome, or by hand, and then that is all there is. */
export function* leadsTo(messageId: string, runId: RunId | null): Transition<void> {
  if (runId === null) return yield* settleByMessage(messageId, { kind: 'succeeded' })
  yield* run(sql`update occurrences set run_id = ${runId} where message_id = ${messageId} and state = 'dispatched'`)
}

export function* settleByMessage(messageId: string, settlement: Settlement): Transition<void> {
  const found = yield* first(
    occurrenceRow,
    sql`select * from occurrences where message_id = ${messageId} and state = 'dispatched'`,
  )
  if (found !== undefined) yield* settleOccurrence(found, settlement)
}

/** A stopped thread goes on: what came due meanwhile does too. */
export function* releaseHeld(threadId: ThreadId): Transition<void> {
  yield* run(sql`update occurrences set next_attempt_at = ${AT_ONCE}
    where thread_id = ${threadId} and state = 'due' and waits = 'thread' and next_attempt_at is null`)
}

const liveSchedulesOf = single((threadId: ThreadId) =>
  all(
    scheduleRow,
    sql`select * from schedules where target_thread = ${threadId} and state in (${literals(LIVE_SCHEDULES)}) order by id`,
  ),
)

/** A session begins anew on its thread: what was scheduled for that is still to come. */
export function* followGeneration(threadId: ThreadId, generation: number): Transition<void> {
  for (const { id } of yield* liveSchedulesOf.single(threadId)) {
    const schedule = yield* holdSchedule(id)
    if (schedule?.target.kind !== 'message') continue
    const target = JSON.stringify({ ...schedule.target, generation })
    yield* run(sql`update schedules set target = ${target}, version = version + 1 where id = ${id}`)
  }
}

export function* holdSchedulesOf(threadId: ThreadId): Transition<void> {
  for (const { id } of yield* liveSchedulesOf.single(threadId)) yield* holdSchedule(id)
}

/** A thread is removed: what was scheduled for it ends, with what of it is still to come. */
export function* endSchedulesOf(threadId: ThreadId): Transition<void> {
  const reason = `the thread ${threadId} was removed`
  for (const { id } of yield* liveSchedulesOf.single(threadId)) {
    const schedule = yield* holdSchedule(id)
    if (schedule === undefined || !(yield* endSchedule(schedule, 'ended', reason))) continue
    yield* tellOwner(
      schedule,
      `ended:${id}`,
      `your ${schedule.kind === 'followup' ? 'follow-up' : 'job'} ${schedule.name} has ended: ${reason}`,
    )
    for (const open of yield* openDue(id)) yield* settleOccurrence(open, { kind: 'dropped', reason })
  }
}

function* openDue(id: ScheduleId): Transition<Occurrence[]> {
  return yield* all(
    occurrenceRow,
    sql`select * from occurrences where schedule_id = ${id} and state = 'due' order by due_at`,
  )
}

/** What a run that has ended was the firing of. */
export function* occurrencesOfRun(runId: RunId): Transition<Occurrence[]> {
  return yield* all(
    occurrenceRow,
    sql`select * from occurrences where run_id = ${runId} and state = 'dispatched' order by due_at, id`,
  )
}
