import { canonicalJson } from '../base/canonical-json.ts'
import { formatDuration } from '../base/duration.ts'
import { HoldfastError } from '../base/errors.ts'
import type { OccurrenceId, RunId, ScheduleId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { storeTime } from '../store/clock.ts'
import { now, sql } from '../store/sql.ts'
import { first, one, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findOccurrence, openOccurrences } from './occurrence.ts'
import { passDue } from './passed-over.ts'
import { until } from './plan.ts'
import { nextAfter, settledFor } from './rule.ts'
import type { NewRule, Rule } from './rule.ts'
import { findSchedule, jitterOf, scheduleRow } from './schedule.ts'
import type { Schedule, ScheduleOptions, Target } from './schedule.ts'
import { AT_ONCE, endSchedule, holdSchedule, settleOccurrence } from './settle.ts'
import { takeBack } from './take-back.ts'

export interface NewSchedule {
  readonly id: ScheduleId
  readonly name: string
  readonly kind: Schedule['kind']
  readonly rule: NewRule
  readonly target: Target
  readonly options: ScheduleOptions
  readonly owner?: { readonly threadId: ThreadId; readonly runId?: RunId; readonly agent?: string }
  readonly madeBy: string
}

export type Added =
  | { readonly kind: 'added'; readonly schedule: Schedule }
  /** The same request, whose first answer was lost. */
  | { readonly kind: 'existing'; readonly schedule: Schedule }
  /** The name belongs to another one that is not over. */
  | { readonly kind: 'taken'; readonly schedule: Schedule }
  /** No instant lies ahead. */
  | { readonly kind: 'never' }

/** Stores a schedule. A name that a living one has is refused: nothing is replaced unasked. */
export function* addSchedule(schedule: NewSchedule): Transition<Added> {
  const known = yield* findSchedule.single(schedule.id)
  if (known !== undefined) return { kind: 'existing', schedule: known }
  const { at } = yield* storeTime.single()
  const rule = settledFor(schedule.rule, at)
  const nextAt = firstInstant(rule, schedule.options, at)
  if (nextAt === undefined) return { kind: 'never' }
  checkJitter(rule, schedule.options, nextAt)
  const { id, name, kind, target, options, owner, madeBy } = schedule
  const stored = yield* first(
    scheduleRow,
    sql`insert into schedules (id, name, kind, state, rule, target, options, target_thread, owner_thread, owner_run, owner_agent, made_by,
        next_at, next_fire_at, created_at, updated_at)
      values (${id}, ${name}, ${kind}, 'active', ${JSON.stringify(rule)}, ${JSON.stringify(target)}, ${JSON.stringify(options)},
        ${target.kind === 'message' ? target.threadId : null}, ${owner?.threadId ?? null}, ${owner?.runId ?? null}, ${owner?.agent ?? null},
        ${madeBy}, ${nextAt}, ${nextAt + jitterOf(id, nextAt, options.jitterMs)}, ${now}, ${now})
      on conflict do nothing returning *`,
  )
  if (stored === undefined) return { kind: 'taken', schedule: yield* livingOf(name) }
  yield* record({
    type: 'schedule.created',
    ...threadOf(stored),
    data: { scheduleId: id, name, kind, by: madeBy, nextAt },
  })
  return { kind: 'added', schedule: stored }
}

const threadOf = ({ targetThread }: Schedule) => (targetThread === null ? {} : { threadId: targetThread })

function* livingOf(name: string): Transition<Schedule> {
  return yield* one(scheduleRow, sql`select * from schedules where name = ${name} and state in ('active', 'paused')`)
}

/** One that was to come once, at an instant that has passed, is late, not gone. */
function firstInstant(rule: Rule, options: ScheduleOptions, at: number): number | undefined {
  return rule.kind === 'once' ? rule.at : until({ options }, nextAfter(rule, at))
}

export interface Edit {
  readonly rule?: NewRule
  readonly target?: Target
  readonly options?: Partial<ScheduleOptions>
}

export type Edited =
  | { readonly kind: 'edited'; readonly schedule: Schedule }
  | { readonly kind: 'over'; readonly schedule: Schedule }
  | { readonly kind: 'never' }
  | { readonly kind: 'unknown' }

/** Changes a schedule at once, also for a daemon that waits for its next instant. What is under way goes on as it was begun. */
export function* editSchedule(id: ScheduleId, edit: Edit, by: string): Transition<Edited> {
  const schedule = yield* holdSchedule(id)
  if (schedule === undefined) return { kind: 'unknown' }
  if (isOver(schedule)) return { kind: 'over', schedule }
  const { at } = yield* storeTime.single()
  const rule = edit.rule === undefined ? schedule.rule : settledFor(edit.rule, at)
  const options = { ...schedule.options, ...edit.options }
  const target = edit.target ?? schedule.target
  const nextAt = instantAfterEdit(schedule, edit, rule, options, at)
  if (nextAt === undefined || (yield* hasLine(schedule, nextAt))) return { kind: 'never' }
  checkJitter(rule, options, nextAt)
  // The same edit, whose first answer was lost.
  if (isSame([rule, target, options, nextAt], [schedule.rule, schedule.target, schedule.options, schedule.nextAt]))
    return { kind: 'edited', schedule }
  if (nextAt !== schedule.nextAt) yield* passDue(schedule, `its rule was changed by ${by} before anybody acted on it`)
  const changed = yield* one(
    scheduleRow,
    sql`update schedules set rule = ${JSON.stringify(rule)}, target = ${JSON.stringify(target)}, options = ${JSON.stringify(options)},
        target_thread = ${target.kind === 'message' ? target.threadId : null}, next_at = ${nextAt},
        next_fire_at = ${fireAt(id, nextAt, options)}, version = version + 1, failures = 0, updated_at = ${now}
      where id = ${id} returning *`,
  )
  // What waits for a thread may now go elsewhere, or wake it.
  yield* run(
    sql`update occurrences set next_attempt_at = ${AT_ONCE} where schedule_id = ${id} and state = 'due' and waits = 'thread'`,
  )
  yield* record({
    type: 'schedule.changed',
    ...threadOf(changed),
    data: { scheduleId: id, name: changed.name, by, nextAt },
  })
  return { kind: 'edited', schedule: changed }
}

/** An instant that was acted on does not come again. */
function* hasLine({ id, nextAt: known }: Schedule, nextAt: number | null): Transition<boolean> {
  if (nextAt === null || nextAt === known) return false
  return (yield* findOccurrence.single(`${id}.${nextAt}` as OccurrenceId)) !== undefined
}

/** Longer than the distance of two instants, it would put one behind the other. */
function checkJitter(rule: Rule, { jitterMs }: ScheduleOptions, nextAt: number | null): void {
  const after = nextAt === null ? undefined : nextAfter(rule, nextAt)
  if (after === undefined || nextAt === null || jitterMs < after - nextAt) return
  const [jitter, gap] = [formatDuration(jitterMs), formatDuration(after - nextAt)]
  throw new HoldfastError('usage/schedule', `a jitter of ${jitter} is too long for instants that are ${gap} apart`, {
    remedy: `choose one that is shorter than ${gap}`,
  })
}

const isSame = (some: unknown, other: unknown) => canonicalJson(some) === canonicalJson(other)

/** Null: nothing lies ahead, and what is under way is its last. Undefined: the edit would leave nothing where something was. */
function instantAfterEdit(
  { nextAt, firings }: Schedule,
  edit: Edit,
  rule: Rule,
  options: ScheduleOptions,
  at: number,
): number | null | undefined {
  const isUsedUp = options.maxFirings !== undefined && firings >= options.maxFirings
  if (edit.rule !== undefined) return isUsedUp ? undefined : firstInstant(rule, options, at)
  // Its last one is under way; more may come if the edit allows it.
  const kept = nextAt ?? (rule.kind === 'once' ? undefined : nextAfter(rule, at))
  const ahead = isUsedUp ? undefined : until({ options }, kept)
  return ahead ?? (nextAt === null ? null : undefined)
}

const fireAt = (id: ScheduleId, nextAt: number | null, { jitterMs }: ScheduleOptions) =>
  nextAt === null ? null : nextAt + jitterOf(id, nextAt, jitterMs)

export const isOver = ({ state }: Schedule) => state === 'ended' || state === 'removed'

export type Paused =
  | { readonly kind: 'paused' | 'already'; readonly schedule: Schedule }
  | { readonly kind: 'over'; readonly schedule: Schedule }
  | { readonly kind: 'unknown' }

/** Nothing of it fires until it is resumed; what is under way goes on. */
export function* pauseSchedule(id: ScheduleId, by: string, reason = `paused by ${by}`): Transition<Paused> {
  const schedule = yield* holdSchedule(id)
  if (schedule === undefined) return { kind: 'unknown' }
  if (schedule.state !== 'active') return { kind: isOver(schedule) ? 'over' : 'already', schedule }
  const paused = yield* one(
    scheduleRow,
    sql`update schedules set state = 'paused', reason = ${reason}, updated_at = ${now} where id = ${id} returning *`,
  )
  yield* record({
    type: 'schedule.paused',
    ...threadOf(paused),
    data: { scheduleId: id, name: paused.name, reason, by },
  })
  return { kind: 'paused', schedule: paused }
}

export type Resumed =
  | { readonly kind: 'resumed' | 'already'; readonly schedule: Schedule }
  | { readonly kind: 'over'; readonly schedule: Schedule }
  | { readonly kind: 'unknown' }

/** Goes on with the next instant. Those of the meantime were not wanted: one line says so. What comes only once is late instead. */
export function* resumeSchedule(id: ScheduleId, by: string): Transition<Resumed> {
  const schedule = yield* holdSchedule(id)
  if (schedule === undefined) return { kind: 'unknown' }
  if (schedule.state !== 'paused') return { kind: isOver(schedule) ? 'over' : 'already', schedule }
  const nextAt = yield* passPaused(schedule)
  const resumed = yield* one(
    scheduleRow,
    sql`update schedules set state = 'active', reason = null, failures = 0, next_at = ${nextAt},
        next_fire_at = ${fireAt(id, nextAt, schedule.options)}, updated_at = ${now}
      where id = ${id} returning *`,
  )
  yield* record({
    type: 'schedule.resumed',
    ...threadOf(resumed),
    data: { scheduleId: id, name: resumed.name, by, nextAt },
  })
  if (nextAt !== null || (yield* openOccurrences.single(id)).length > 0) return { kind: 'resumed', schedule: resumed }
  yield* endSchedule(resumed, 'ended', 'its last instant passed while it was paused')
  return { kind: 'over', schedule: (yield* findSchedule.single(id)) ?? resumed }
}

function* passPaused(schedule: Schedule): Transition<number | null> {
  const { nextAt, rule } = schedule
  if (rule.kind === 'once') return nextAt
  const last = yield* passDue(schedule, `paused: ${schedule.reason ?? 'by somebody'}`)
  return last === undefined ? nextAt : (until(schedule, nextAfter(rule, last)) ?? null)
}

export type RemovedSchedule =
  | { readonly kind: 'removed' | 'already'; readonly schedule: Schedule }
  | { readonly kind: 'unknown' }

/** Takes a schedule away: what of it waits to be tried is dropped, what is at work goes on, or is cancelled if asked for. History stays. */
export function* removeSchedule(
  id: ScheduleId,
  by: string,
  cancel = false,
  reason = `removed by ${by}`,
): Transition<RemovedSchedule> {
  const schedule = yield* holdSchedule(id)
  if (schedule === undefined) return { kind: 'unknown' }
  if (!(yield* endSchedule(schedule, 'removed', reason))) return { kind: 'already', schedule }
  for (const open of yield* openOccurrences.single(id)) {
    if (open.state === 'due') yield* settleOccurrence(open, { kind: 'skipped', reason: `its schedule was ${reason}` })
    else if (cancel) yield* takeBack(open.id, by, `its schedule was ${reason}`)
  }
  return { kind: 'removed', schedule: (yield* findSchedule.single(id)) ?? schedule }
}
