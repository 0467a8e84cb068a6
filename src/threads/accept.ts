import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { record } from '../events/event.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, one, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { buryMessage } from './dead-letter.ts'
import type { DeadReason } from './dead-letter.ts'
import { messageRow } from './message.ts'
import type { Message, MessageKind } from './message.ts'
import { beginningOf } from './message-text.ts'
import { holdThread } from './thread.ts'
import type { Thread } from './thread.ts'

export interface NewMessage {
  readonly id: MessageId
  readonly threadId: ThreadId
  readonly from?: ThreadId
  readonly kind: MessageKind
  /** The producer's own name for it: the same key is the same message, whatever it says. */
  readonly key: string
  readonly body: Readonly<Record<string, unknown>>
  /** The run that it tells of. */
  readonly about?: RunId
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
  const generation = recipient?.generation ?? 1
  const { body, attachment, isTooLarge } = withinLimit(message.body)
  const stored = yield* first(
    messageRow,
    sql`insert into messages (id, thread_id, generation, from_thread, kind, key, state, body, created_at, next_attempt_at)
      values (${message.id}, ${message.threadId}, ${generation}, ${message.from ?? null}, ${message.kind},
        ${message.key}, 'pending', ${JSON.stringify(body)}, ${now},
        ${recipient === undefined ? sql`${now} + ${LIMITS.heldFirstMs}` : sql`null`})
      on conflict do nothing returning *`,
  )
  if (stored === undefined) return { message: yield* knownMessage(message, generation), isNew: false }
  if (attachment !== undefined) {
    yield* run(sql`insert into attachments (message_id, content) values (${stored.id}, ${attachment})`)
  }
  const data = { messageId: stored.id, kind: stored.kind }
  const about = message.about === undefined ? {} : { runId: message.about }
  yield* record({ type: 'message.accepted', threadId: stored.threadId, ...about, data })
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

interface Limited {
  readonly body: Readonly<Record<string, unknown>>
  readonly attachment?: string
  readonly isTooLarge: boolean
}

/** The beginning stays in the message, the whole beside it, to be fetched by whoever wants it. */
function withinLimit(body: Readonly<Record<string, unknown>>): Limited {
  for (const [field, words] of Object.entries(body)) {
    if (typeof words !== 'string' || Buffer.byteLength(words) <= LIMITS.messageBytes) continue
    const bytes = Buffer.byteLength(words)
    const cut = { ...body, [field]: beginningOf(words, LIMITS.messageBytes), attachedBytes: bytes }
    if (bytes > LIMITS.attachmentBytes) return { body: cut, isTooLarge: true }
    return { body: cut, attachment: words, isTooLarge: isStillTooLarge(cut) }
  }
  return { body, isTooLarge: isStillTooLarge(body) }
}

// One long text is foreseen; a body that is longer than that without it, or with it cut, is none of ours.
const isStillTooLarge = (body: Readonly<Record<string, unknown>>) =>
  Buffer.byteLength(JSON.stringify(body)) > 4 * LIMITS.messageBytes

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
