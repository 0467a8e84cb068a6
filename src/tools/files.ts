import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import { describeError } from '../base/errors.ts'
import { writeFileAtomic } from '../base/files.ts'
import { beginningOf } from '../base/text.ts'
import type { Tool } from '../loop/ports.ts'
import { inParent, Refusal, statIn } from './confined.ts'
import type { OpenFolder } from './confined.ts'
import { fileTool, PATH, readText, Unsure } from './file-tool.ts'
import { listTool, searchTool } from './files-look.ts'
import { TOOL_LIMITS } from './limits.ts'

/*
 * One tool for each operation, not one with an `operation` field: a policy and a person can then allow reading and be
 * asked about writing, the effect is a property of the tool, and models make fewer mistakes with a flat list of
 * arguments that are all meant than with a list of which half must be left out.
 */

/** `roots`: what may be touched; relative paths start from the first. */
export function fileTools(roots: readonly [string, ...string[]]): Tool[] {
  return [readTool(roots), writeTool(roots), editTool(roots), listTool(roots), searchTool(roots)]
}

interface ReadInput {
  readonly path: string
  readonly from_line?: number
  readonly lines?: number
}

const readTool = (roots: readonly string[]) =>
  fileTool<ReadInput>({
    name: 'files_read',
    description: `Reads a text file, or some lines of it. At most ${TOOL_LIMITS.readBytes} bytes at once.`,
    effect: 'read',
    properties: {
      path: PATH,
      from_line: { type: 'integer', minimum: 1, description: 'The first line to read, from 1.' },
      lines: { type: 'integer', minimum: 1, description: 'How many.' },
    },
    required: ['path'],
    work: ({ path, from_line: from = 1, lines: count }) =>
      inParent(roots, path, { create: false }, async (folder, name) => {
        const { text, totalBytes } = await readText(folder, name)
        const lines = text.split('\n')
        const wanted = lines.slice(from - 1, count === undefined ? undefined : from - 1 + count).join('\n')
        const kept = beginningOf(wanted, TOOL_LIMITS.readBytes)
        return { text: kept, totalBytes, totalLines: lines.length, ...(kept === wanted ? {} : { truncated: true }) }
      }),
  })

interface WriteInput {
  readonly path: string
  readonly content: string
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

function writeTool(roots: readonly string[]): Tool {
  const tool = fileTool<WriteInput>({
    name: 'files_write',
    description: 'Creates a file, or replaces all of it, with its missing folders. For a small change use files_edit.',
    effect: 'write',
    properties: { path: PATH, content: { type: 'string', maxLength: TOOL_LIMITS.writeBytes } },
    required: ['path', 'content'],
    work: ({ path, content }) =>
      inParent(roots, path, { create: true }, async (folder, name) => {
        await replace(folder, name, content)
        return { path, bytes: Buffer.byteLength(content) }
      }),
  })
  return {
    ...tool,
    identity: (input) => ({
      path: samePath((input as WriteInput).path),
      sha256: sha256((input as WriteInput).content),
    }),
    probe: (input) => hasContent(roots, input as WriteInput),
  }
}

/** `./a` and `a//b` are spelled otherwise; where `..` leads depends on links. */
const samePath = (path: string) => (path.includes('..') ? path : posix.normalize(path))

/** The file of this content is there: it happened, or it makes no difference. */
async function hasContent(roots: readonly string[], { path, content }: WriteInput) {
  const found = await inParent(roots, path, { create: false }, readText).catch(() => undefined)
  if (found?.text !== content) return { kind: 'unknown' as const }
  return { kind: 'done' as const, result: { path, bytes: Buffer.byteLength(content) } }
}

// A new file is for others to read too, as an editor would make it.
const NEW_FILE_MODE = 0o644

/** Whether it happened can be seen: an atomic write leaves another file under the name. */
async function replace(folder: OpenFolder, name: string, content: string): Promise<void> {
  const before = await statIn(folder, name)
  try {
    await writeFileAtomic(folder.at(name), content, { mode: before?.mode ?? NEW_FILE_MODE })
  } catch (error) {
    const after = await statIn(folder, name)
    throw after?.inode === before?.inode ? new Refusal(describeError(error)) : new Unsure(describeError(error))
  }
}

interface EditInput {
  readonly path: string
  readonly old_text: string
  readonly new_text: string
  readonly replace_all?: boolean
}

const editTool = (roots: readonly string[]) =>
  fileTool<EditInput>({
    name: 'files_edit',
    description: 'Replaces a text in a file. The old text must be there exactly once, unless replace_all is true.',
    effect: 'write',
    properties: {
      path: PATH,
      old_text: { type: 'string', minLength: 1, description: 'Exactly as it is in the file, with its blanks.' },
      new_text: { type: 'string', maxLength: TOOL_LIMITS.writeBytes },
      replace_all: { type: 'boolean' },
    },
    required: ['path', 'old_text', 'new_text'],
    work: (input) =>
      inParent(roots, input.path, { create: false }, async (folder, name) => {
        const { text } = await readText(folder, name)
        const parts = text.split(input.old_text)
        checkCount(input, parts.length - 1)
        await replace(folder, name, parts.join(input.new_text))
        return { path: input.path, replaced: parts.length - 1 }
      }),
  })

function checkCount({ path, replace_all: all }: EditInput, count: number): void {
  if (count === 0) throw new Refusal(`${path}: the old text is not in it; read the file again`)
  if (count > 1 && all !== true) {
    throw new Refusal(`${path}: the old text is there ${count} times; take more of what is around it, or replace_all`)
  }
}
