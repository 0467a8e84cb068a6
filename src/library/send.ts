import { HoldfastError } from '../base/errors.ts'
import type { ThreadId } from '../base/ids.ts'
import { lastEventSeq } from '../events/event.ts'
import { addressLetter, viewSent } from '../runs/address.ts'
import { sendMessage } from '../runs/send.ts'
import type { Sending } from '../runs/send.ts'
import type { Runtime } from '../runtime.ts'
import { findThread } from '../threads/thread.ts'

/** To an agent, or into a thread; with both, the thread is opened if it is not there. */
export type NewMessage = (
  | { readonly agent: string; readonly threadId?: string }
  | { readonly agent?: never; readonly threadId: string }
) & {
  readonly text: string
  /** The same key is the same message: a program that was killed asks again, and gets the answer to its first question. */
  readonly key?: string
}

export interface SentMessage {
  readonly messageId: string
  readonly threadId: string
  /** The run that will take it, as far as that is known. */
  readonly runId: string | undefined
  /** What was recorded before belongs to others. */
  readonly afterSeq: number
}

/** Resolves when the message is on disk: from here on it is answered, or visibly not. */
export async function send(runtime: Runtime, message: NewMessage): Promise<SentMessage> {
  const { store } = runtime
  const sending = await addressed(runtime, message)
  const before = await store.read(lastEventSeq)
  const sent = await store.apply(sendMessage, sending)
  const { message: accepted, threadId, runId } = viewSent(sent, message.text)
  // One that was sent before is told from its beginning.
  return { messageId: accepted.id, threadId, runId, afterSeq: accepted.id === sending.messageId ? before.seq : 0 }
}

async function addressed(runtime: Runtime, { agent, threadId, text, key }: NewMessage): Promise<Sending> {
  const letter = { text, ...(key === undefined ? {} : { key }) }
  const known = threadId === undefined ? undefined : await runtime.store.read(findThread, threadId as ThreadId)
  // One that is stopped is there: who writes to it wants it to go on.
  const thread = known?.state === 'removed' ? undefined : known
  if (thread === undefined && agent === undefined)
    throw new HoldfastError('not-found/thread', `there is no thread "${threadId ?? ''}"`, {
      remedy: 'name the agent too, and it is opened',
    })
  if (thread !== undefined && agent !== undefined && thread.agent !== agent)
    throw new HoldfastError('usage/agent', `thread "${thread.id}" belongs to the agent "${thread.agent}"`, {
      remedy: 'send to that one, or to another thread',
    })
  if (thread !== undefined) return addressLetter(runtime, { ...letter, to: { thread } })
  const sending = addressLetter(runtime, { ...letter, to: { agent: agent ?? '' } })
  return threadId === undefined ? sending : { ...sending, threadId: threadId as ThreadId }
}
