import { clip } from './clip.ts'
import type { ModelMessage } from './ports.ts'

/** A conversation as a text, for whoever is to tell it in fewer words. */
export function transcript(messages: readonly ModelMessage[], mostOfResult: number): string {
  return messages.map((message) => spoken(message, mostOfResult)).join('\n\n')
}

function spoken(message: ModelMessage, mostOfResult: number): string {
  if (message.role === 'user') return `USER: ${message.text}`
  if (message.role === 'tool')
    return `RESULT of ${message.tool}${message.failed ? ' (not done)' : ''}: ${clip(message.text, mostOfResult)}`
  const calls = message.toolCalls.map(({ tool, input }) => `CALL ${tool} ${clip(JSON.stringify(input), mostOfResult)}`)
  return [`AGENT: ${message.text}`, ...calls].join('\n')
}

/** Without a model: each message by its ends. */
export function outline(messages: readonly ModelMessage[], mostOfEach: number): string {
  return messages.map((message) => clip(spoken(message, mostOfEach), mostOfEach * 2)).join('\n')
}

/** What a message adds to a request, about. */
export function charactersOf(message: ModelMessage): number {
  if (message.role !== 'assistant' || message.toolCalls.length === 0) return message.text.length
  return message.text.length + JSON.stringify(message.toolCalls).length
}
