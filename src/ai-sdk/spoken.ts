import type { LanguageModelV4Prompt } from '@ai-sdk/provider'

import type { Conversation, Said } from '../define/own-loop.ts'
import type { ModelMessage, ToolCall } from '../loop/ports.ts'

/*
 * A conversation of the AI SDK in our words: what people read of it in the thread, and what telemetry tells. What is no text
 * is named; nothing goes on from it.
 */

/** Any part of a message, of an answer or of a stream. */
interface AnyPart {
  readonly type: string
  readonly text?: unknown
  readonly delta?: unknown
  readonly mediaType?: unknown
  readonly toolCallId?: string
  readonly toolName?: string
  readonly input?: unknown
  readonly output?: { readonly type: string; readonly value?: unknown; readonly reason?: unknown }
}

export function spoken(prompt: LanguageModelV4Prompt): Conversation {
  const system = prompt.flatMap(({ role, content }) => (role === 'system' ? [content] : []))
  return { system: system.join('\n\n'), messages: prompt.flatMap(messagesIn) }
}

function messagesIn({ role, content }: LanguageModelV4Prompt[number]): ModelMessage[] {
  if (role === 'system') return []
  const parts: readonly AnyPart[] = content
  if (role === 'tool') return parts.flatMap(resultIn)
  const text = wordsOf(parts)
  return role === 'user' ? [{ role, text }] : [{ role, text, toolCalls: callsIn(parts) }]
}

function resultIn({ type, toolCallId = '', toolName = '', output }: AnyPart): ModelMessage[] {
  if (type !== 'tool-result' || output === undefined) return []
  const { type: kind, value, reason } = output
  const said = value ?? reason ?? kind
  const text = typeof said === 'string' ? said : JSON.stringify(said)
  return [
    { role: 'tool', callId: toolCallId, tool: toolName, text, failed: !['text', 'json', 'content'].includes(kind) },
  ]
}

/** What was asked since the model spoke last, by who wrote the program. */
export function newlyAsked(prompt: LanguageModelV4Prompt): string {
  const spokeLast = prompt.findLastIndex(({ role }) => role === 'assistant' || role === 'tool')
  const asked = prompt.slice(spokeLast + 1).flatMap(({ role, content }) => (role === 'user' ? [wordsOf(content)] : []))
  return asked.join('\n\n')
}

/** What an answer says and wants, of its parts or of those of its stream. */
export function answerIn(parts: readonly AnyPart[], finish: string): Pick<Said, 'text' | 'toolCalls' | 'finish'> {
  const toolCalls = callsIn(parts)
  return { text: wordsOf(parts), toolCalls, finish: endingOf(finish, toolCalls) }
}

function endingOf(finish: string, toolCalls: readonly ToolCall[]): Said['finish'] {
  if (finish === 'length') return 'length'
  if (finish === 'content-filter') return 'refusal'
  return toolCalls.length > 0 ? 'tool-calls' : 'stop'
}

const wordsOf = (parts: readonly AnyPart[]): string => parts.map(wordsIn).join('')

function wordsIn({ type, text, delta, mediaType }: AnyPart): string {
  if (type === 'text') return String(text)
  if (type === 'text-delta') return String(delta)
  return type === 'file' ? `[a file: ${String(mediaType)}]` : ''
}

const callsIn = (parts: readonly AnyPart[]): ToolCall[] =>
  parts.flatMap(({ type, toolCallId = '', toolName = '', input }) =>
    type === 'tool-call' ? [{ id: toolCallId, tool: toolName, input: inputIn(input) }] : [],
  )

/** Of an answer it is as the model wrote it, which may be no JSON. */
function inputIn(input: unknown): unknown {
  if (typeof input !== 'string') return input
  try {
    return input.trim() === '' ? {} : (JSON.parse(input) as unknown)
  } catch {
    return input
  }
}
