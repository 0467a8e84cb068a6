import { actionsOfEntry } from '../actions/action.ts'
import type { Action } from '../actions/action.ts'
import { LIMITS } from '../base/limits.ts'
import type { ThreadId } from '../base/ids.ts'
import type { Transition } from '../store/transition.ts'
import { conversationOf } from '../threads/conversation.ts'
import { findThread } from '../threads/thread.ts'
import type { ModelMessage, ToolCall } from './ports.ts'

/** The conversation as the next model call will be shown it, kept in memory while a run goes on. */
export class Session {
  readonly generation: number
  readonly messages: ModelMessage[] = []
  /** Replies of the model on this thread so far. */
  replies = 0
  /** The actions of the last reply, as far as they are known. */
  open: readonly Action[] = []

  constructor(generation: number) {
    this.generation = generation
  }

  /** The model has been told something that it has not answered. */
  get owesReply(): boolean {
    const last = this.messages.at(-1)
    return last !== undefined && last.role !== 'assistant'
  }

  get lastText(): string {
    const last = this.messages.findLast((message) => message.role === 'assistant')
    return last?.role === 'assistant' ? last.text : ''
  }

  show(text: string): void {
    this.messages.push({ role: 'user', text })
  }

  reply(text: string, toolCalls: readonly ToolCall[]): void {
    this.messages.push({ role: 'assistant', text, toolCalls })
    this.replies += 1
  }

  /** The results, in the order of the calls: every call of the model gets an answer, whatever became of it. */
  answer(actions: readonly Action[]): void {
    for (const action of actions) this.messages.push(resultMessage(action))
  }
}

/** What is recorded of a thread, read once: a resumed run goes on from here. */
export function* readSession(threadId: ThreadId): Transition<Session> {
  const thread = yield* findThread.single(threadId)
  const session = new Session(thread?.generation ?? 1)
  const entries = yield* conversationOf.single(threadId, session.generation)
  for (const [index, entry] of entries.entries()) {
    if (entry.kind === 'user') session.show(wordsOf(entry.body))
    else {
      const calls = (entry.body.toolCalls ?? []) as readonly ToolCall[]
      session.reply(wordsOf(entry.body), calls)
      const actions = calls.length === 0 ? [] : yield* actionsOfEntry.single(entry.seq)
      if (index === entries.length - 1) session.open = actions
      else session.answer(actions)
    }
  }
  return session
}

/** Written by `recordTurn`, so it has a text. */
const wordsOf = ({ text }: Readonly<Record<string, unknown>>): string => (typeof text === 'string' ? text : '')

/** In words for the model: what happened, what certainly did not, what nobody knows. */
export function resultMessage(action: Action): ModelMessage {
  const { callId, tool } = action
  return { role: 'tool', callId, tool, text: clip(resultText(action)), failed: action.state !== 'done' }
}

function resultText({ state, result, error, repeatOf }: Action): string {
  const value = typeof result === 'string' ? result : JSON.stringify(result)
  if (state === 'done')
    return repeatOf === null ? value : `(the same as an earlier call, which was not performed again)\n${value}`
  if (state === 'in_doubt')
    return `unknown: it may or may not have happened (${error ?? 'it was cut off'}); do not assume either`
  return `${state}: ${error ?? 'it did not happen'}`
}

/** Both ends of what is too long to be shown. */
function clip(text: string): string {
  if (text.length <= LIMITS.resultCharacters) return text
  const half = LIMITS.resultCharacters / 2
  return `${text.slice(0, half)}\n… ${text.length - LIMITS.resultCharacters} characters left out …\n${text.slice(-half)}`
}
