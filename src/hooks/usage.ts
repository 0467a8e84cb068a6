import { open } from 'node:fs/promises'

import { LIMITS } from '../base/limits.ts'
import type { Usage } from '../runs/run.ts'
import type { Heard } from '../sessions/events.ts'

interface Line {
  readonly type?: unknown
  readonly promptId?: unknown
  readonly message?: { readonly id?: unknown; readonly usage?: Readonly<Record<string, unknown>> }
}

/**
 * What a turn of Claude Code used, from the end of its transcript. The file is another program's: whatever is not as
 * expected means that it is not known.
 */
export async function usageOfTurn(
  { client, transcript }: Pick<Heard, 'client' | 'transcript'>,
  turn: string | undefined,
): Promise<Usage | undefined> {
  if (client !== 'claude' || transcript === undefined || turn === undefined) return undefined
  const lines = (await endOf(transcript)).split('\n').flatMap(parsed)
  const begin = lines.findIndex(({ type, promptId }) => type === 'user' && promptId === turn)
  if (begin === -1) return undefined
  // A reply of several parts is several lines, each with the numbers of the whole.
  const replies = new Map(
    lines.slice(begin).flatMap(({ type, message }) => (type === 'assistant' ? [[message?.id, message?.usage]] : [])),
  )
  const sum = (...names: readonly string[]) =>
    [...replies.values()].reduce(
      (total, usage) => total + names.reduce((all, name) => all + numberIn(usage, name), 0),
      0,
    )
  const inputTokens = sum('input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens')
  return { inputTokens, outputTokens: sum('output_tokens'), costMicrousd: 0 }
}

function numberIn(usage: unknown, name: string): number {
  const value = (usage as Readonly<Record<string, unknown>> | undefined)?.[name]
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0
}

function parsed(line: string): Line[] {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? [value] : []
  } catch {
    return []
  }
}

async function endOf(path: string): Promise<string> {
  try {
    const file = await open(path, 'r')
    try {
      const { size } = await file.stat()
      const length = Math.min(size, LIMITS.transcriptBytes)
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
      return buffer.subarray(0, bytesRead).toString('utf8')
    } finally {
      await file.close()
    }
  } catch {
    return ''
  }
}
