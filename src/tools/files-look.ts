import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Dirent } from 'node:fs'
import type { Tool } from '../loop/ports.ts'
import { inChild, inFolder, Refusal } from './confined.ts'
import type { OpenFolder } from './confined.ts'
import { fileTool, PATH, readText } from './file-tool.ts'
import { TOOL_LIMITS } from './limits.ts'
import { reasonOf } from './supervised-command.ts'

interface ListInput {
  readonly path?: string
  readonly depth?: number
}

export const listTool = (roots: readonly string[]): Tool =>
  fileTool<ListInput>({
    name: 'files_list',
    description: `Lists a folder: folders end in a slash, symbolic links in @. At most ${TOOL_LIMITS.listed} names.`,
    effect: 'read',
    properties: {
      path: PATH,
      depth: { type: 'integer', minimum: 1, maximum: TOOL_LIMITS.depth, description: 'Levels of folders; default 1.' },
    },
    required: [],
    work: ({ path = '.', depth = 1 }, { signal }) =>
      inFolder(roots, path, async (folder) => {
        const names: string[] = []
        await visit(folder, { depth, signal }, (entry, above) => {
          names.push(`${join(above.shown, entry.name)}${suffix(entry)}`)
          return Promise.resolve(names.length < TOOL_LIMITS.listed)
        })
        return { names, ...(names.length < TOOL_LIMITS.listed ? {} : { truncated: true }) }
      }),
  })

const suffix = (entry: Dirent) => (entry.isDirectory() ? '/' : entry.isSymbolicLink() ? '@' : '')

interface Walk {
  readonly depth: number
  readonly signal: AbortSignal
}

/** Sorted, folders before what is in them. False ends the walk. */
async function visit(
  folder: OpenFolder,
  { depth, signal }: Walk,
  see: (entry: Dirent, folder: OpenFolder) => Promise<boolean>,
): Promise<boolean> {
  const entries = await readdir(folder.at(), { withFileTypes: true })
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    if (signal.aborted) throw new ToldToStop(reasonOf(signal))
    if (!(await see(entry, folder))) return false
    if (!entry.isDirectory() || depth <= 1 || entry.name === '.git') continue
    // It may have become something else meanwhile; then it is not gone into.
    const child = inChild(folder, entry.name, (inner) => visit(inner, { depth: depth - 1, signal }, see))
    if (!(await child.catch(skipRefused))) return false
  }
  return true
}

class ToldToStop extends Refusal {}

function skipRefused(error: unknown): true {
  if (error instanceof Refusal && !(error instanceof ToldToStop)) return true
  throw error
}

interface SearchInput {
  readonly text: string
  readonly path?: string
  readonly ignore_case?: boolean
  readonly file_ending?: string
}

interface Match {
  readonly path: string
  readonly line: number
  readonly text: string
}

/** Plain text only: a regular expression of a model could keep this process busy for ever, and no signal would end it. */
export const searchTool = (roots: readonly string[]): Tool =>
  fileTool<SearchInput>({
    name: 'files_search',
    description: `Finds lines that contain a text (not a pattern) in the files below a folder. At most ${TOOL_LIMITS.matches} matches; large and binary files and .git are left out.`,
    effect: 'read',
    properties: {
      text: { type: 'string', minLength: 1 },
      path: PATH,
      ignore_case: { type: 'boolean' },
      file_ending: { type: 'string', description: 'Only files whose name ends so, as ".ts".' },
    },
    required: ['text'],
    work: (input, { signal }) =>
      inFolder(roots, input.path ?? '.', async (folder) => {
        const matches: Match[] = []
        let files = 0
        const complete = await visit(folder, { depth: TOOL_LIMITS.depth, signal }, async (entry, above) => {
          if (!entry.isFile() || !entry.name.endsWith(input.file_ending ?? '')) return true
          matches.push(...(await matchesIn(above, entry.name, input)))
          files += 1
          return matches.length < TOOL_LIMITS.matches && files < TOOL_LIMITS.searchedFiles
        })
        return { matches: matches.slice(0, TOOL_LIMITS.matches), files, ...(complete ? {} : { truncated: true }) }
      }),
  })

async function matchesIn(folder: OpenFolder, name: string, input: SearchInput): Promise<Match[]> {
  const found = await readText(folder, name).catch(() => undefined)
  const plain = (text: string) => (input.ignore_case === true ? text.toLowerCase() : text)
  const wanted = plain(input.text)
  return (found?.text ?? '').split('\n').flatMap((text, index) => {
    const kept = text.slice(0, TOOL_LIMITS.lineCharacters)
    return plain(text).includes(wanted) ? [{ path: join(folder.shown, name), line: index + 1, text: kept }] : []
  })
}
