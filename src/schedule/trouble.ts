import { integer, row, oneOf } from '../store/row.ts'
import { literals, now, sql } from '../store/sql.ts'
import { all, one, single } from '../store/transition.ts'
import { LIVE_SCHEDULES, SCHEDULE_STATES, scheduleRow } from './schedule.ts'

const countedRow = row({ state: oneOf(SCHEDULE_STATES), count: integer })

export const countSchedules = single(() =>
  all(
    countedRow,
    sql`select state, count(*) as count from schedules where state in (${literals(LIVE_SCHEDULES)}) group by state order by state`,
  ),
)

/** Those of which the last firing failed, and those that are paused: somebody may want to look. */
export const troubledSchedules = single((limit: number) =>
  all(
    scheduleRow,
    sql`select * from schedules where state = 'paused' or (state = 'active' and failures > 0)
      order by updated_at desc, id limit ${limit}`,
  ),
)

const dueRow = row({ count: integer })

/** How many have been due for longer than anybody who was there would take. */
export const countOverdue = single((byMs: number) =>
  one(
    dueRow,
    sql`select count(*) as count from schedules where state = 'active' and next_fire_at is not null and next_fire_at <= ${now} - ${byMs}`,
  ),
)
