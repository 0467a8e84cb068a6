import type { ThreadId } from '../base/ids.ts'
import { jsonText } from '../base/visible.ts'
import type { Client } from '../sessions/session.ts'
import type { Delivery } from '../threads/delivery.ts'
import { messageText } from '../threads/message-text.ts'

/** What the hook's command does with what it told. */
export interface HookAnswer {
  /** What the client reads on standard output. Empty: nothing is written. */
  readonly output: string
  /** What is in it, to be noted once the client has it. */
  readonly deliveryId?: string
  /** The session's thread, for the environment of what it starts. */
  readonly threadId?: ThreadId
  /** A person is asked: the answer comes when they have decided, if the client still waits for it. */
  readonly hold?: { readonly approvalId: string; readonly actionId: string }
}

export const NO_ANSWER: HookAnswer = { output: '' }

/**
 * What a client is told over HTTP when there is nothing to say. Claude Code takes `async` to mean that no answer will come, and
 * goes on; an empty object it reads as an answer, and writes into its transcript, which costs each tool call 0.5 to 1.3 ms.
 */
export const nothingToSay = (client: Client): string => (client === 'claude' ? '{"async":true}' : '{}')

const count = (messages: number) => (messages === 1 ? '1 message' : `${messages} messages`)

/** What a model is given to read at the end of its turn. */
export function deliveryText({ messages, remaining }: Pick<Delivery, 'messages' | 'remaining'>): string {
  const rest =
    remaining === 0
      ? ''
      : ` ${remaining} more ${remaining === 1 ? 'is' : 'are'} waiting; the end of your next turn brings them.`
  const opening = `${count(messages.length)} came into your inbox.${rest}`
  return [opening, ...messages.map((message) => messageText(message))].join('\n\n')
}

/** All three clients go on when they are told to block, with the reason as what they read next. */
export const goOn = (delivery: Delivery): string => jsonText({ decision: 'block', reason: deliveryText(delivery) })

/** At a session's start they are announced and not taken: nobody has asked anything yet. */
export function announce(client: Client, waiting: number): string {
  if (waiting === 0) return ''
  const additionalContext = `${count(waiting)} in your Holdfast inbox; they are given to you at the end of your next turn, or now by: holdfast inbox drain self`
  const hookSpecificOutput = { hookEventName: 'SessionStart', additionalContext }
  return JSON.stringify(client === 'gemini' ? { hookSpecificOutput, suppressOutput: true } : { hookSpecificOutput })
}
