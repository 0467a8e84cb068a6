import { describeError } from '../base/errors.ts'
import { errorCode } from '../base/files.ts'
import type { JsonSchema, Tool, ToolContext, ToolOutcome } from '../loop/ports.ts'
import { openFileIn, Refusal } from './confined.ts'
import type { OpenFolder } from './confined.ts'
import { TOOL_LIMITS } from './limits.ts'
import { validateInput } from './schema.ts'
import { reasonOf } from './supervised-command.ts'

/* What the file tools have in common. */

export const PATH: JsonSchema = { type: 'string', minLength: 1, description: 'Relative to the workspace.' }

export interface FileToolParts<Input> {
  readonly name: string
  readonly description: string
  readonly effect: 'read' | 'write'
  readonly properties: Readonly<Record<string, JsonSchema>>
  readonly required: readonly string[]
  readonly work: (input: Input, context: ToolContext) => Promise<unknown>
}

// Files are local: what takes longer is a disk that hangs.
const TIMEOUT_MS = 60_000

export function fileTool<Input>({ work, properties, required, ...rest }: FileToolParts<Input>): Tool {
  const inputSchema: JsonSchema = { type: 'object', properties, required, additionalProperties: false }
  return {
    ...rest,
    inputSchema,
    repeat: rest.effect === 'write' ? 'once' : 'each',
    timeoutMs: TIMEOUT_MS,
    idempotent: rest.effect === 'read',
    identity: (input) => input,
    validate: (input) => validateInput(inputSchema, input),
    perform: (input, context) => performSafely(() => work(input as Input, context), context.signal),
  }
}

/** It was changed, but a power loss may undo that. */
export class Unsure extends Error {}

async function performSafely(work: () => Promise<unknown>, signal: AbortSignal): Promise<ToolOutcome> {
  if (signal.aborted) return { kind: 'failed', error: `${reasonOf(signal)} before it was started` }
  try {
    return { kind: 'done', result: await work() }
  } catch (error) {
    if (error instanceof Unsure) return { kind: 'in-doubt', error: error.message }
    if (error instanceof Refusal || errorCode(error) !== undefined)
      return { kind: 'failed', error: describeError(error) }
    throw error
  }
}

export function readText(folder: OpenFolder, name: string): Promise<{ text: string; totalBytes: number }> {
  return openFileIn(folder, name, async (file) => {
    const { size } = await file.stat()
    if (size > TOOL_LIMITS.searchedFileBytes) {
      throw new Refusal(`${name}: is too large, ${size} bytes of at most ${TOOL_LIMITS.searchedFileBytes}`)
    }
    const content = await file.readFile()
    if (content.includes(0)) throw new Refusal(`${name}: is not a text file`)
    return { text: content.toString('utf8'), totalBytes: content.length }
  })
}
