import { existsSync, statSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { HoldfastError, type ErrorDetails } from './errors.ts'

/*
 * The one writer of files outside the database. A reader sees the old content or the new, never a mixture, and what
 * was acknowledged is still there after a power loss: unique temporary name in the same folder, data synced, renamed,
 * folder synced.
 */

/** When it is needed: loading it takes 2 ms, and most commands only read the database. */
const disk = () => process.getBuiltinModule('node:fs/promises')

export interface WriteOptions {
  /** Permissions of the file. Without it an existing file keeps its own, a new one gets 0600. */
  readonly mode?: number
  /** False for a file that has no meaning after a reboot: still atomic, but not synced. */
  readonly durable?: boolean
}

export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  options: WriteOptions = {},
): Promise<void> {
  const mode = options.mode ?? (await modeOf(path)) ?? 0o600
  await throughTemporary(path, data, { ...options, mode }, (temporary) => disk().rename(temporary, path))
  if (options.durable !== false) await syncFolder(dirname(path))
}

/** Creates the file complete or not at all; of several racing creators exactly one is told `created`. */
export async function createFileOnce(
  path: string,
  data: string | Uint8Array,
  options: WriteOptions = {},
): Promise<'created' | 'exists'> {
  const outcome = await throughTemporary(path, data, { mode: 0o600, ...options }, (temporary) =>
    linkOnce(temporary, path),
  )
  if (options.durable !== false) await syncFolder(dirname(path))
  return outcome
}

/**
 * Replaces (or, without `data`, removes) a file of somebody else's, unless it says something else by now than what was read
 * of it. Looked at when the new content is on disk already, so only a rename lies between the look and the change.
 */
export async function replaceFile(
  path: string,
  former: Uint8Array,
  data: string | Uint8Array | undefined,
): Promise<'replaced' | 'changed'> {
  const unchanged = async () =>
    (
      await disk()
        .readFile(path)
        .catch(() => undefined)
    )?.equals(former) === true
  const swap = async (change: () => Promise<void>) => {
    if (!(await unchanged())) return 'changed'
    await change()
    return 'replaced'
  }
  const mode = (await modeOf(path)) ?? 0o600
  const outcome =
    data === undefined
      ? await named(path, () => swap(() => disk().unlink(path)))
      : await throughTemporary(path, data, { mode }, (temporary) => swap(() => disk().rename(temporary, path)))
  if (outcome === 'replaced') await syncFolder(dirname(path))
  return outcome
}

/** Creates a folder with its missing parents, so that the new names survive a power loss. */
export async function ensureFolder(path: string, mode = 0o700): Promise<void> {
  const folder = resolve(path)
  // The usual case, without the threads that the rest needs.
  if (existsSync(folder)) return refuseFile(folder)
  const made = await named(folder, () => makeFolder(folder, mode))
  if (made === 'exists') return refuseFile(folder)
  if (made === 'no-parent') {
    await ensureFolder(dirname(folder), mode)
    const again = await named(folder, () => makeFolder(folder, mode))
    // As in /proc: the parent is there, and says that it is not.
    if (again === 'no-parent') throw unwritable(folder)
  }
  await syncFolder(dirname(folder))
}

function refuseFile(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== false) return
  throw new HoldfastError(NO_FOLDER.code, `${folder} is not a folder`, { remedy: NO_FOLDER.remedy })
}

// Not the recursive form of the runtime: on a read-only disk it says that the folder does not exist.
async function makeFolder(path: string, mode: number): Promise<'made' | 'exists' | 'no-parent'> {
  try {
    await disk().mkdir(path, { mode })
    return 'made'
  } catch (error) {
    if (errorCode(error) === 'EEXIST' || errorCode(error) === 'EISDIR') return 'exists'
    if (errorCode(error) === 'ENOENT' && dirname(path) !== path) return 'no-parent'
    throw error
  }
}

