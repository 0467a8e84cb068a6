import type { ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { forgottenThrough, noteForgotten } from '../events/retention.ts'
import { integer, row, text } from '../store/row.ts'
import { among, now, skipLocked, sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { all, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'

/**
 * Forgets what was delivered or replaced long ago, with its attachments, and which ends of turns were heard: a bounded
 * number at a time, so that it stays a short transaction. What a run that has not ended took is still needed to answer it.
 * Who ended a run may have had a clock that was far behind: its completion is no older than the word that asked for it. Dead
 * letters stay until somebody purges them. Counted: PostgreSQL may answer `not exists` from a hash of all runs.
 */
export function* forgetMessages(limit: number): Transition<number> {
  const messages = yield* run(sql`delete from messages where id in (
    select m.id from messages m where m.state in ('consumed', 'replaced') and m.settled_at <= ${now} - ${LIMITS.messagesKeptMs}
      and m.created_at <= ${now} - ${LIMITS.messagesKeptMs}
      and (select count(*) from runs r where r.id in (m.consumed_by_run, substr(m.key, 5))
        and (r.ended_at is null or r.created_at > ${now} - ${LIMITS.messagesKeptMs})) = 0
    order by m.settled_at limit ${limit})`)
  const ends = yield* run(sql`delete from turn_ends where id in (
    select id from turn_ends where heard_at <= ${now} - ${LIMITS.messagesKeptMs} order by heard_at limit ${limit})`)
  return messages + ends
}

const emptyRow = row({ id: text<ThreadId>(), createdAt: integer, isEmpty: integer })

/** The next threads by their age, and whether anything is left of them: a look at so many and no more. */
export const oldThreads = single(
  (keptMs: number, after: { readonly createdAt: number; readonly id: string }, limit: number) =>
    all(
      emptyRow,
      sql`select t.id, t.created_at, case when ${isEmpty} then 1 else 0 end as is_empty
      from (select id, state, created_at, removed_at from threads where created_at <= ${now} - ${keptMs}
        and created_at >= ${after.createdAt} and (created_at > ${after.createdAt} or id > ${after.id})
        order by created_at, id limit ${limit}) as t
      order by t.created_at, t.id`,
    ),
)

/** Forgets threads of which nothing is left: those of webhooks, of commands, and those that were removed. How many went. */
export function* forgetThreads(ids: readonly ThreadId[], keptMs: number): Transition<number> {
  const held = yield* all(
    row({ id: text<ThreadId>() }),
    sql`select id from threads where id in ${among(ids)} order by id ${skipLocked}`,
  )
  if (held.length === 0) return 0
  const threads = yield* run(sql`delete from threads where id in (select t.id from threads t
    where t.id in ${among(held.map(({ id }) => id))} and t.created_at <= ${now} - ${keptMs} and ${isEmpty})`)
  if (threads > 0) yield* noteForgotten((yield* forgottenThrough.single()).eventsThrough, { threads })
  return threads
}

/** Of the thread `t`: nothing is in it, nothing is meant for it, and nobody stopped it for good. That of a function is counted on by whoever has opened it. */
const isEmpty: Sql = sql`(t.state <> 'stopped' and t.id not like 'calls:%'
  and not exists (select 1 from runs r where r.thread_id = t.id)
  and not exists (select 1 from runs r where r.parent_thread_id = t.id and r.ended_at is null)
  and not exists (select 1 from entries e where e.thread_id = t.id)
  and not exists (select 1 from messages m where m.thread_id = t.id)
  and not exists (select 1 from sessions s where s.thread_id = t.id)
  and not exists (select 1 from agent_sessions s where s.thread_id = t.id)
  and not exists (select 1 from threads c where c.parent_id = t.id)
  and not exists (select 1 from schedules s where s.target_thread = t.id and s.state in ('active', 'paused'))
  and not exists (select 1 from schedules s where s.owner_thread = t.id and s.state in ('active', 'paused'))
  and not exists (select 1 from tokens k where k.thread_id = t.id and k.revoked_at is null))`
