import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

/** A file of the repository, or a made-up one in a test of a checker: every checker takes these, never the disk. */
export interface SourceFile {
  /** From the root, with forward slashes: `src/base/clock.ts`. */
  readonly path: string
  readonly text: string
}

const NOT_OURS = new Set(['node_modules', 'dist', '.git', '.holdfast', 'results'])

/** Every file below `folder` that a commit could hold. */
export function filesBelow(folder: string): string[] {
  const top = join(ROOT, folder)
  if (!existsSync(top)) return []
  return readdirSync(top, { withFileTypes: true }).flatMap((entry) => {
    if (NOT_OURS.has(entry.name)) return []
    const path = relative(ROOT, join(top, entry.name))
    if (entry.isDirectory()) return filesBelow(path)
    return entry.isFile() ? [path] : []
  })
}

export const readSource = (path: string): SourceFile => ({ path, text: readFileSync(join(ROOT, path), 'utf8') })

export const sourcesBelow = (...folders: readonly string[]): SourceFile[] =>
  folders
    .flatMap(filesBelow)
    .filter((path) => /\.tsx?$/.test(path))
    .map(readSource)

/** What git would commit (tracked or not yet added), or undefined outside a clone: a second opinion on `filesBelow`. */
export function filesKnownToGit(): string[] | undefined {
  if (!existsSync(join(ROOT, '.git'))) return undefined
  const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT })
  const present = list.toString().split('\0').filter(Boolean)
  return [...new Set(present)].filter((path) => existsSync(join(ROOT, path)))
}

/** What a newcomer reads. */
export function documents(): SourceFile[] {
  const isDocument = (path: string) => /^(README|ARCHITECTURE|CONTRIBUTING)\.md$|^(docs|examples)\/.*\.md$/.test(path)
  return filesBelow('').filter(isDocument).map(readSource)
}
