import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { beginningOf } from '../base/text.ts'
import { record } from '../events/event.ts'
import { now, sql } from '../store/sql.ts'
import { first, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { messageRow } from './message.ts'
import type { Message, MessageKind } from './message.ts'
import type { Thread } from './thread.ts'

/** What is put into an inbox, whoever puts it there. */
export interface PutMessage {
  readonly id: MessageId
  readonly threadId: ThreadId
  readonly from?: ThreadId
  readonly kind: MessageKind
  /** The producer's own name for it: the same key is the same message, whatever it says. */
  readonly key: string
  readonly body: Readonly<Record<string, unknown>>
  /** The run that it tells of. */
  readonly about?: RunId
}

export interface Put {
  readonly message: Message
  /** More than a message may carry: what there is of it is stored all the same. */
  readonly isTooLarge: boolean
}

/** The one way into an inbox: stored, with its event. Undefined: it is known already. One whose recipient is not there is held. */
export function* putMessage(message: PutMessage, recipient: Thread | undefined): Transition<Put | undefined> {
  const { body, attachment, isTooLarge } = withinLimit(message.body)
  const stored = yield* first(
    messageRow,
    sql`insert into messages (id, thread_id, generation, from_thread, kind, key, state, body, created_at, next_attempt_at)
      values (${message.id}, ${message.threadId}, ${recipient?.generation ?? 1}, ${message.from ?? null}, ${message.kind},
        ${message.key}, 'pending', ${JSON.stringify(body)}, ${now},
        ${recipient === undefined ? sql`${now} + ${LIMITS.heldFirstMs}` : sql`null`})
      on conflict do nothing returning *`,
  )
  if (stored === undefined) return undefined
  if (attachment !== undefined) {
    yield* run(sql`insert into attachments (message_id, content) values (${stored.id}, ${attachment})`)
  }
  const data = { messageId: stored.id, kind: stored.kind }
  const about = message.about === undefined ? {} : { runId: message.about }
  yield* record({ type: 'message.accepted', threadId: stored.threadId, ...about, data })
  return { message: stored, isTooLarge }
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
