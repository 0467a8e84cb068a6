import type { OccurrenceId, RunId, ScheduleId, ThreadId } from '../base/ids.ts'
import { integer, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { literals, sql } from '../store/sql.ts'
import { all, first, single } from '../store/transition.ts'

/**
 * One due instant of a schedule, or a row of them that was passed over. It is stored, and its schedule moved on, in the
 * transaction that dispatches it; its outcome is that of the run it led to. `dispatched → due`: it is tried again.
 */
export const OCCURRENCE_MOVES = {
  due: ['dispatched', 'dropped', 'skipped', 'failed'],
  dispatched: ['succeeded', 'failed', 'dropped', 'skipped', 'due'],
  succeeded: [],
  failed: [],
  dropped: [],
  skipped: [],
} as const satisfies Record<string, readonly string[]>
export type OccurrenceState = keyof typeof OCCURRENCE_MOVES
export const OCCURRENCE_STATES = Object.keys(OCCURRENCE_MOVES) as OccurrenceState[]
export const OPEN_OCCURRENCES: readonly OccurrenceState[] = ['due', 'dispatched']

/** What a due one waits for: its next try, the one before it, or its thread. */
export const WAITS = ['retry', 'overlap', 'thread'] as const

export const occurrenceRow = row({
  id: text<OccurrenceId>(),
  scheduleId: text<ScheduleId>(),
  dueAt: integer,
  origin: oneOf(['due', 'catch_up', 'run_now'] as const),
  state: oneOf(OCCURRENCE_STATES),
  waits: nullable(oneOf(WAITS)),
  reason: nullable(text()),
  error: nullable(text()),
  attempts: integer,
  nextAttemptAt: nullable(integer),
  lateMs: integer,
  /** How many instants this line stands for, and the last of them. */
  instants: integer,
  lastAt: nullable(integer),
  threadId: nullable(text<ThreadId>()),
  messageId: nullable(text()),
  runId: nullable(text<RunId>()),
  costMicrousd: integer,
  byWhom: nullable(text()),
  createdAt: integer,
  firedAt: nullable(integer),
  settledAt: nullable(integer),
})
export type Occurrence = Decoded<typeof occurrenceRow>

export const findOccurrence = single((id: OccurrenceId) =>
  first(occurrenceRow, sql`select * from occurrences where id = ${id}`),
)

export interface OccurrenceFilter {
  readonly scheduleId?: ScheduleId
  readonly states?: readonly OccurrenceState[]
  /** The last one of the page before. */
  readonly after?: OccurrenceId
  readonly limit: number
}

/** Newest first. */
export const listOccurrences = single((filter: OccurrenceFilter) =>
  all(
    occurrenceRow,
    sql`select * from occurrences where state in (${literals(filter.states ?? OCCURRENCE_STATES)})
      and ${filter.scheduleId === undefined ? sql`1 = 1` : sql`schedule_id = ${filter.scheduleId}`}
      and ${filter.after === undefined ? sql`1 = 1` : sql`(due_at, id) < (select due_at, id from occurrences where id = ${filter.after})`}
      order by due_at desc, id desc limit ${filter.limit}`,
  ),
)

/** What of a schedule has not come to its end, oldest first. */
export const openOccurrences = single((scheduleId: ScheduleId) =>
  all(
    occurrenceRow,
    sql`select * from occurrences where schedule_id = ${scheduleId} and state in (${literals(OPEN_OCCURRENCES)})
      order by due_at, id`,
  ),
)
