import type { Attributes } from '@opentelemetry/api'

import { LIMITS } from '../base/limits.ts'
import { jsonText, visible } from '../base/visible.ts'
import type { ModelMessage, ModelReply, ModelRequest } from '../loop/ports.ts'
import { GEN_AI } from './conventions.ts'

/*
 * What was said and done, word by word: only for who asked for it. It leaves the process, so secrets are hidden in it as at
 * every other exit. What is longer than a backend takes is cut off, and then is not JSON any more.
 */

export function contentOfRequest({ system, messages }: ModelRequest): Attributes {
  return {
    ...(system === '' ? {} : { [GEN_AI.system]: asJson([{ type: 'text', content: system }]) }),
    [GEN_AI.input]: asJson(messages.map(messageOf)),
  }
}

export const contentOfReply = ({ text, toolCalls }: ModelReply): Attributes => ({
  [GEN_AI.output]: asJson([messageOf({ role: 'assistant', text, toolCalls })]),
})

export const argumentsOf = (input: unknown): Attributes => ({ [GEN_AI.arguments]: asJson(input ?? null) })

export const resultOf = (result: unknown): Attributes => ({ [GEN_AI.result]: asJson(result ?? null) })

/** As the conventions have it: a role, and parts of it. */
function messageOf(message: ModelMessage) {
  if (message.role === 'tool')
    return { role: 'tool', parts: [{ type: 'tool_call_response', id: message.callId, response: message.text }] }
  const said = message.text === '' ? [] : [{ type: 'text', content: message.text }]
  if (message.role === 'user') return { role: 'user', parts: said }
  const calls = message.toolCalls.map(({ id, tool, input }) => ({
    type: 'tool_call',
    id,
    name: tool,
    arguments: input,
  }))
  return { role: 'assistant', parts: [...said, ...calls] }
}

const asJson = (value: unknown): string => clipText(jsonText(value))

const clipText = (text: string): string =>
  text.length <= LIMITS.telemetryCharacters ? text : `${text.slice(0, LIMITS.telemetryCharacters)}…`

export const shown = (text: string): string => clipText(visible(text))
