import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'

import { HoldfastError } from '../../base/errors.ts'

/** SQLite's primary result codes that we tell apart; extended codes carry them in the low byte. */
const BUSY = 5
const LOCKED = 6
const READONLY = 8
const IOERR = 10
const CORRUPT = 11
const FULL = 13
const CANTOPEN = 14
const CONSTRAINT = 19
const NOTADB = 26

/** One page of shared memory and one of the log do not fit any more. */
const FULL_BELOW_BYTES = 64 * 1024

function resultCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

export function isBusy(error: unknown): boolean {
  const code = resultCode(error)
  return code === BUSY || code === LOCKED
}

/** Whether it is no database, or not a whole one. */
export const isDamaged = (error: unknown): boolean => [CORRUPT, NOTADB].includes(resultCode(error) ?? 0)

/** Whether the file was full: then, and only then, a failed commit cannot come back to life. */
export const isFull = (error: unknown): boolean => resultCode(error) === FULL

/** What went wrong in words that say what to do; anything that is not SQLite's passes unchanged. */
export function explain(error: unknown, path: string): unknown {
  const reported = resultCode(error)
  if (reported === undefined || error instanceof HoldfastError) return error
  // A full disk also shows as an I/O error, where SQLite cannot make its shared memory or its log.
  const code = reported === IOERR && isDiskFull(path) ? FULL : reported
  const [name, message, remedy] = sentence(code, path, (error as Error).message)
  return new HoldfastError(name, message, {
    remedy,
    cause: error,
    ...(code === BUSY || code === LOCKED ? { retry: { afterMs: 1_000 } } : {}),
  })
}

function isDiskFull(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(path))
    return bavail * bsize < FULL_BELOW_BYTES
  } catch {
    return false
  }
}

function sentence(code: number, path: string, message: string): [code: string, message: string, remedy: string] {
  switch (code) {
    case BUSY:
    case LOCKED:
      return [
        'store/busy',
        `another process kept ${path} locked for too long`,
        'try again; `holdfast doctor` shows who',
      ]
    case READONLY:
      return [
        'store/read-only',
        `${path} cannot be written`,
        'make the file and its folder writable for this user, or choose another with HOLDFAST_STORE',
      ]
    case FULL:
      return [
        'store/full',
        `the disk under ${path} is full`,
        'free some space and try again; nothing acknowledged was lost',
      ]
    case CANTOPEN:
      return [
        'store/cannot-open',
        `${path} cannot be opened (${message})`,
        'check that the folder exists, may be written, and that the process has file handles left (ulimit -n)',
      ]
    case CORRUPT:
    case NOTADB:
      return [
        'store/corrupt',
        `${path} is not a readable SQLite database (${message})`,
        'keep a copy of it and restore a backup; a file of another kind belongs elsewhere',
      ]
    case IOERR:
      return [
        'store/io',
        `the disk under ${path} failed (${message})`,
        'check the disk and the system log, then start again',
      ]
    case CONSTRAINT:
      return [
        'store/constraint',
        `a rule of the database was broken (${message})`,
        'please report this, it is a defect',
      ]
    default:
      return ['store/sqlite', message, '`holdfast doctor` checks the database']
  }
}
