import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client'
import { canonicalJson } from '../../base/canonical-json.ts'
import { TOOL_LIMITS } from '../limits.ts'

/** What a model is told of a result: data if the server gives data, otherwise text. Bounded, and always storable. */
export function readResult({ content, structuredContent }: CallToolResult): unknown {
  const text = (content ?? []).map(describeBlock).join('\n')
  if (structuredContent === undefined) return bounded(text)
  const data = storable(structuredContent)
  if (data === undefined) return bounded(text === '' ? 'its structured result cannot be written as JSON' : text)
  if (data.length > TOOL_LIMITS.resultCharacters) return bounded(data)
  // Servers repeat the data as text for clients that know no better.
  return text === '' || storable(parsed(text)) === data
    ? structuredContent
    : { text: bounded(text), data: structuredContent }
}

/** In words only: for what went wrong. */
export const resultText = ({ content }: CallToolResult): string =>
  bounded((content ?? []).map(describeBlock).join('\n').trim() || 'it does not say what')

function describeBlock(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `[${block.type}, ${block.mimeType}, ${bytesOf(block.data)} bytes, not shown]`
    case 'resource_link':
      return `[resource ${block.name}: ${block.uri}]`
    case 'resource':
      return 'text' in block.resource
        ? `[${block.resource.uri}]\n${block.resource.text}`
        : `[${block.resource.uri}, ${block.resource.mimeType ?? 'binary'}, ${bytesOf(block.resource.blob)} bytes, not shown]`
  }
  return `[${String((block as { type?: unknown }).type)}, not shown]`
}

const bytesOf = (base64: string) => Math.floor((base64.length * 3) / 4)

/** Half a character at the end of a cut, or sent by the server, could not be stored. */
function bounded(text: string): string {
  const most = TOOL_LIMITS.resultCharacters
  if (text.length <= most) return text.toWellFormed()
  const half = most / 2
  const left = text.length - most
  return `${text.slice(0, half)}\n… ${left} characters left out …\n${text.slice(-half)}`.toWellFormed()
}

function storable(value: unknown): string | undefined {
  try {
    return canonicalJson(value)
  } catch {
    return undefined
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