export async function syncFolder(path: string): Promise<void> {
  await named(path, async () => {
    const folder = await disk().open(path, 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  })
}

type Publish<T> = (temporary: string) => Promise<T>

async function throughTemporary<T>(
  path: string,
  data: string | Uint8Array,
  options: { readonly mode: number; readonly durable?: boolean },
  publish: Publish<T>,
): Promise<T> {
  const temporary = join(dirname(path), `.${basename(path)}.${uniqueSuffix()}.tmp`)
  return named(path, async () => {
    try {
      await writeTemporary(temporary, data, options)
      return await publish(temporary)
    } finally {
      await disk()
        .unlink(temporary)
        .catch(() => {})
    }
  })
}

let written = 0

// Not random on purpose: loading the runtime's cryptography takes 7 ms, a fifth of the start of a supervisor. A name
// that is taken all the same is an error of the exclusive open, never a shared file.
const uniqueSuffix = () => `${process.pid}-${process.hrtime.bigint().toString(36)}-${(written += 1)}`

async function writeTemporary(
  temporary: string,
  data: string | Uint8Array,
  options: { readonly mode: number; readonly durable?: boolean },
): Promise<void> {
  const file: FileHandle = await disk().open(temporary, 'wx', options.mode)
  try {
    // The mode given to open is narrowed by the umask; a kept mode must not be.
    await file.chmod(options.mode)
    await file.writeFile(data)
    if (options.durable !== false) await file.sync()
  } finally {
    await file.close()
  }
}

async function linkOnce(temporary: string, path: string): Promise<'created' | 'exists'> {
  try {
    await disk().link(temporary, path)
    return 'created'
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return 'exists'
    throw error
  }
}

async function modeOf(path: string): Promise<number | undefined> {
  try {
    const found = await disk().lstat(path)
    return found.isFile() ? found.mode & 0o7777 : undefined
  } catch {
    return undefined
  }
}

interface Trouble {
  readonly code: string
  readonly says: string
  readonly remedy: string
}

const FULL: Trouble = { code: 'files/full', says: 'there is no space left', remedy: 'free some space, then try again' }
const NOT_WRITABLE: Trouble = {
  code: 'files/not-writable',
  says: 'it may not be written',
  remedy: 'check who owns the folder, its permissions and whether the disk is mounted read-only',
}
const NO_FOLDER: Trouble = {
  code: 'files/not-a-folder',
  says: 'a file is in the way, where there should be a folder',
  remedy: 'name another place, or move that file away',
}
const TOO_MANY: Trouble = {
  code: 'files/too-many-open',
  says: 'too many files are open',
  remedy: 'raise the limit on open files (ulimit -n), or run fewer things at once',
}

const FAILED: Trouble = {
  code: 'files/io',
  says: 'the disk failed',
  remedy: 'check the disk and the system log, then try again',
}

const NO_NAME = {
  code: 'files/no-name',
  says: 'no file can be called that',
  remedy: 'choose a shorter name, and one without a NUL',
}

const TROUBLES: Readonly<Record<string, Trouble>> = {
  ENAMETOOLONG: NO_NAME,
  ERR_INVALID_ARG_VALUE: NO_NAME,
  EIO: FAILED,
  ENOSPC: FULL,
  EDQUOT: FULL,
  EACCES: NOT_WRITABLE,
  EPERM: NOT_WRITABLE,
  EROFS: NOT_WRITABLE,
  ENOTDIR: NO_FOLDER,
  EMFILE: TOO_MANY,
  ENFILE: TOO_MANY,
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

const unwritable = (path: string) =>
  new HoldfastError(NOT_WRITABLE.code, `cannot write ${path}: ${NOT_WRITABLE.says}`, { remedy: NOT_WRITABLE.remedy })

/** What the system says about a full disk or a forbidden folder becomes an error that says what to do. */
export async function named<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explainTrouble(error, path)
  }
}

/** As long as a name of a file can be; longer ones are none. */
const MOST_SHOWN = 4_096
const shortened = (path: string) => (path.length <= MOST_SHOWN ? path : `${path.slice(0, 100).toWellFormed()}…`)

/** The same for an error that is there already; anything that is not such a trouble passes unchanged. */
export function explainTrouble(error: unknown, path: string, deed: 'read' | 'write' = 'write'): unknown {
  const trouble = TROUBLES[errorCode(error) ?? '']
  if (trouble === undefined) return error
  const details: ErrorDetails = { remedy: trouble.remedy, cause: error }
  return new HoldfastError(trouble.code, `cannot ${deed} ${shortened(path)}: ${trouble.says}`, details)
}
