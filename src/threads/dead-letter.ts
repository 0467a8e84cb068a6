import type { ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { record } from '../events/event.ts'
import { resumeWaiting } from '../runs/park.ts'
import { settleByMessage } from '../schedule/settle.ts'
import { now, raw, sql } from '../store/sql.ts'
import { all, first, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { NEWS, keepNewestWaiting, messageRow } from './message.ts'
import type { Message } from './message.ts'
import { tellThread } from './notice.ts'
import { findThread, holdThread } from './thread.ts'

/** Why a message will not be delivered by itself. */
const DEAD_REASONS = {
  'unknown recipient': 'no thread of that name came within the attempts',
  orphan: 'the parent of the child that sent it never came',
  'sender removed': 'it said what a thread is waiting for that is gone',
  'recipient removed': 'the thread was removed',
  'no-notify': 'its sender was told to tell nobody',
  self: 'a thread would have told itself of its own end',
  'too large': 'more than a message may carry',
  expired: 'it waited longer than it may',
  withdrawn: 'its sender took it back before anybody had seen it',
  'known already': 'the recipient has one with the same key',
} as const
export type DeadReason = keyof typeof DEAD_REASONS

/** Makes a pending message a dead letter. Whoever can act on it hears of it once. `because`: what a firing that led to it is told. */
export function* buryMessage(message: Message, reason: DeadReason, because?: string): Transition<Message> {
  const dead = yield* first(
    messageRow,
    sql`update messages set state = 'dead', reason = ${reason}, settled_at = ${now}, next_attempt_at = null
      where id = ${message.id} and state = 'pending' returning *`,
  )
  if (dead === undefined) return message
  const { id, threadId, fromThread, kind } = dead
  yield* record({ type: 'message.dead', threadId, data: { messageId: id, kind, reason, from: fromThread } })
  if (kind === 'followup')
    yield* settleByMessage(
      id,
      because === undefined
        ? { kind: 'dropped', reason: `its message was not delivered: ${reason}` }
        : { kind: 'skipped', reason: because },
    )
  if (reason !== 'no-notify' && reason !== 'withdrawn' && kind !== 'notice') yield* noticeSender(dead, reason)
  return dead
}

/** The sender hears of it in its own inbox, if it has one; the event is for the operator. */
function* noticeSender({ id, fromThread, threadId }: Message, reason: DeadReason): Transition<void> {
  if (fromThread === null || fromThread === threadId) return
  const text = `your message ${id} to ${threadId} could not be delivered: ${reason} (${DEAD_REASONS[reason]})`
  yield* tellThread(fromThread, `dead:${id}`, text)
}

/**
 * Looks again for the recipients of held messages: those that came are delivered, the others are given up after the last
 * attempt. Returns what it gave up.
 */
export function* tryHeld(limit: number): Transition<readonly Message[]> {
  const held = yield* all(
    messageRow,
    sql`select * from messages where state = 'pending' and next_attempt_at is not null and next_attempt_at <= ${now}
      order by next_attempt_at limit ${limit}`,
  )
  const dead: Message[] = []
  for (const message of held) {
    const buried = yield* tryOne(message)
    if (buried?.state === 'dead') dead.push(buried)
  }
  return dead
}

function* tryOne(message: Message): Transition<Message | undefined> {
  const recipient = yield* findThread.single(message.threadId)
  if (recipient?.state === 'removed') return yield* buryMessage(message, 'recipient removed')
  if (recipient !== undefined) {
    const { generation } = recipient
    const delivered = yield* run(sql`update messages set next_attempt_at = null, generation = ${generation}
      where id = ${message.id} and state = 'pending' and not exists (select 1 from messages twin
        where twin.thread_id = messages.thread_id and twin.generation = ${generation} and twin.key = messages.key
          and twin.id <> messages.id)`)
    // The same message has come there by another way.
    return delivered === 1 ? undefined : yield* buryMessage(message, 'known already')
  }
  const attempts = message.attempts + 1
  const waitMs = LIMITS.heldFirstMs * 2 ** attempts
  yield* run(sql`update messages set attempts = ${attempts}, next_attempt_at = ${now} + ${waitMs}
    where id = ${message.id} and state = 'pending' and attempts = ${message.attempts}`)
  if (attempts < LIMITS.heldAttempts) return undefined
  return yield* buryMessage(message, NEWS.includes(message.kind) ? 'orphan' : 'unknown recipient')
}

/**
 * Gives up what waits where nobody will take it: what came for a thread in the very moment of its removal, and what has
 * waited for longer than anything may.
 */
export function* buryUntaken(limit: number): Transition<readonly Message[]> {
  const late = yield* all(
    messageRow,
    sql`select * from messages where state = 'pending' and next_attempt_at is null
      and exists (select 1 from threads t where t.id = messages.thread_id and t.state = 'removed') limit ${limit}`,
  )
  const old = yield* all(
    messageRow,
    sql`select * from messages where state = 'pending' and coalesce(due_at, created_at) <= ${now} - ${LIMITS.messagesWaitMs}
      limit ${limit}`,
  )
  const dead: Message[] = []
  for (const message of late) dead.push(yield* buryMessage(message, 'recipient removed'))
  for (const message of old) dead.push(yield* buryMessage(message, 'expired'))
  return dead
}

export type Retried =
  | { readonly kind: 'retried'; readonly message: Message }
  | { readonly kind: 'not-dead'; readonly message: Message }
  | { readonly kind: 'unknown' }

/** Puts a dead letter back: into the inbox as it is now, or held for a recipient that is still to come. */
export function* retryDead(id: string): Transition<Retried> {
  const message = yield* first(messageRow, sql`select * from messages where id = ${id}`)
  if (message === undefined) return { kind: 'unknown' }
  if (message.state !== 'dead') return { kind: 'not-dead', message }
  const recipient = yield* holdThread(message.threadId)
  const isThere = recipient !== undefined && recipient.state !== 'removed'
  const retried = yield* first(
    messageRow,
    sql`update messages set state = 'pending', reason = null, settled_at = null, attempts = 0, due_at = ${now},
        generation = ${recipient?.generation ?? message.generation},
        next_attempt_at = ${isThere ? sql`null` : sql`${now} + ${LIMITS.heldFirstMs}`}
      where id = ${id} and state = 'dead'
        and not exists (select 1 from messages twin where twin.thread_id = messages.thread_id and twin.key = messages.key
          and twin.generation = ${recipient?.generation ?? message.generation} and twin.id <> messages.id)
      returning *`,
  )
  if (retried === undefined) return { kind: 'not-dead', message }
  yield* record({ type: 'message.retried', threadId: retried.threadId, data: { messageId: id } })
  yield* keepNewestWaiting(retried)
  if (isThere) yield* resumeWaiting(retried.threadId)
  return { kind: 'retried', message: retried }
}

/** Removes dead letters for good: one of them, or all that are older. */
export function* purgeDead(which: { readonly id: string } | { readonly olderThanMs: number }): Transition<number> {
  const chosen = 'id' in which ? sql`id = ${which.id}` : sql`settled_at <= ${now} - ${which.olderThanMs}`
  const purged = yield* all(messageRow, sql`delete from messages where state = 'dead' and ${chosen} returning *`)
  for (const { id, threadId, reason } of purged) {
    yield* record({ type: 'message.purged', threadId, data: { messageId: id, reason } })
  }
  return purged.length
}

export interface LetterFilter {
  readonly state: 'dead' | 'replaced'
  readonly threadId?: ThreadId
  readonly limit: number
  /** Only those before this one. */
  readonly after?: string
}

/** What was not delivered, newest first. */
export const undelivered = single(({ state, threadId, limit, after }: LetterFilter) =>
  all(
    messageRow,
    sql`select * from messages where state = ${raw(`'${state}'`)}
      and ${threadId === undefined ? sql`1 = 1` : sql`thread_id = ${threadId}`}
      and ${after === undefined ? sql`1 = 1` : sql`(settled_at, id) < (select settled_at, id from messages where id = ${after})`}
      order by settled_at desc, id desc limit ${limit}`,
  ),
)
