import type { Transition } from '../store/transition.ts'
import { appendEntry } from '../threads/conversation.ts'
import { textsOf } from '../threads/delivery.ts'
import { consumeMessages } from '../threads/consume.ts'
import { findMessage } from '../threads/message.ts'
import type { Message } from '../threads/message.ts'
import { findThread } from '../threads/thread.ts'
import type { Run } from './run.ts'

/**
 * Messages that a run took and did not come to answer. Its end is their answer, and nobody takes them again; but they stay
 * in the conversation, with what became of them, so that whoever says "try again" is understood.
 */
export function* keepUnanswered(ended: Run, ids: readonly string[]): Transition<void> {
  yield* consumeMessages(ids, ended.id, ended.threadId)
  if (ended.request.kind !== 'agent') return
  const messages: Message[] = []
  for (const id of ids) {
    const message = yield* findMessage.single(id)
    if (message?.consumedByRun === ended.id) messages.push(message)
  }
  if (messages.length === 0) return
  const generation = (yield* findThread.single(ended.threadId))?.generation ?? 1
  const place = { threadId: ended.threadId, generation, runId: ended.id, kind: 'user' } as const
  for (const { messageId, text } of yield* textsOf(messages))
    yield* appendEntry({ ...place, body: { text, messageId } })
  yield* appendEntry({ ...place, body: { text: noteOn(ended) } })
}

const noteOn = ({ state, error }: Run) =>
  state === 'cancelled'
    ? '[This turn was cancelled before it was answered: do not act on it unless you are asked again.]'
    : `[This turn failed before it was answered: ${error ?? 'for a reason that is not known'}.]`
