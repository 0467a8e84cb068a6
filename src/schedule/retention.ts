import { LIMITS } from '../base/limits.ts'
import { now, sql } from '../store/sql.ts'
import { run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'

/** What a day may cost is counted from what is kept. */
const DAY_MS = 86_400_000

/* A count where `not exists` would do: behind an "or", PostgreSQL answers that from a hash of all schedules. */

/** Forgets what was settled long ago, and schedules of which nothing is left. */
export function* forgetOccurrences(limit: number, keptMs: number = LIMITS.occurrencesKeptMs): Transition<number> {
  const forgotten = yield* run(sql`delete from occurrences where id in (
    select id from occurrences where settled_at is not null and settled_at <= ${now} - ${keptMs}
      and created_at <= ${now} - ${keptMs}
      and (settled_at <= ${now} - ${DAY_MS} or (select count(*) from schedules s
        where s.id = occurrences.schedule_id and s.options like '%"dayMicrousd"%') = 0)
    order by settled_at limit ${limit})`)
  yield* run(sql`delete from schedules where id in (
    select s.id from schedules s where s.ended_at is not null and s.ended_at <= ${now} - ${keptMs}
      and not exists (select 1 from occurrences o where o.schedule_id = s.id) order by s.ended_at limit ${limit})`)
  return forgotten
}
