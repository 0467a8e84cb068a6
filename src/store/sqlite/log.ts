import { open, stat } from 'node:fs/promises'

import { LIMITS } from '../../base/limits.ts'
import type { Connection } from './connection.ts'
import { isBusy } from './errors.ts'

const PAGE_BYTES = 4096
const LOG_BYTES = LIMITS.logPages * PAGE_BYTES
/** A change keeps so much of itself in memory, by default, before the rest of it goes to the log. */
const CACHE_BYTES = 2_048_000

/**
 * Makes the log as long as it gets. As long as it grows, each commit makes the file longer, and what tells a file system where a file ends is
 * synced with it: a commit of one page takes half as long again (0.23 ms instead of 0.15, in turns). What is put there is taken back, so a
 * recovery finds a change without its commit and passes over it, as after a crash; the room stays. False: it is long enough, or others
 * are writing, and it is done without.
 */
export async function growLog(connection: Connection, path: string): Promise<boolean> {
  const log = `${path}-wal`
  if (path === ':memory:' || connection.isProbed || (await lengthOf(log)) >= LOG_BYTES) return false
  // Somebody else's would be taken back with it.
  if (connection.inTransaction) return false
  try {
    connection.exec('begin immediate')
    connection.script(`create table filling (what blob);
      insert into filling values (zeroblob(${LOG_BYTES + CACHE_BYTES}))`)
  } catch (error) {
    if (isBusy(error)) return false
    throw error
  } finally {
    connection.rollback()
  }
  await synced(log)
  return true
}

const lengthOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  )

/** By another thread; a commit that comes meanwhile waits for the same bytes. */
async function synced(file: string): Promise<void> {
  const handle = await open(file, 'r+')
  try {
    await handle.datasync()
  } finally {
    await handle.close()
  }
}
