import { digestOf } from '../base/canonical-json.ts'
import { HoldfastError } from '../base/errors.ts'
import { newMessageId, newRunId, newThreadId } from '../base/ids.ts'
import type { Randomness, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { beginningOf } from '../base/text.ts'
import type { Thread } from '../threads/thread.ts'
import { viewMessage } from '../threads/view.ts'
import type { Sending, Sent } from './send.ts'

/** A thread that is there, or a new one with this agent. */
export type Recipient = { readonly agent: string } | { readonly thread: Thread }

export interface Letter {
  readonly to: Recipient
  readonly text: string
  /** The sender's own name for it: the same key is the same message. */
  readonly key?: string
}

interface Office {
  readonly agents: readonly string[]
  readonly random: Randomness
}

/** A letter with everything that sending it needs, or the reason why it cannot be sent; for every door. */
export function addressLetter({ agents, random }: Office, { to, text, key }: Letter): Sending {
  if (text.trim() === '') {
    throw new HoldfastError('usage/no-text', 'there is nothing to send', { remedy: 'write a message' })
  }
  const ids = { messageId: newMessageId(random), runId: newRunId(random) }
  const common = { ...ids, key: key ?? ids.messageId, text }
  if ('agent' in to) {
    const agent = knownAgent(agents, to.agent)
    return { ...common, agent, threadId: key === undefined ? newThreadId(random) : threadOfKey(agent, key) }
  }
  // Every thread has an inbox. One of a command, a session or somebody else's agent gets no run from here: it is drained, or
  // whoever has that agent wakes it.
  const { thread } = to
  return { ...common, agent: thread.agent, threadId: thread.id, wakes: agents.includes(thread.agent) }
}

function knownAgent(known: readonly string[], agent: string): string {
  if (known.includes(agent)) return agent
  const there =
    known.length === 0
      ? 'no configuration with agents was found: `holdfast init` writes one, --config names one'
      : `there are: ${known.join(', ')}`
  throw new HoldfastError('not-found/agent', `there is no agent "${agent}"`, { remedy: there })
}

/** Sent twice with one key, it is one message: so the thread that it starts must be one too. */
const threadOfKey = (agent: string, key: string) => `thr_${digestOf([agent, key]).slice(0, 32)}` as ThreadId

/** Of a long text the row has the beginning and the length. */
function isSameText({ body }: Sent['message'], text: string): boolean {
  if (body['attachedBytes'] === undefined) return body['text'] === text
  return body['attachedBytes'] === Buffer.byteLength(text) && body['text'] === beginningOf(text, LIMITS.messageBytes)
}

/** The public answer to a message. A key that already stands for another text is the sender's mistake, and said. */
export function viewSent({ message, runId, anew }: Sent, text: string) {
  if (message.state === 'dead') {
    throw new HoldfastError(
      'messages/not-accepted',
      `${message.id} cannot be delivered: ${message.reason ?? 'it is a dead letter'}`,
      {
        remedy: `holdfast inbox dead show ${message.id}`,
      },
    )
  }
  if (!isSameText(message, text)) {
    throw new HoldfastError(
      'messages/key-conflict',
      `the key "${message.key}" belongs to a message with another text`,
      {
        remedy: 'give each message a key of its own',
      },
    )
  }
  return {
    message: viewMessage(message),
    threadId: message.threadId,
    ...(runId === undefined ? {} : { runId }),
    ...(anew ? { anew } : {}),
  }
}
