import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { createFileOnce, ensureFolder, errorCode, syncFolder, writeFileAtomic } from '../../base/files.ts'
import { keyPlace } from '../../secrets/key.ts'
import { mayBeUnresolved } from '../../secrets/nonce.ts'
import { Secrets } from '../../secrets/secrets.ts'
import { CLIENT_NAMES } from './client.ts'
import type { ClientName, Scope } from './client.ts'
import { digestOf } from './settings-file.ts'

/**
 * What we did to one settings file, and what it was before: from it `remove` restores the file to the byte, and `status`
 * knows in which projects to look. Without it our entries are found and removed all the same.
 */
export interface InstallRecord {
  readonly client: ClientName
  readonly scope: Scope
  readonly path: string
  /** The name of the backup; null: there was no file. */
  readonly former: string | null
  /** What we wrote, as a digest. */
  readonly wrote: string
}

/** A file beside the database, in a folder that only its owner can read: settings may hold keys. */
const folderIn = (home: string) => join(home, 'hooks', 'installed')
const recordIn = (home: string, path: string) => join(folderIn(home), `${digestOf(path).slice(0, 16)}.json`)

/** By their shapes alone: who removes the hooks may know other values than who installed them. */
const sealer = (home: string) => new Secrets(keyPlace(home, process.env['HOLDFAST_SECRET_KEY_FILE'])).bytes

/** Keeps a copy of what a file was before us, keys in it sealed. Called by its content, so that it is never overwritten by another. */
export async function keepFormer(home: string, client: ClientName, former: Uint8Array): Promise<string> {
  const folder = folderIn(home)
  await ensureFolder(folder)
  const name = `${client}-before-${digestOf(former).slice(0, 16)}.json`
  await createFileOnce(
    join(folder, name),
    Buffer.from(sealer(home).seal(Buffer.from(former).toString('latin1')), 'latin1'),
  )
  return name
}

export const backupPath = (home: string, { former }: Pick<InstallRecord, 'former'>): string | undefined =>
  former === null ? undefined : join(folderIn(home), former)

export async function writeRecord(home: string, record: InstallRecord): Promise<void> {
  await ensureFolder(folderIn(home))
  await writeFileAtomic(recordIn(home, record.path), `${JSON.stringify(record, null, 2)}\n`)
}

export async function readRecord(home: string, path: string): Promise<InstallRecord | undefined> {
  return parsed(await contentOf(recordIn(home, path)))
}

export async function forget(home: string, path: string): Promise<void> {
  await rm(recordIn(home, path), { force: true })
  await syncFolder(folderIn(home)).catch(() => {})
}

export async function formerBytes(home: string, record: InstallRecord): Promise<Uint8Array | undefined> {
  const path = backupPath(home, record)
  const sealed = path === undefined ? undefined : await contentOf(path)
  if (sealed === undefined) return undefined
  const former = sealer(home).open(Buffer.from(sealed).toString('latin1'))
  // Without its key it is as good as not there.
  return mayBeUnresolved(former) ? undefined : Buffer.from(former, 'latin1')
}

export async function allRecords(home: string): Promise<InstallRecord[]> {
  const names = await readdir(folderIn(home)).catch(() => [])
  const records = await Promise.all(
    names
      .filter((name) => /^[0-9a-f]{16}\.json$/.test(name))
      .map(async (name) => parsed(await contentOf(join(folderIn(home), name)))),
  )
  return records.filter((record) => record !== undefined)
}

async function contentOf(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** A record that cannot be read is none: what it is for can be done without it. */
function parsed(bytes: Buffer | undefined): InstallRecord | undefined {
  if (bytes === undefined) return undefined
  try {
    const record = JSON.parse(bytes.toString()) as InstallRecord
    const whole =
      CLIENT_NAMES.includes(record.client) &&
      typeof record.path === 'string' &&
      typeof record.wrote === 'string' &&
      (record.former === null || /^[\w-]+\.json$/.test(record.former)) &&
      (record.scope.kind === 'user' || typeof record.scope.folder === 'string')
    return whole ? record : undefined
  } catch {
    return undefined
  }
}
