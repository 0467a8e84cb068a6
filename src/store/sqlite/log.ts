import { statSync } from 'node:fs'

import { LIMITS } from '../../base/limits.ts'
import type { Connection } from './connection.ts'
import { isBusy } from './errors.ts'

const LOG_BYTES = LIMITS.logPages * 4096
/** A change keeps so much of itself in memory, by default, before the rest of it goes to the log. */
const CACHE_BYTES = 2_048_000

/**
 * Makes the log as long as it gets. As long as it grows, each commit makes the file longer, and what tells a file system where a file ends is
 * synced with it: a commit of one page takes half as long again (0.23 ms instead of 0.15, in turns). What is put there is taken back, so a
 * recovery finds a change without its commit and passes over it, as after a crash; the room stays. False: it is long enough, or others
 * are writing, and it is done without.
 */
export function growLog(connection: Connection, path: string): boolean {
  if (path === ':memory:' || connection.isProbed || lengthOf(`${path}-wal`) >= LOG_BYTES) return false
  // Somebody else's would be taken back with it.
  if (connection.inTransaction) return false
  try {
    connection.exec('begin immediate')
    connection.script(`create table filling (what blob);
      insert into filling values (zeroblob(${LOG_BYTES + CACHE_BYTES}))`)
    return true
  } catch (error) {
    if (isBusy(error)) return false
    throw error
  } finally {
    connection.rollback()
  }
}

const lengthOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0
