import { LIMITS } from '../base/limits.ts'
import { integer, row } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, one, single } from '../store/transition.ts'
import { sessionRow } from './session.ts'

/** Not woken since it last took something, or so long ago. Each wake is a turn that somebody pays for: the more were missed since, the longer. */
const isRested = sql`(woken_at is null or woken_at <= ${now} - case when missed_wakes < ${LIMITS.wakeAgainMostMs / LIMITS.wakeAgainMs}
  then ${LIMITS.wakeAgainMs} * (1 + missed_wakes) else ${LIMITS.wakeAgainMostMs} end)`

/**
 * Idle sessions with something in their inbox that were not woken just now. One that was started inside another one's
 * terminal has inherited its pane: what is typed there goes to the first.
 */
export const sessionsToWake = single((limit: number) =>
  all(
    sessionRow,
    sql`select s.* from sessions s join threads t on t.id = s.thread_id
      where s.state = 'idle' and s.ended_at is null and s.delivery_id is null and t.state = 'open'
        and ${isRested}
        and exists (select 1 from messages m where m.thread_id = s.thread_id and m.state = 'pending')
        and not exists (select 1 from sessions outer_one where outer_one.wake = s.wake and outer_one.ended_at is null
          and (outer_one.started_at, outer_one.id) < (s.started_at, s.id))
      order by s.updated_at limit ${limit}`,
  ),
)

/**
 * The right to wake a session, for one of several who would: only while it is idle with nothing in its hand. A wake before
 * this one that brought nothing until now was in vain. It begins a turn of its own, with blocks of its own; a client that
 * wakes itself says that it went on.
 */
export const claimWake = single((id: string) =>
  first(
    sessionRow,
    sql`update sessions set vain_wakes = vain_wakes + case when woken_at is null then 0 else 1 end,
        missed_wakes = case when woken_at is null then 0 else missed_wakes + 1 end, woken_at = ${now},
        wakes = wakes + 1, blocks = 0
      where id = ${id} and state = 'idle' and ended_at is null and delivery_id is null
        and ${isRested}
        and exists (select 1 from messages m where m.thread_id = sessions.thread_id and m.state = 'pending')
      returning *`,
  ),
)

const countRow = row({ wakes: integer, vain: integer })

export const countWakes = single(() =>
  one(countRow, sql`select coalesce(sum(wakes), 0) as wakes, coalesce(sum(vain_wakes), 0) as vain from sessions`),
)
