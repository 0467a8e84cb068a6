import { isAbsolute, posix } from 'node:path'

import { WORKSPACE_MODES } from '../workspace/workspace.ts'
import type { CheckRequest, WorkspaceRequest } from '../workspace/workspace.ts'
import type { Path } from './json-text.ts'
import type { Complain } from './problem.ts'
import { readDuration, readList, readOneOf, readRecord, readText } from './read.ts'
import type { JsonRecord, Reader } from './read.ts'

/** What the runs of an agent do to files; the root may be relative to the folder of the configuration. */
export type WorkspaceConfig = WorkspaceRequest

const KEYS = ['root', 'mode', 'check', 'checkTimeout', 'copy', 'link', 'commits', 'keep', 'largestFile']

export const readWorkspace: Reader<WorkspaceConfig> = (value, path, complain) => {
  if (typeof value === 'string') {
    return complain(path, 'must be an object', `write { "root": ${JSON.stringify(value)}, "check": "npm test" }`)
  }
  const written = readRecord(value, KEYS, path, complain)
  const given = <T>(key: string, read: Reader<T>) =>
    written[key] === undefined ? undefined : read(written[key], [...path, key], complain)
  const root = readRoot(written, path, complain)
  const mode = given('mode', readOneOf(WORKSPACE_MODES)) ?? 'shadow'
  const [check, checkTimeoutMs] = [given('check', readCheck), given('checkTimeout', readDuration)]
  const [copy, link] = [given('copy', readPaths), given('link', readPaths)]
  const [commits, keepMs] = [given('commits', readOneOf(['squash', 'keep'])), given('keep', readDuration)]
  const largestFile = given('largestFile', readSize)
  complainUnused(written, path, complain)
  complainTwice(copy, link, path, complain)
  if (root === undefined) return undefined
  return {
    root,
    mode,
    ...(check === undefined ? {} : { check }),
    ...(checkTimeoutMs === undefined ? {} : { checkTimeoutMs }),
    ...(copy === undefined ? {} : { copy }),
    ...(link === undefined ? {} : { link }),
    ...(commits === undefined ? {} : { commits }),
    ...(keepMs === undefined ? {} : { keepMs }),
    ...(largestFile === undefined ? {} : { largestFile }),
  }
}

function readRoot({ root }: JsonRecord, path: Path, complain: Complain): string | undefined {
  if (root !== undefined) return readText(root, [...path, 'root'], complain)
  return complain(path, 'has no "root"', 'name a folder in a git repository, as "root": "."')
}

const readCheck: Reader<CheckRequest> = (value, path, complain) => {
  if (typeof value === 'string') {
    const command = readText(value, path, complain)
    return command === undefined ? undefined : { command }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return complain(path, 'must be a command line or a file', 'write "npm test" or { "file": "scripts/check.sh" }')
  }
  const written = readRecord(value, ['file'], path, complain)
  if (written['file'] === undefined) {
    return complain(path, 'names no file', 'write { "file": "scripts/check.sh" }, or the command line as a text')
  }
  const file = readPath(written['file'], [...path, 'file'], complain)
  return file === undefined ? undefined : { file }
}

const UNITS: Readonly<Record<string, number>> = { kB: 1e3, MB: 1e6, GB: 1e9 }

const readSize: Reader<number> = (value, path, complain) => {
  const [, number, unit] = /^(\d+) ?([kMG]B)$/.exec(typeof value === 'string' ? value : '') ?? []
  const bytes = Number(number) * (UNITS[unit ?? ''] ?? 0)
  return bytes > 0 ? bytes : complain(path, 'must be a size in quotes', 'write it as "500MB" or "2GB"')
}

const readPaths: Reader<readonly string[]> = (value, path, complain) => readList(value, path, complain, readPath)

/** Inside of the repository, and not the repository itself: a run must not reach the person's own `.git`. */
const readPath: Reader<string> = (value, path, complain) => {
  const text = readText(value, path, complain)
  if (text === undefined) return undefined
  const wrong = misplaced(text)
  return wrong === undefined ? posix.normalize(text) : complain(path, wrong.what, wrong.remedy)
}

/** What is wrong with a path from the top of a repository, if anything. */
export function misplaced(text: string): { readonly what: string; readonly remedy: string } | undefined {
  const plain = posix.normalize(text)
  const [first] = plain.split('/')
  if (isAbsolute(text) || first === '..' || plain === '.')
    return {
      what: 'is not a path in the repository',
      remedy: 'write it from the top of the repository, as "config/local.json"',
    }
  if (first?.toLowerCase() === '.git')
    return { what: "is inside of the repository's own folder", remedy: 'leave it out: a run has one of its own' }
  return undefined
}

function complainUnused(written: JsonRecord, path: Path, complain: Complain): void {
  if (written['checkTimeout'] !== undefined && written['check'] === undefined) {
    complain([...path, 'checkTimeout'], 'is for a "check", and there is none', 'write one, or leave this out')
  }
}

function complainTwice(
  copy: readonly string[] | undefined,
  link: readonly string[] | undefined,
  path: Path,
  complain: Complain,
): void {
  for (const [index, each] of (link ?? []).entries()) {
    if (copy?.includes(each) === true)
      complain([...path, 'link', index], `"${each}" is copied already`, 'leave it out here, or in "copy"')
  }
}
