import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { now, sql } from '../store/sql.ts'
import { all, one } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { buryMessage } from './dead-letter.ts'
import type { DeadReason } from './dead-letter.ts'
import { messageRow } from './message.ts'
import type { Message } from './message.ts'
import { putMessage } from './put.ts'
import type { PutMessage } from './put.ts'
import { holdThread } from './thread.ts'
import type { Thread } from './thread.ts'

export interface NewMessage extends PutMessage {
  /** When its producer began: a recipient that began after that is a later one of the same name. */
  readonly since?: number
  /** Not to be delivered at all: kept as a dead letter, so that it is counted and can be listed. */
  readonly suppressed?: DeadReason
}

export interface Accepted {
  readonly message: Message
  readonly isNew: boolean
}

/**
 * Accepts a message, durably and once; its recipient need not be there. One that is not known yet is held, one that was
 * removed has a dead letter, one that is merely down has it in its inbox.
 */
export function* acceptMessage(message: NewMessage): Transition<Accepted> {
  // Held, so that its generation does not end before this is stored; and of two that tell of the same wait one sees the other.
  const recipient = yield* holdThread(message.threadId)
  const put = yield* putMessage(message, recipient)
  if (put === undefined) return { message: yield* knownMessage(message, recipient?.generation ?? 1), isNew: false }
  const { message: stored, isTooLarge } = put
  if (stored.kind === 'waiting') yield* replaceOlder(stored)
  const reason = message.suppressed ?? (isTooLarge ? 'too large' : undeliverable(message, recipient))
  if (reason !== undefined) return { message: yield* buryMessage(stored, reason), isNew: true }
  return { message: stored, isNew: true }
}

function undeliverable(message: NewMessage, recipient: Thread | undefined): DeadReason | undefined {
  const { from, threadId, kind, since } = message
  if (from === threadId && kind !== 'prompt') return 'self'
  if (recipient === undefined) return undefined
  const isLater = recipient.generation > 1 && since !== undefined && since < recipient.createdAt
  return recipient.state === 'removed' || isLater ? 'recipient removed' : undefined
}

function* knownMessage({ id, threadId, key }: NewMessage, generation: number): Transition<Message> {
  return yield* one(
    messageRow,
    sql`select * from messages where (thread_id = ${threadId} and generation = ${generation} and key = ${key}) or id = ${id}
      order by case when key = ${key} then 0 else 1 end limit 1`,
  )
}

/** That a child waits is news until it is heard: a newer one takes the place of an older one of the same child. */
function* replaceOlder(newer: Message): Transition<void> {
  const older = yield* all(
    messageRow,
    sql`update messages set state = 'replaced', reason = ${newer.id}, settled_at = ${now}
      where state = 'pending' and kind = 'waiting' and thread_id = ${newer.threadId} and generation = ${newer.generation}
        and from_thread = ${newer.fromThread} and id <> ${newer.id}
        and exists (select 1 from messages self where self.id = ${newer.id} and self.state = 'pending') returning *`,
  )
  for (const { id, threadId } of older) {
    yield* record({ type: 'message.replaced', threadId, data: { messageId: id, by: newer.id } })
  }
}

export interface Completion {
  readonly from: ThreadId
  readonly to: ThreadId
  readonly runId: RunId
  readonly body: Readonly<Record<string, unknown>>
  readonly failed: boolean
  readonly since: number
  /** Nobody is to be told. */
  readonly silent: boolean
}

/**
 * Tells the parent that a child's run ended. Identity comes from the producer (the run), so a second delivery of the
 * same end is the same message.
 */
export function* deliverCompletion(completion: Completion): Transition<Accepted> {
  const { from, to, runId, body, failed, silent, since } = completion
  return yield* acceptMessage({
    id: `msg_${runId}` as MessageId,
    threadId: to,
    from,
    kind: failed ? 'error' : 'completion',
    key: `run:${runId}`,
    about: runId,
    body: { ...body, runId },
    since,
    ...(silent ? { suppressed: 'no-notify' } : {}),
  })
}
