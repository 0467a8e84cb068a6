import { LIMITS } from '../base/limits.ts'
import { now, sql } from '../store/sql.ts'
import { run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'

/**
 * Forgets what was delivered or replaced long ago, with its attachments, and which ends of turns were heard: a bounded
 * number at a time, so that it stays a short transaction. What a run that has not ended took is still needed to answer it. Dead
 * letters stay until somebody purges them.
 */
export function* forgetMessages(limit: number): Transition<number> {
  const messages = yield* run(sql`delete from messages where id in (
    select m.id from messages m where m.state in ('consumed', 'replaced') and m.settled_at <= ${now} - ${LIMITS.messagesKeptMs}
      and not exists (select 1 from runs r where r.id = m.consumed_by_run and r.ended_at is null)
    order by m.settled_at limit ${limit})`)
  const ends = yield* run(sql`delete from turn_ends where id in (
    select id from turn_ends where heard_at <= ${now} - ${LIMITS.messagesKeptMs} order by heard_at limit ${limit})`)
  return messages + ends
}
