import { SQLITE } from './migration.ts'
import type { Dialect, Migration } from './migration.ts'
import { SQLITE_STATISTICS } from './sqlite-statistics.ts'

/** What was forgotten, and who is at it; indexes that a large history needs, and what SQLite is to think of all of them. */
export const retention: Migration = {
  number: 12,
  name: 'retention',
  statements: (d: Dialect) => [
    // One row. `events_through`: no event up to here is certain to be there. `loose_through`: up to here events without a run
    // were looked at. Of several daemons the one named here forgets, until then.
    `create table retention (
      id ${d.integer} primary key check (id = 1),
      events_through ${d.integer} not null default 0,
      events_until ${d.integer} not null default 0,
      loose_through ${d.integer} not null default 0,
      keeper text,
      keeper_until ${d.integer} not null default 0
    )${d.tableEnd}`,
    // What another action was answered from, and what counts for a window across runs, is not forgotten.
    `create index actions_repeated on actions (repeat_of) where repeat_of is not null`,
    `create index once_marks_of_action on once_marks (action_id)`,
    // What was delivered together, also after it was: by the delivery alone.
    `create index messages_of_delivery on messages (delivery_id) where delivery_id is not null`,
    // The few schedules that somebody has to look at, among all that there are.
    `create index schedules_in_trouble on schedules (updated_at desc, id) where state = 'paused' or (state = 'active' and failures > 0)`,
    // A thread that is to be told of an end is not forgotten.
    `create index runs_owing on runs (parent_thread_id) where parent_thread_id is not null and ended_at is null`,
    ...(d === SQLITE ? SQLITE_STATISTICS : []),
  ],
}
