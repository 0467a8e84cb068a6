import { invariant } from '../base/errors.ts'
import type { OccurrenceId, ScheduleId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import type { ClaimedCall } from '../runs/call.ts'
import { storeTime } from '../store/clock.ts'
import { integer, row } from '../store/row.ts'
import { literals, now, skipLocked, sql } from '../store/sql.ts'
import { all, first, holding, one, run, single, together } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { dispatch } from './dispatch.ts'
import type { FiringIds } from './dispatch.ts'
import { OPEN_OCCURRENCES, findOccurrence, occurrenceRow, openOccurrences } from './occurrence.ts'
import type { Occurrence } from './occurrence.ts'
import { passOver } from './passed-over.ts'
import { planFiring } from './plan.ts'
import type { Firing, Plan } from './plan.ts'
import { findSchedule, jitterOf, scheduleRow } from './schedule.ts'
import type { Schedule } from './schedule.ts'
import { AT_ONCE, OVERLAP, endWhenOver, holdSchedule, settleOccurrence } from './settle.ts'
import { takeBack } from './take-back.ts'

export type Fired =
  | {
      readonly kind: 'fired'
      readonly occurrences: readonly OccurrenceId[]
      /** What took the place that there was for it. */
      readonly call?: ClaimedCall
    }
  /** Somebody else did, or it was changed or paused meanwhile. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'not-due' }

/**
 * Acts on a schedule's due instant: its line in the ledger, the schedule's next instant and the dispatch are one transaction.
 * Of several that try, the one that moves `next_at` fires.
 */
export function* fireSchedule(id: ScheduleId, dueAt: number, ids: FiringIds): Transition<Fired> {
  const [schedule, { at }] = yield* together([dueNow(id, dueAt), storeTime.single()])
  if (schedule === undefined) return { kind: 'lost' }
  if ((schedule.nextFireAt ?? at) > at) return { kind: 'not-due' }
  const plan = planFiring(schedule, at)
  const advanced = yield* advance(schedule, plan)
  if (advanced === undefined) return { kind: 'lost' }
  for (const passed of plan.passedOver) yield* passOver(schedule, passed)
  const occurrences: OccurrenceId[] = []
  let isUnderWay = false
  let call: ClaimedCall | undefined
  for (const [index, firing] of plan.fire.entries()) {
    const occurrence = { ...firing, id: `${id}.${firing.dueAt}` as OccurrenceId }
    const begun = yield* begin(advanced, occurrence, index === 0 ? ids : undefined)
    if (begun === undefined) continue
    occurrences.push(begun.occurrence.id)
    isUnderWay ||= begun.isUnderWay
    call ??= begun.call
  }
  // Its end comes with that of what was begun.
  if (advanced.nextAt === null && !isUnderWay) {
    const held = yield* findSchedule.single(id)
    if (held?.state === 'active') yield* endWhenOver(held)
  }
  return { kind: 'fired', occurrences, ...(call === undefined ? {} : { call }) }
}

/** One that another process is firing, or somebody is changing, is not waited for: others are due, and it is looked at again. */
const dueNow = (id: ScheduleId, dueAt: number) =>
  first(
    scheduleRow,
    sql`select * from schedules where id = ${id} and state = 'active' and next_at = ${dueAt} ${skipLocked}`,
  )

function* advance(schedule: Schedule, { next, fire }: Plan): Transition<Schedule | undefined> {
  const { id, options } = schedule
  const firings = schedule.firings + fire.length
  const isLast = options.maxFirings !== undefined && firings >= options.maxFirings
  const nextAt = isLast || next === undefined ? null : next
  const nextFireAt = nextAt === null ? null : nextAt + jitterOf(id, nextAt, options.jitterMs)
  return yield* holding(
    `schedule:${id}`,
    first(
      scheduleRow,
      sql`update schedules set next_at = ${nextAt}, next_fire_at = ${nextFireAt}, firings = ${firings}
        where id = ${id} and state = 'active' and next_at = ${schedule.nextAt} and version = ${schedule.version} returning *`,
    ),
  )
}

type NewOccurrence = Pick<Firing, 'dueAt' | 'lateMs'> & {
  readonly id: OccurrenceId
  readonly origin: Occurrence['origin']
  readonly byWhom?: string
}

/**
 * Stores an occurrence and begins it, unless the one before it or the day's spending is in the way. Without ids it follows
 * another one that is caught up. Undefined: this instant has its line already, from before the schedule was changed.
 */
function* begin(schedule: Schedule, occurrence: NewOccurrence, ids?: FiringIds): Transition<Begun | undefined> {
  const [before, stored] = yield* together([
    openOccurrences.single(schedule.id),
    first(
      occurrenceRow,
      sql`insert into occurrences (id, schedule_id, due_at, origin, state, late_ms, thread_id, by_whom, created_at)
        values (${occurrence.id}, ${schedule.id}, ${occurrence.dueAt}, ${occurrence.origin}, 'due', ${occurrence.lateMs},
          ${schedule.targetThread}, ${occurrence.byWhom ?? null}, ${now}) on conflict do nothing returning *`,
    ),
  ])
  if (stored === undefined) return undefined
  const spent = yield* daySpent(schedule)
  if (spent === undefined && before.length === 0 && ids !== undefined)
    return { occurrence: stored, ...(yield* attempt(schedule, stored, ids)) }
  if (spent !== undefined) yield* settleOccurrence(stored, { kind: 'skipped', reason: spent })
  else if (before.length === 0) yield* release(stored)
  else yield* overlap(schedule, stored, before, ids === undefined)
  return { occurrence: stored, isUnderWay: false }
}

interface Attempted {
  /** It is dispatched: something else will end it. */
  readonly isUnderWay: boolean
  readonly call?: ClaimedCall
}

type Begun = Attempted & { readonly occurrence: Occurrence }

const NOT_UNDER_WAY: Attempted = { isUnderWay: false }

const sumRow = row({ spent: integer })

function* daySpent({ id, options }: Schedule): Transition<string | undefined> {
  if (options.dayMicrousd === undefined) return undefined
  const { spent } = yield* one(
    sumRow,
    sql`select coalesce(sum(o.cost_microusd + case when o.settled_at is null then coalesce(r.cost_microusd, 0) else 0 end), 0) as spent
      from occurrences o left join runs r on r.id = o.run_id
      where o.schedule_id = ${id} and coalesce(o.settled_at, ${now}) > ${now} - 86400000`,
  )
  if (spent < options.dayMicrousd) return undefined
  return `spend: ${spent / 1e6} USD within a day, ${options.dayMicrousd / 1e6} at most`
}

function* overlap(
  schedule: Schedule,
  stored: Occurrence,
  before: readonly Occurrence[],
  isFollower: boolean,
): Transition<void> {
  const running = before[0]
  // Those that are caught up follow each other: their number has its own limit.
  if (isFollower && before.filter(isQueued).length < catchUpLimit(schedule))
    return yield* wait(stored, `the one that was due at ${words(running)} comes first`)
  if (schedule.options.overlap === 'cancel' && !isFollower) return yield* takePlace(schedule, stored, before)
  if (schedule.options.overlap === 'queue' && !isFollower && !before.some(isQueued))
    return yield* wait(stored, `the one that was due at ${words(running)} is still at work`)
  const reason = `${OVERLAP}the one that was due at ${words(running)} is still ${running === undefined || isQueued(running) ? 'waiting' : 'at work'}`
  yield* settleOccurrence(stored, { kind: 'skipped', reason })
}

const catchUpLimit = ({ options: { misfire } }: Schedule) => (misfire.policy === 'each' ? misfire.limit : 1)
const isQueued = ({ waits }: Occurrence) => waits === 'overlap'
const words = (occurrence: Occurrence | undefined) =>
  occurrence === undefined ? 'an earlier instant' : new Date(occurrence.dueAt).toISOString()

/** The old ones end for the new one; it begins when they have. */
function* takePlace({ id }: Schedule, stored: Occurrence, before: readonly Occurrence[]): Transition<void> {
  const reason = `${OVERLAP}the one that is due at ${words(stored)} takes its place`
  for (const old of before) yield* takeBack(old.id, 'its schedule', reason)
  const open = (yield* openOccurrences.single(id)).filter((other) => other.id !== stored.id)
  yield* open.length === 0
    ? release(stored)
    : wait(stored, `waits for the end of the one that was due at ${words(open[0])}`)
}

function* wait({ id, scheduleId, dueAt }: Occurrence, reason: string): Transition<void> {
  yield* run(sql`update occurrences set waits = 'overlap', reason = ${reason} where id = ${id} and state = 'due'`)
  yield* record({ type: 'occurrence.waiting', data: { scheduleId, dueAt, waits: 'overlap', reason } })
}

/** Its turn has come: whoever looks next begins it. */
function* release({ id }: Occurrence): Transition<void> {
  yield* run(
    sql`update occurrences set waits = 'overlap', next_attempt_at = ${AT_ONCE} where id = ${id} and state = 'due'`,
  )
}

function* attempt(schedule: Schedule, occurrence: Occurrence, ids: FiringIds): Transition<Attempted> {
  const result = yield* dispatch(schedule, occurrence, ids)
  const attempts = occurrence.attempts + 1
  if (result.kind === 'held') {
    yield* holdForThread(occurrence, result.threadId)
    return NOT_UNDER_WAY
  }
  if (result.kind === 'failed') {
    const tried = { ...occurrence, attempts }
    yield* run(sql`update occurrences set attempts = ${attempts}, run_id = null, message_id = null
      where id = ${occurrence.id} and state in (${literals(OPEN_OCCURRENCES)})`)
    const { error: reason, transient } = result
    yield* settleOccurrence(tried, transient ? { kind: 'failed', reason, transient } : { kind: 'dropped', reason })
    return NOT_UNDER_WAY
  }
  const { threadId, runId } = result
  const { scheduleId, dueAt, lateMs, origin } = occurrence
  const data = { scheduleId, name: schedule.name, dueAt, lateMs, origin, attempts }
  // Nothing of it is due any more: whoever looks for that need not look again.
  const event = { type: 'occurrence.dispatched', threadId, ...(runId === undefined ? {} : { runId }), data } as const
  yield* record(event, 'firing.dispatched')
  return { isUnderWay: true, ...(result.call === undefined ? {} : { call: result.call }) }
}

function* holdForThread({ id, scheduleId, dueAt }: Occurrence, threadId: string): Transition<void> {
  const reason = 'its thread is stopped'
  yield* run(sql`update occurrences set waits = 'thread', next_attempt_at = null, reason = ${reason}, thread_id = ${threadId}
    where id = ${id} and state = 'due'`)
  yield* record({ type: 'occurrence.waiting', data: { scheduleId, dueAt, waits: 'thread', reason } })
}

/** Its time has come; or the clock was set back to before its wait began, and nobody waits for that twice. */
const HAS_COME = sql`next_attempt_at is not null and (next_attempt_at <= ${now} or next_attempt_at - wait_ms > ${now})`

/** What failed for now, waited for the one before it, or for its thread: its time has come. */
export function* fireAgain(id: OccurrenceId, ids: FiringIds): Transition<Fired> {
  const known = yield* findOccurrence.single(id)
  if (known === undefined) return { kind: 'lost' }
  const schedule = yield* holdSchedule(known.scheduleId)
  const mine = yield* first(
    occurrenceRow,
    sql`update occurrences set next_attempt_at = null
      where id = ${id} and state = 'due' and ${HAS_COME} returning *`,
  )
  if (schedule === undefined || mine === undefined) return { kind: 'lost' }
  const others = (yield* openOccurrences.single(schedule.id)).filter((other) => other.id !== id)
  if (mine.waits === 'overlap' && others.some((other) => !isQueued(other))) return { kind: 'lost' }
  const obstacle = yield* inTheWay(schedule, mine)
  // Of one that was never begun nothing is lost that anybody must be told.
  if (obstacle !== undefined)
    yield* settleOccurrence(mine, { kind: mine.attempts === 0 ? 'skipped' : 'dropped', reason: obstacle })
  else yield* attempt(schedule, mine, ids)
  return { kind: 'fired', occurrences: [id] }
}

/** Why one that waited is not begun any more. What is under way goes on while its schedule is paused; so does what a person asked for. */
function* inTheWay(schedule: Schedule, { attempts, origin }: Occurrence): Transition<string | undefined> {
  const { state, reason } = schedule
  if (state === 'ended' || state === 'removed') return `its schedule is over: ${reason ?? state}`
  if (state === 'paused' && attempts === 0 && origin !== 'run_now') return `paused: ${reason ?? 'by somebody'}`
  return yield* daySpent(schedule)
}

/**
 * A firing that could not even be tried: something in it threw. Its instant is settled all the same, or it would come again
 * and again; a rule that cannot be read any more is the end of its schedule.
 */
export function* fireBroken(id: ScheduleId, dueAt: number, error: string): Transition<Fired> {
  const schedule = yield* holdSchedule(id)
  if (schedule?.state !== 'active' || schedule.nextAt !== dueAt) return { kind: 'lost' }
  const { at } = yield* storeTime.single()
  const plan = planAnyway(schedule, dueAt, at)
  if ((yield* advance(schedule, plan)) === undefined) return { kind: 'lost' }
  for (const passed of plan.passedOver) yield* passOver(schedule, passed)
  const occurrences: OccurrenceId[] = []
  for (const firing of plan.fire) {
    const stored = yield* first(
      occurrenceRow,
      sql`insert into occurrences (id, schedule_id, due_at, origin, state, attempts, late_ms, thread_id, created_at)
        values (${`${id}.${firing.dueAt}`}, ${id}, ${firing.dueAt}, ${firing.origin}, 'due', 1, ${firing.lateMs},
          ${schedule.targetThread}, ${now}) on conflict do nothing returning *`,
    )
    if (stored === undefined) continue
    yield* settleOccurrence(stored, { kind: 'dropped', reason: `it could not be carried out: ${error}` })
    occurrences.push(stored.id)
  }
  return { kind: 'fired', occurrences }
}

function planAnyway(schedule: Schedule, dueAt: number, at: number): Plan {
  try {
    return planFiring(schedule, at)
  } catch {
    return { passedOver: [], fire: [{ dueAt, lateMs: Math.max(at - dueAt, 0), origin: 'due' }], next: undefined }
  }
}

/** The same for one that was to be tried again. */
export function* againBroken(id: OccurrenceId, error: string): Transition<Fired> {
  const known = yield* findOccurrence.single(id)
  if (known?.state !== 'due') return { kind: 'lost' }
  yield* settleOccurrence(known, { kind: 'dropped', reason: `it could not be carried out: ${error}` })
  return { kind: 'fired', occurrences: [id] }
}

export type RunNow =
  | { readonly kind: 'begun'; readonly occurrence: Occurrence }
  /** Its schedule is over, and never fires again. */
  | { readonly kind: 'over'; readonly schedule: Schedule }
  | { readonly kind: 'unknown' }

/** A firing by hand, also of a paused schedule: settled like any other, and the next regular one stays where it is. */
export function* runNow(id: ScheduleId, key: string, by: string, ids: FiringIds): Transition<RunNow> {
  const schedule = yield* holdSchedule(id)
  if (schedule === undefined) return { kind: 'unknown' }
  const occurrenceId = `${id}.now.${key}` as OccurrenceId
  const known = yield* findOccurrence.single(occurrenceId)
  if (known !== undefined) return { kind: 'begun', occurrence: known }
  if (schedule.state === 'ended' || schedule.state === 'removed') return { kind: 'over', schedule }
  const { at } = yield* storeTime.single()
  const asked = { id: occurrenceId, dueAt: at, lateMs: 0, origin: 'run_now', byWhom: by } as const
  const begun = yield* begin(schedule, asked, ids)
  invariant(begun !== undefined, 'a firing by hand has a name of its own')
  const { occurrence } = begun
  return { kind: 'begun', occurrence: (yield* findOccurrence.single(occurrence.id)) ?? occurrence }
}

const dueRow = row({ id: (cell): ScheduleId => cell as ScheduleId, nextAt: integer, calls: functionIn })

/** By how a target begins: it may be long. Where it does not say so, the call waits until somebody takes it. */
function functionIn(cell: unknown): string | undefined {
  return /^\{"kind":"call","function":"([^"\\]+)"/.exec(String(cell))?.[1]
}

const againRow = row({ id: (cell): OccurrenceId => cell as OccurrenceId })

/** Whose instant has come, the earliest first. */
export const dueSchedules = single((limit: number) =>
  all(
    dueRow,
    sql`select id, next_at, substr(target, 1, 300) as calls from schedules
      where state = 'active' and next_fire_at is not null and next_fire_at <= ${now}
      order by next_fire_at limit ${limit}`,
  ),
)

export const dueAgain = single((limit: number) =>
  all(
    againRow,
    sql`select id from occurrences where state = 'due' and ${HAS_COME} order by next_attempt_at limit ${limit}`,
  ),
)

const waitRow = row({ waitMs: (cell, column) => (cell === null ? null : integer(cell, column)) })

/** How long until something is due, by the database's own clock; null: nothing is. */
export const untilNext = single(() =>
  one(
    waitRow,
    sql`select min(at) - ${now} as wait_ms from (
      select min(next_fire_at) as at from schedules where state = 'active' and next_fire_at is not null
      union all select min(next_attempt_at) from occurrences where state = 'due' and next_attempt_at is not null) as instants`,
  ),
)
