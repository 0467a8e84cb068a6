import { closeSync, existsSync, linkSync, openSync, readSync, renameSync } from 'node:fs'

import { systemClock } from '../../base/clock.ts'
import type { Held } from '../replace.ts'
import type { Single } from '../transition.ts'
import { Connection } from './connection.ts'
import { isBusy, isDamaged } from './errors.ts'

/** How long a command that is just ending may take. */
const PATIENCE_MS = 2_000

/**
 * Nobody else has the file open while this is held, and nobody can open it: everybody who uses a database with a
 * write-ahead log has a lock on it from opening to closing, and leaving that mode needs a lock that no other allows. It also
 * puts the log into the file, so the file is all there is. A damaged one cannot be locked; nobody can use it either.
 */
export function holdAlone(path: string): Held | 'in-use' {
  let connection: Connection | undefined
  // Not even opened then: SQLite would throw the log beside it away.
  let isWhole = hasHeader(path)
  try {
    if (isWhole) connection = lockedAlone(path)
  } catch (error) {
    if (isBusy(error)) return 'in-use'
    if (!isDamaged(error)) throw error
    isWhole = false
  }
  return {
    isWhole,
    read: (look) => (connection === undefined ? undefined : readFrom(connection, look)),
    replaceBy: (replacement, keptAs) => replace(path, replacement, keptAs),
    close: () => connection?.close(),
  }
}

function lockedAlone(path: string): Connection {
  const connection = new Connection(path, systemClock)
  try {
    connection.script(`pragma busy_timeout = ${PATIENCE_MS}; pragma locking_mode = exclusive`)
    connection.script('pragma journal_mode = delete; begin exclusive; commit')
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** How every database of SQLite begins. */
const HEADER = 'SQLite format 3\0'

function hasHeader(path: string): boolean {
  const bytes = Buffer.alloc(HEADER.length)
  const file = openSync(path, 'r')
  try {
    readSync(file, bytes, 0, bytes.length, 0)
  } finally {
    closeSync(file)
  }
  return bytes.toString('latin1') === HEADER
}

/** An older Holdfast may not have had what is asked for. */
function readFrom<T>(connection: Connection, look: Single<[], T>): T | undefined {
  try {
    return connection.look(look.single(), connection.instant())
  } catch {
    return undefined
  }
}

/** The log of a damaged one goes with it: beside another file it would be applied to that. */
function replace(path: string, replacement: string, keptAs: string): void {
  // First its second name, then the change of the first: at no instant is there none, which would be a new, empty database.
  linkSync(path, keptAs)
  for (const part of ['-wal', '-shm'])
    if (existsSync(`${path}${part}`)) renameSync(`${path}${part}`, `${keptAs}${part}`)
  renameSync(replacement, path)
}
