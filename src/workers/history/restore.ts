import { existsSync } from 'node:fs'
import { chmod, copyFile, open, rename, unlink } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

import type { Clock } from '../../base/clock.ts'
import { HoldfastError } from '../../base/errors.ts'
import { ensureFolder, syncFolder } from '../../base/files.ts'
import type { Randomness } from '../../base/ids.ts'
import { lastEventSeq } from '../../events/event.ts'
import { findStoreIdentity } from '../../store/identity.ts'
import { openStore } from '../../store/open.ts'
import { holdAlone } from '../../store/replace.ts'
import type { Held } from '../../store/replace.ts'
import { homePaths } from '../home.ts'
import { rememberRestored, seenOf } from './restored.ts'

export interface Restoring {
  readonly home: string
  /** What HOLDFAST_STORE names, if anything. */
  readonly store: string | undefined
  readonly file: string
  /** What happened since the backup may be forgotten, or another database replaced. */
  readonly accept: boolean
  readonly clock: Clock
  readonly random: Randomness
}

export interface Restored {
  readonly database: string
  readonly from: string
  /** The last event that it knows. */
  readonly seq: number
  /** What was there before, under another name. */
  readonly kept: string | undefined
  /** How many events happened since the backup, as far as anybody here knows. */
  readonly forgotten: number
}

interface Backup {
  /** A checked copy beside the database. */
  readonly copy: string
  readonly id: string | undefined
  readonly seq: number
}

/** Puts a backup in the place of the database: checked first, whole or not at all, and what was there is kept. */
export async function restoreBackup(restoring: Restoring): Promise<Restored> {
  const { home, file } = restoring
  const database = databaseFile(restoring)
  refuseMissing(file)
  await ensureFolder(dirname(database))
  const backup = await checkedCopy(restoring, database)
  let held: Held | undefined
  try {
    held = existsSync(database) ? await hold(database) : undefined
    const forgotten = refuseForgetting(restoring, backup, held)
    const kept = held === undefined ? undefined : keptName(database, restoring)
    if (held === undefined || kept === undefined) await rename(backup.copy, database)
    else held.replaceBy(backup.copy, kept)
    await syncFolder(dirname(database))
    await rememberRestored(home, backup)
    return { database, from: file, seq: backup.seq, kept, forgotten }
  } finally {
    held?.close()
    await unlink(backup.copy).catch(() => {})
  }
}

function databaseFile({ home, store }: Restoring): string {
  if (store === undefined) return homePaths(home).database
  const path = /^sqlite:(.+)$/.exec(store)?.[1]
  if (path !== undefined && path !== ':memory:') return resolve(path)
  throw new HoldfastError('usage/restore', 'a PostgreSQL store is restored by its own tools', {
    remedy:
      'stop every daemon, `pg_restore --clean --if-exists --single-transaction --dbname=URL FILE`, and start once with --accept-restore (docs/backups.md)',
  })
}

function refuseMissing(file: string): void {
  if (!existsSync(file)) {
    throw new HoldfastError('not-found/backup', `there is no file ${file}`, {
      remedy: 'name what `holdfast backup FILE` has written',
    })
  }
  if (!existsSync(`${file}-wal`)) return
  throw new HoldfastError(
    'restore/not-a-backup',
    `${file} is a database that is in use, or was when its process died`,
    {
      remedy: `make a backup of it first: holdfast --store sqlite:${file} backup FILE`,
    },
  )
}

/** The backup itself is not opened: it stays as it is, byte for byte, and an older one is upgraded as a copy. */
async function checkedCopy({ file, clock, random }: Restoring, database: string): Promise<Backup> {
  const copy = join(dirname(database), `.${basename(database)}.${random.hex(8)}.restored`)
  try {
    await copyFile(file, copy)
    await chmod(copy, 0o600)
    const store = await openStore(`sqlite:${copy}`, { clock, random })
    try {
      const damage = await store.check()
      if (damage.length > 0)
        throw new HoldfastError('store/damaged', damage.slice(0, 3).join('; '), { remedy: 'use another backup' })
      const id = (await store.read(findStoreIdentity))?.id
      const { seq } = await store.read(lastEventSeq)
      return { copy, id, seq }
    } finally {
      await store.close()
      await synced(copy)
    }
  } catch (error) {
    for (const part of ['', '-wal', '-shm', '-wake']) await unlink(`${copy}${part}`).catch(() => {})
    throw notRestored(file, copy, error)
  }
}

function notRestored(file: string, copy: string, error: unknown): HoldfastError {
  const why = (error instanceof Error ? error.message : String(error)).replaceAll(copy, 'it')
  const isNewer = error instanceof HoldfastError && error.code === 'store/newer-schema'
  return new HoldfastError('restore/not-a-backup', `${file} cannot be restored: ${why}`, {
    remedy: isNewer ? 'use the Holdfast that wrote it' : 'take another backup; the database was left as it is',
    cause: error,
  })
}

async function synced(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

async function hold(database: string): Promise<Held> {
  const held = await holdAlone(database)
  if (held !== 'in-use') return held
  throw new HoldfastError('restore/in-use', `somebody is using ${database}, and a database in use is not replaced`, {
    remedy: 'stop the daemon (`holdfast status` names its process), and whatever else uses it; then try again',
  })
}

/** How many events would be forgotten; refused unless somebody said that they may be. */
function refuseForgetting({ home, accept, file }: Restoring, { id, seq }: Backup, held: Held | undefined): number {
  const current = held?.read(findStoreIdentity)?.id
  const newest = Math.max(
    current === id ? (held?.read(lastEventSeq)?.seq ?? 0) : 0,
    id === undefined ? 0 : (seenOf(home, id)?.seq ?? 0),
  )
  const forgotten = Math.max(0, newest - seq)
  if (accept) return forgotten
  const remedy = 'restore a newer one; or say --accept-restore, and what is there now is kept under another name'
  if (forgotten > 0) {
    const message = `${file} ends at event ${seq}, and ${newest} have happened: ${forgotten} would be forgotten, and what they did could be done again`
    throw new HoldfastError('restore/would-forget', message, { remedy })
  }
  if (held?.isWhole === true && current !== undefined && current !== id) {
    throw new HoldfastError(
      'restore/would-forget',
      `${file} is a backup of another database than the one that is here`,
      {
        remedy: 'check the file and HOLDFAST_HOME; or say --accept-restore, and what is there now is kept',
      },
    )
  }
  return 0
}

const keptName = (database: string, { clock, random }: Restoring) =>
  `${database}.before-${new Date(clock.now()).toISOString().replaceAll(/[-:]|\.\d+/g, '')}-${random.hex(2)}`
