import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  type BigIntStats,
} from 'node:fs'
import { lstat, open } from 'node:fs/promises'

import { errorCode } from '../base/files.ts'
import { onDisk, parentOf, parentsOf, type RawPath } from './paths.ts'

/*
 * Putting one file in the place of another in a tree that somebody may be working in. What is there is taken away by its name, looked at, and only then the new one gets
 * the name, unless somebody else took it meanwhile: at no moment can an edit be overwritten. What was taken is kept until the landing is over.
 */

/** Enough to know that nobody touched a file. A link to it or a rename changes `changed`, so that is for files that we did not touch either. */
export interface Mark {
  readonly inode: bigint
  readonly size: bigint
  readonly modified: bigint
  readonly changed: bigint
  readonly mode: bigint
}

const markOf = (found: BigIntStats): Mark => ({
  inode: found.ino,
  size: found.size,
  modified: found.mtimeNs,
  changed: found.ctimeNs,
  mode: found.mode,
})

/** What is at a path: nothing, a folder, a file or link, or something in the way above it. */
export type There =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'folder' }
  | { readonly kind: 'blocked'; readonly by: RawPath }
  | { readonly kind: 'file'; readonly mark: Mark }

/** Never through a link: every folder above is looked at by itself. */
export function lookAt(top: string, path: RawPath): There {
  for (const parent of parentsOf(path)) {
    const found = look(onDisk(top, parent))
    if (found === undefined) return { kind: 'nothing' }
    if (!found.isDirectory()) return { kind: 'blocked', by: parent }
  }
  const found = look(onDisk(top, path))
  if (found === undefined) return { kind: 'nothing' }
  return found.isDirectory() ? { kind: 'folder' } : { kind: 'file', mark: markOf(found) }
}

export function markAt(top: string, path: RawPath): Mark | undefined {
  const found = look(onDisk(top, path))
  return found === undefined || found.isDirectory() ? undefined : markOf(found)
}

function look(place: Buffer): BigIntStats | undefined {
  try {
    return lstatSync(place, { bigint: true })
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}

/** Somebody else was here: what is there is theirs. */
export class Surprise extends Error {
  readonly path: RawPath
  constructor(path: RawPath) {
    super('a file was changed meanwhile')
    this.path = path
  }
}

export interface Swap {
  readonly path: RawPath
  /** What has to be there; `undefined`: nothing. */
  readonly expected: Mark | undefined
  /** The new one, a file or link of ours; `undefined`: none. */
  readonly source: Buffer | undefined
  /** Between taking the one and naming the other: for tests that die there. */
  readonly between?: (() => void | Promise<void> | undefined) | undefined
}

/**
 * Does it, or throws `Surprise` and leaves the path as it was. `taken` is the folder that gets the old one. In one go, without waiting: the moment in which
 * there is neither is a few millionths of a second.
 */
export async function swap(top: string, taken: string, { path, expected, source, between }: Swap): Promise<void> {
  const place = onDisk(top, path)
  const there = lookAt(top, path)
  if (expected !== undefined) take({ place, taken, path, there, expected })
  else if (there.kind === 'file' || there.kind === 'blocked') throw new Surprise(path)
  if (source === undefined) return prune(top, path)
  if (between !== undefined) await between()
  try {
    if (expected !== undefined) keepMode(source, expected)
    inFolder(onDisk(top, parentOf(path)), () => giveName(source, place, path))
  } catch (error) {
    if (expected !== undefined) giveBack(onDisk(taken, path), place, path)
    throw error
  }
}

interface Take {
  readonly place: Buffer
  readonly taken: string
  readonly path: RawPath
  readonly there: There
  readonly expected: Mark
}

function take({ place, taken, path, there, expected }: Take): void {
  if (there.kind !== 'file' || !isSame(there.mark, expected)) throw new Surprise(path)
  const away = onDisk(taken, path)
  inFolder(onDisk(taken, parentOf(path)), () => renameSync(place, away))
  const got = markOf(lstatSync(away, { bigint: true }))
  if (isUntouched(got, expected)) return
  // Changed between the look and the rename.
  giveBack(away, place, path)
  throw new Surprise(path)
}

/** As a rule it is there, and asking costs as much as doing. */
function inFolder(folder: Buffer, work: () => void): void {
  try {
    work()
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    mkdirSync(folder, { recursive: true })
    work()
  }
}

/** If the name is free. If not, what is there is the newer one, and what was taken stays where it is until the next redo. */
function giveBack(away: Buffer, place: Buffer, path: RawPath): void {
  try {
    giveName(away, place, path)
  } catch {
    // Looked at again when everything goes back.
  }
}

const isSame = (a: Mark, b: Mark) => isUntouched(a, b) && a.changed === b.changed
const isUntouched = (a: Mark, b: Mark) =>
  a.inode === b.inode && a.size === b.size && a.modified === b.modified && a.mode === b.mode

/** What we took is still as it was when we took it: an editor that had it open may have written into it since. */
export function isAsTaken(taken: string, path: RawPath, expected: Mark): boolean {
  const found = look(onDisk(taken, path))
  return found !== undefined && isUntouched(markOf(found), expected)
}

/** A second name for our file: fails if the name is taken, and is never half there. */
export function giveName(source: Buffer, place: Buffer, path: RawPath): void {
  try {
    // Not every system gives a link itself a second name.
    if (lstatSync(source).isSymbolicLink()) symlinkSync(readlinkSync(source, 'buffer'), place)
    else linkSync(source, place)
  } catch (error) {
    const code = errorCode(error) ?? ''
    if (['EEXIST', 'EISDIR', 'ENOTDIR'].includes(code)) throw new Surprise(path)
    throw error
  }
}

/** The bits for reading and writing are the user's own affair; of the others git knows one. */
function keepMode(source: Buffer, old: Mark): void {
  const found = lstatSync(source)
  const before = Number(old.mode)
  if (!found.isFile() || (before & 0o170000) !== 0o100000) return
  const readable = before & 0o666
  const mode = (found.mode & 0o100) === 0 ? readable : readable | ((before & 0o444) >> 2)
  if ((found.mode & 0o777) !== mode) chmodSync(source, mode)
}

/** Folders that are empty now: git has none. */
function prune(top: string, path: RawPath): void {
  for (const parent of parentsOf(path).toReversed()) {
    try {
      rmdirSync(onDisk(top, parent))
    } catch {
      return
    }
  }
}

/** What is in the file, and its name, is on the disk. */
export async function syncPath(place: Buffer | string): Promise<void> {
  const found = await lstat(place)
  if (found.isSymbolicLink()) return
  const file = await open(place, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
