import { accessSync, closeSync, constants, existsSync, openSync } from 'node:fs'
import { dirname } from 'node:path'

import type { Clock } from '../../base/clock.ts'
import { HoldfastError } from '../../base/errors.ts'
import { explainTrouble } from '../../base/files.ts'
import { LIMITS } from '../../base/limits.ts'
import type { TextCodec } from '../codec.ts'
import { SQLITE_CHECKSUMS } from '../migrations/checksums.ts'
import { appliedMigrations } from '../migrations/history.ts'
import type { StoreProbe } from '../store.ts'
import { Connection } from './connection.ts'

/** Before this SQLite a reset of the write-ahead log could lose commits when several connections raced. */
export const OLDEST_SQLITE = '3.51.3'

export function refuseOldSqlite(version: string | undefined): void {
  if (version !== undefined && compareVersions(version, OLDEST_SQLITE) >= 0) return
  throw new HoldfastError('store/old-sqlite', `this Node carries SQLite ${version ?? 'none'}, which can lose commits`, {
    remedy: `use a Node with SQLite ${OLDEST_SQLITE} or newer (Node 24.21, Node 26)`,
  })
}

/** Opens the file for durable, shared use: WAL, every commit synced, foreign keys on. */
export function openConnection(path: string, clock: Clock, probe?: StoreProbe, codec?: TextCodec): Connection {
  refuseOldSqlite(process.versions.sqlite)
  if (path !== ':memory:') refuseUnwritable(path)
  // For this user only, whatever folder it is in: conversations and results are nobody else's. The log beside it follows it.
  if (path !== ':memory:' && !existsSync(path)) makeFile(path)
  const connection = new Connection(path, clock, probe, codec)
  try {
    // Switching to WAL needs the lock for a moment; several processes may open a new file together.
    connection.script(`pragma busy_timeout = ${LIMITS.openWaitMs}`)
    refuseForeign(connection, path)
    connection.script(`pragma journal_mode = wal; pragma busy_timeout = ${LIMITS.blockingWaitMs}`)
    connection.script('pragma synchronous = full; pragma temp_store = memory')
    connection.script(`pragma wal_autocheckpoint = ${LIMITS.logPages}`)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

function makeFile(path: string): void {
  try {
    closeSync(openSync(path, 'a', 0o600))
  } catch (error) {
    throw explainTrouble(error, path)
  }
}

/** Before anything is written: somebody else's database must not even change its journal mode. */
function refuseForeign(connection: Connection, path: string): void {
  const tables = connection.ask('select count(*) from sqlite_schema')
  const ours = `select 1 from sqlite_schema where name = 'schema_migrations' and sql like '%checksum%'`
  if (tables === 0 || connection.ask(ours) === 1) return
  throw new HoldfastError('store/foreign', `${path} is the database of another program`, {
    remedy: 'choose another file with HOLDFAST_STORE; this one was left as it is',
  })
}

/** The usual case: nothing but the list of what was done to this database has to be read. */
export function isUpToDate(connection: Connection): boolean {
  if (connection.ask('select count(*) from sqlite_schema') === 0) return false
  const applied = connection.look(appliedMigrations, connection.instant())
  if (applied.length !== SQLITE_CHECKSUMS.length) return false
  return applied.every(({ checksum }, index) => checksum === SQLITE_CHECKSUMS[index])
}

function refuseUnwritable(path: string): void {
  const folder = dirname(path)
  if (!existsSync(folder)) {
    throw new HoldfastError('store/no-folder', `the folder ${folder} does not exist`, {
      remedy: 'create it, or choose another place with HOLDFAST_STORE or HOLDFAST_HOME',
    })
  }
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK)
  } catch (cause) {
    throw new HoldfastError('store/read-only', `${path} or its folder cannot be written`, {
      remedy: 'make both writable for this user, or choose another place with HOLDFAST_STORE or HOLDFAST_HOME',
      cause,
    })
  }
}

function compareVersions(left: string, right: string): number {
  const [a, b] = [left, right].map((version) => version.split('.').map(Number))
  for (const index of [0, 1, 2]) {
    const difference = (a?.[index] ?? 0) - (b?.[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
