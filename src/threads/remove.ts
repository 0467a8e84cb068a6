import type { ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { endSchedulesOf, holdSchedulesOf, releaseHeld } from '../schedule/settle.ts'
import { integer, row } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, holding, one, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { buryMessage } from './dead-letter.ts'
import { messageRow } from './message.ts'
import { findThread, holdThread, threadRow } from './thread.ts'
import type { Thread } from './thread.ts'

export type Removed =
  | { readonly kind: 'removed'; readonly thread: Thread; readonly deadLetters: number }
  /** Something is being executed on it: cancel that first. */
  | { readonly kind: 'busy'; readonly runs: number }
  | { readonly kind: 'already-removed'; readonly thread: Thread }
  | { readonly kind: 'unknown' }

const countRow = row({ count: integer })

/**
 * Ends a thread's generation: what waits in its inbox becomes dead letters, what others were told that it waits for too,
 * all in one transaction. Its name may then start a new one, which knows nothing of this.
 */
export function* removeThread(threadId: ThreadId): Transition<Removed> {
  const found = yield* findThread.single(threadId)
  if (found === undefined) return { kind: 'unknown' }
  if (found.state === 'removed') return { kind: 'already-removed', thread: found }
  // Those first, as whoever fires them does: two that wait for each other cost a second.
  yield* holdSchedulesOf(threadId)
  // Held before the count: whoever begins something on it comes before, and is counted, or after, and finds it removed.
  yield* holdThread(threadId)
  const { count } = yield* one(
    countRow,
    sql`select count(*) as count from runs where thread_id = ${threadId} and state in ('queued', 'running', 'parked')`,
  )
  if (count > 0) return { kind: 'busy', runs: count }
  const removed = yield* first(
    threadRow,
    sql`update threads set state = 'removed', removed_at = ${now} where id = ${threadId} and state <> 'removed' returning *`,
  )
  if (removed === undefined) return { kind: 'already-removed', thread: found }
  // What somebody had taken and did not acknowledge was not seen by this generation for certain.
  yield* run(sql`update messages set state = 'pending', delivery_id = null, leased_by = null, leased_at = null
    where thread_id = ${threadId} and state = 'leased'`)
  // In the order in which they came, so that the log tells of them in it, whatever the database.
  const own = yield* all(
    messageRow,
    sql`select * from messages where thread_id = ${threadId} and state = 'pending' order by seq`,
  )
  for (const message of own) yield* buryMessage(message, 'recipient removed')
  yield* endSchedulesOf(threadId)
  const said = yield* all(
    messageRow,
    sql`select * from messages where from_thread = ${threadId} and kind = 'waiting' and state = 'pending' order by seq`,
  )
  for (const message of said) yield* buryMessage(message, 'sender removed')
  yield* run(sql`update sessions set state = 'ended', ended_at = ${now}, delivery_id = null
    where thread_id = ${threadId} and ended_at is null`)
  // Those that it started have nobody above them now, also if the name is used again.
  yield* run(sql`update threads set parent_id = null where parent_id = ${threadId}`)
  yield* record({ type: 'thread.removed', threadId, data: { generation: removed.generation } })
  return { kind: 'removed', thread: removed, deadLetters: own.length + said.length }
}

/** A stopped thread gets no turn until a person writes to it; what comes in waits. */
export function* stopThread(threadId: ThreadId): Transition<Thread | undefined> {
  const stopped = yield* holding(
    `thread:${threadId}`,
    first(threadRow, sql`update threads set state = 'stopped' where id = ${threadId} and state = 'open' returning *`),
  )
  if (stopped !== undefined) yield* record({ type: 'thread.stopped', threadId })
  return stopped ?? (yield* findThread.single(threadId))
}

export function* reopenThread(threadId: ThreadId): Transition<void> {
  const reopened = yield* holding(
    `thread:${threadId}`,
    run(sql`update threads set state = 'open' where id = ${threadId} and state = 'stopped'`),
  )
  if (reopened === 0) return
  yield* record({ type: 'thread.reopened', threadId })
  yield* releaseHeld(threadId)
}
