import type { RunId, ThreadId } from '../base/ids.ts'
import type { Event } from '../events/event.ts'
import { eventRow, lastEventSeq } from '../events/event.ts'
import { RUN_STATES } from '../runs/run.ts'
import { integer, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { all, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { THREAD_STATES } from '../threads/thread.ts'
import { CLIENTS, SESSION_STATES } from './session.ts'

const relativeRow = row({
  id: text<ThreadId>(),
  generation: integer,
  agent: text(),
  state: oneOf(THREAD_STATES),
  parentId: nullable(text<ThreadId>()),
  createdAt: integer,
  removedAt: nullable(integer),
  /** Its latest run. */
  runId: nullable(text<RunId>()),
  runState: nullable(oneOf(RUN_STATES)),
  runCode: nullable(text()),
  client: nullable(oneOf(CLIENTS)),
  sessionState: nullable(oneOf(SESSION_STATES)),
  /** What waits in its inbox. */
  pending: integer,
})
/** A thread with what it is at. */
export type Relative = Decoded<typeof relativeRow>

const described = (which: Sql, order: Sql, limit: number) =>
  all(
    relativeRow,
    sql`select t.id, t.generation, t.agent, t.state, t.parent_id, t.created_at, t.removed_at, r.id as run_id,
        r.state as run_state, r.code as run_code, s.client, s.state as session_state,
        (select count(*) from messages m where m.thread_id = t.id and m.state = 'pending') as pending
      from threads t left join runs r on r.seq = (select max(seq) from runs where thread_id = t.id)
        left join sessions s on s.id = (select id from sessions where thread_id = t.id order by updated_at desc, id limit 1)
      where ${which} order by ${order} limit ${limit}`,
  )

/** Each once, whatever circle somebody has made of parents. */
const below = (threadId: ThreadId) => sql`with recursive family (id) as (
    select id from threads where id = ${threadId}
    union select child.id from threads child join family on child.parent_id = family.id)
  select id from family`

/** A thread and everything that was started from it, at any depth, oldest first. */
export const threadFamily = single((threadId: ThreadId, limit: number) =>
  described(sql`t.id in (${below(threadId)})`, sql`t.created_at, t.id`, limit),
)

/** Threads that are not removed, newest first. */
export const threadsAtWork = single((limit: number) =>
  described(sql`t.state <> 'removed'`, sql`t.created_at desc, t.id desc`, limit),
)

export interface FamilyEvents {
  readonly events: readonly Event[]
  /** Up to here everything was looked at: the next look begins after it. */
  readonly seq: number
}

/** What happened to a thread, or to all of its family, after a number; from one snapshot. */
export function* familyEvents(
  threadId: ThreadId,
  withChildren: boolean,
  after: number,
  limit: number,
): Transition<FamilyEvents> {
  const { seq } = yield* lastEventSeq.single()
  const whose = withChildren ? sql`thread_id in (${below(threadId)})` : sql`thread_id = ${threadId}`
  const events = yield* all(
    eventRow,
    sql`select seq, at, type, thread_id, run_id, data from events where seq > ${after} and ${whose} order by seq limit ${limit}`,
  )
  return { events, seq: events.length < limit ? seq : (events.at(-1)?.seq ?? seq) }
}
