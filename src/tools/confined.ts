import { constants } from 'node:fs'
import { lstat, mkdir, open, realpath, type FileHandle } from 'node:fs/promises'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { errorCode } from '../base/files.ts'

/*
 * Paths that a model names lead nowhere but below the roots. A prefix of the text proves nothing: between a check and
 * its use somebody can put a symbolic link there. So every folder on the way is opened by its name in the folder before,
 * without following links, and stays open: on Linux `/proc/self/fd/N/name` is a name in the folder that is open as N,
 * wherever it was moved meanwhile. Elsewhere the name has to be used instead, and a swap between two steps is not seen.
 */

/** What a model is told; nothing was touched. */
export class Refusal extends Error {}

const HANDLES_HAVE_NAMES = process.platform === 'linux'
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
// Not blocking, because to open a pipe would wait for somebody to write into it.
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** A folder that is held open. `at` is the name to use in it, `shown` the one to tell. */
export interface OpenFolder {
  readonly handle: FileHandle
  readonly path: string
  readonly shown: string
  at(name?: string): string
}

const openedAt = (handle: FileHandle, path: string, shown: string): OpenFolder => {
  const base = HANDLES_HAVE_NAMES ? `/proc/self/fd/${handle.fd}` : path
  return { handle, path, shown, at: (name) => (name === undefined ? base : join(base, name)) }
}

interface Place {
  readonly root: string
  readonly parts: readonly string[]
}

/** Which root, and which names below it. A relative path belongs to the first root. */
async function locate(roots: readonly string[], path: string): Promise<Place> {
  if (path.includes('\0')) throw new Refusal('a path cannot hold a NUL character')
  if (path.split(/[/\\]/).includes('..')) throw new Refusal(`${path}: ".." is not allowed; name the path from its root`)
  for (const root of roots) {
    // A root is what a person wrote; where its own links lead is meant.
    for (const base of [resolve(root), await realpath(root).catch(() => resolve(root))]) {
      const below = relative(base, isAbsolute(path) ? path : resolve(base, path))
      if (below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below)) {
        return { root, parts: below.split(sep).filter((part) => part !== '') }
      }
    }
  }
  throw new Refusal(`${path}: is outside of ${roots.join(', ')}`)
}

/** Opens the folder at the path for the time of `use`. */
export async function inFolder<T>(
  roots: readonly string[],
  path: string,
  use: (folder: OpenFolder) => Promise<T>,
): Promise<T> {
  return descend(await locate(roots, path), { create: false }, use)
}

/** Opens the folder that holds (or will hold) the named file for the time of `use`. */
export async function inParent<T>(
  roots: readonly string[],
  path: string,
  options: { readonly create: boolean },
  use: (folder: OpenFolder, name: string) => Promise<T>,
): Promise<T> {
  const { root, parts } = await locate(roots, path)
  const name = parts.at(-1)
  if (name === undefined) throw new Refusal(`${path}: is a folder`)
  return descend({ root, parts: parts.slice(0, -1) }, options, (folder) => use(folder, name))
}

async function descend<T>(
  { root, parts }: Place,
  options: { readonly create: boolean },
  use: (folder: OpenFolder) => Promise<T>,
): Promise<T> {
  const real = await realpath(root)
  const top = openedAt(await open(real, FOLDER), real, '')
  const walk = async (folder: OpenFolder, [first, ...rest]: readonly string[]): Promise<T> => {
    if (first === undefined) return use(folder)
    if (options.create) await makeFolder(folder, first)
    return inChild(folder, first, (child) => walk(child, rest))
  }
  try {
    return await walk(top, parts)
  } finally {
    await top.handle.close()
  }
}

export async function inChild<T>(
  parent: OpenFolder,
  name: string,
  use: (folder: OpenFolder) => Promise<T>,
): Promise<T> {
  const shown = join(parent.shown, name)
  const handle = await open(parent.at(name), FOLDER).catch((error: unknown) => refuse(error, shown, 'folder'))
  try {
    return await use(openedAt(handle, join(parent.path, name), shown))
  } finally {
    await handle.close()
  }
}

async function makeFolder(parent: OpenFolder, name: string): Promise<void> {
  try {
    await mkdir(parent.at(name), { mode: 0o755 })
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

/** The file itself, never what a link or a pipe of that name leads to. */
export async function openFileIn<T>(
  folder: OpenFolder,
  name: string,
  use: (file: FileHandle) => Promise<T>,
): Promise<T> {
  const shown = join(folder.shown, name)
  const file = await open(folder.at(name), FILE).catch((error: unknown) => refuse(error, shown, 'file'))
  try {
    if (!(await file.stat()).isFile()) throw new Refusal(`${shown}: is not a file`)
    return await use(file)
  } finally {
    await file.close()
  }
}

export interface FoundFile {
  readonly mode: number
  readonly inode: number
}

/** The file that is there, undefined when there is none; what is no file is refused. */
export async function statIn(folder: OpenFolder, name: string): Promise<FoundFile | undefined> {
  const shown = join(folder.shown, name)
  try {
    const found = await lstat(folder.at(name))
    if (found.isSymbolicLink()) throw new Refusal(`${shown}: is a symbolic link, which is not followed`)
    if (!found.isFile()) throw new Refusal(`${shown}: is not a file`)
    return { mode: found.mode & 0o7777, inode: found.ino }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

const SAYINGS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ELOOP: 'is a symbolic link, which is not followed',
  EACCES: 'may not be read',
  ENXIO: 'is not a file',
}

function refuse(error: unknown, shown: string, wanted: 'file' | 'folder'): never {
  const code = errorCode(error) ?? ''
  // With both flags, Linux says of a link to a folder that it is no folder.
  const saying = code === 'ENOTDIR' ? `is not a folder, or a symbolic link, which is not followed` : SAYINGS[code]
  if (saying === undefined) throw error
  throw new Refusal(`${shown === '' ? `the ${wanted}` : shown}: ${saying}`)
}
