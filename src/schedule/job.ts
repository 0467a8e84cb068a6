import type { RunId, ScheduleId, ThreadId } from '../base/ids.ts'
import { depthOf } from '../runs/children.ts'
import { storeTime } from '../store/clock.ts'
import { integer, row } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, first, one, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findThread, holdThread } from '../threads/thread.ts'
import type { Thread } from '../threads/thread.ts'
import { addSchedule } from './edit.ts'
import type { Added } from './edit.ts'
import { occurrenceRow } from './occurrence.ts'
import type { Occurrence } from './occurrence.ts'
import type { NewRule } from './rule.ts'
import { DEFAULT_OPTIONS, scheduleRow } from './schedule.ts'
import type { Schedule, ScheduleOptions, Target } from './schedule.ts'

/** A job that an agent asks for. Its thread is the one that is asked from, and the one that hears of it. */
export interface NewJob {
  readonly id: ScheduleId
  readonly name: string
  readonly rule: NewRule
  /** Without one the text comes to the thread itself. */
  readonly target: { readonly kind: 'self'; readonly text: string } | Exclude<Target, { kind: 'message' }>
  readonly options: Partial<ScheduleOptions>
  readonly owner: { readonly threadId: ThreadId; readonly runId: RunId; readonly agent: string }
  readonly madeBy: string
  readonly limits: { readonly jobs: number; readonly depth: number }
}

export type AddedJob =
  | Added
  | { readonly kind: 'unknown-thread' }
  /** By the database's clock. */
  | { readonly kind: 'past'; readonly at: number; readonly now: number }
  | { readonly kind: 'limit'; readonly limit: 'jobs' | 'depth'; readonly value: number }

/** Stores an agent's job. The same id is the same request, whose first answer was lost. */
export function* addJob(job: NewJob): Transition<AddedJob> {
  const { id, name, rule, options, owner, madeBy } = job
  const { threadId } = owner
  // Held: of two that count at the same time one sees the other, also if both are the same request.
  yield* holdThread(threadId)
  const known = yield* first(scheduleRow, sql`select * from schedules where id = ${id}`)
  if (known !== undefined) return { kind: 'existing', schedule: known }
  const thread = yield* findThread.single(threadId)
  if (thread === undefined || thread.state === 'removed') return { kind: 'unknown-thread' }
  const refused = (yield* isPast(rule)) ?? (yield* limitReached(job))
  if (refused !== undefined) return refused
  return yield* addSchedule({
    id,
    name,
    kind: 'job',
    rule,
    target: targetOf(job, thread),
    options: { ...DEFAULT_OPTIONS, ...options },
    owner,
    madeBy,
  })
}

const targetOf = ({ target }: NewJob, { id, generation }: Thread): Target =>
  target.kind === 'self' ? { kind: 'message', threadId: id, generation, text: target.text } : target

function* isPast(rule: NewRule): Transition<AddedJob | undefined> {
  if (rule.kind !== 'once') return undefined
  const { at } = yield* storeTime.single()
  return rule.at > at ? undefined : { kind: 'past', at: rule.at, now: at }
}

const countRow = row({ count: integer })

function* limitReached({ owner, target, limits }: NewJob): Transition<AddedJob | undefined> {
  const { count } = yield* one(
    countRow,
    sql`select count(*) as count from schedules
      where owner_thread = ${owner.threadId} and kind = 'job' and state in ('active', 'paused')`,
  )
  if (count >= limits.jobs) return { kind: 'limit', limit: 'jobs', value: limits.jobs }
  // Each firing is a child of this thread: the limit of delegation is not to be had around by way of a schedule.
  if (target.kind !== 'agent' || (yield* depthOf(owner.threadId, limits.depth)) < limits.depth) return undefined
  return { kind: 'limit', limit: 'depth', value: limits.depth }
}

/** A schedule that this thread asked for, by its id or name: of several of one name the one that is not over, else the newest. */
export const ownSchedule = single((threadId: ThreadId, kind: Schedule['kind'], name: string) =>
  first(
    scheduleRow,
    sql`select * from schedules where owner_thread = ${threadId} and kind = ${kind} and (name = ${name} or id = ${name})
      order by case when state in ('active', 'paused') then 0 else 1 end, created_at desc, id desc limit 1`,
  ),
)

/** What this thread asked for and what is not over, by what comes next. */
export const livingOf = single((threadId: ThreadId, kind: Schedule['kind'], limit: number) =>
  all(
    scheduleRow,
    sql`select * from schedules where owner_thread = ${threadId} and kind = ${kind} and state in ('active', 'paused')
      order by case when next_fire_at is null then 1 else 0 end, next_fire_at, id limit ${limit}`,
  ),
)

export interface JobWithLast {
  readonly job: Schedule
  /** What became of its last firing, or is becoming. */
  readonly last: Occurrence | undefined
}

export function* jobsOf(threadId: ThreadId, limit: number): Transition<JobWithLast[]> {
  const jobs: JobWithLast[] = []
  for (const job of yield* livingOf.single(threadId, 'job', limit)) {
    const last = yield* first(
      occurrenceRow,
      sql`select * from occurrences where schedule_id = ${job.id} order by due_at desc, id desc limit 1`,
    )
    jobs.push({ job, last })
  }
  return jobs
}
