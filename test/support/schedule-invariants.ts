import { sql } from '../../src/store/sql.ts'
import type { Sql } from '../../src/store/sql.ts'

/** Of the ledger of occurrences: every due instant has one line, and every line comes to its end. */
export const SCHEDULE_VIOLATIONS: Record<string, Sql> = {
  'a schedule without an instant ahead has something under way, or is over': sql`
    select s.id as id, s.state as detail from schedules s where s.state in ('active', 'paused') and s.next_at is null
      and not exists (select 1 from occurrences o where o.schedule_id = s.id and o.state in ('due', 'dispatched'))`,
  'what is over has no instant ahead, and says why': sql`
    select id, state as detail from schedules where state in ('ended', 'removed') and (next_at is not null or reason is null)`,
  'an instant that lies ahead has no line yet': sql`
    select o.id as id, o.state as detail from occurrences o join schedules s on s.id = o.schedule_id
    where o.origin <> 'run_now' and o.due_at = s.next_at`,
  'an instant that was passed over has no line of its own': sql`
    select o.id as id, passed.id as detail from occurrences o join occurrences passed on passed.schedule_id = o.schedule_id
    where passed.last_at is not null and o.origin <> 'run_now' and o.due_at > passed.due_at and o.due_at <= passed.last_at`,
  'what was dispatched has a message that waits, or a run that has not ended': sql`
    select o.id as id, coalesce(o.run_id, o.message_id) as detail from occurrences o where o.state = 'dispatched'
      and not exists (select 1 from messages m where m.id = o.message_id and m.state in ('pending', 'leased'))
      and not exists (select 1 from runs r where r.id = o.run_id and r.ended_at is null)`,
  'what is due waits for something that will come': sql`
    select o.id as id, coalesce(o.waits, 'nothing') as detail from occurrences o where o.state = 'due' and o.next_attempt_at is null
      and not (coalesce(o.waits, '') = 'thread' and exists (select 1 from threads t where t.id = o.thread_id and t.state = 'stopped'))
      and not (coalesce(o.waits, '') = 'overlap' and exists (select 1 from occurrences other
        where other.schedule_id = o.schedule_id and other.id <> o.id and other.state in ('due', 'dispatched')
          and (coalesce(other.waits, '') <> 'overlap' or other.next_attempt_at is not null)))`,
  'what did not succeed says why, and what was done was tried': sql`
    select id, state as detail from occurrences
    where state in ('failed', 'dropped', 'skipped') and reason is null or state in ('dispatched', 'succeeded', 'failed') and attempts = 0`,
  'every settlement is an event': sql`
    select 'all of them' as id, cast(count(*) as text) as detail from occurrences
    where settled_at > (select coalesce(max(events_until), 0) from retention)
    having count(*) > (select count(*) from events where type = 'occurrence.settled')`,
}
