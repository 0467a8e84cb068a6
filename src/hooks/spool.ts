import { readFile, readdir, rename, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { HoldfastError, describeError } from '../base/errors.ts'
import { ensureFolder, errorCode, writeFileAtomic } from '../base/files.ts'
import { LIMITS } from '../base/limits.ts'
import { veiled } from '../base/visible.ts'
import { judgeProcess, processIdentity, thisPlace } from '../processes/identity.ts'
import { secretsAt } from '../secrets/folders.ts'
import type { Key } from '../secrets/key.ts'
import { Unreadable, unreadable } from './event.ts'
import { hear } from './hear.ts'
import type { Listener } from './hear.ts'
import { readTold } from './told.ts'
import type { Told } from './told.ts'

/*
 * Events that could be told to nobody (bin/hook.cjs writes them, encrypted). A record is claimed by renaming it, so that of several who
 * look one takes it; what somebody claimed who then died is taken again, which harms nothing: each event has its number.
 */

const RECORD = /^\d{15}-\d+-\d+(?:-[0-9a-z]+)?\.json$/
const CLAIMED = /^(\d{15}-\d+-\d+(?:-[0-9a-z]+)?\.json)\.(\d+)-(\d+)$/

const spoolFolder = (home: string) => join(home, 'spool')
const corruptFolder = (home: string) => join(spoolFolder(home), 'corrupt')
const reasonFile = (home: string, name: string) => join(spoolFolder(home), 'reasons', `${name}.txt`)

export interface Spooler extends Listener {
  readonly home: string
  readonly warn: (text: string) => void
}

/** Tells what is in the spool, oldest first, at most so many. Returns how many were told. */
export async function replaySpool(spooler: Spooler, limit: number = LIMITS.spoolRecords): Promise<number> {
  const { home } = spooler
  let told = 0
  for (const name of (await waitingRecords(home)).slice(0, limit)) {
    const claimed = await claim(home, name)
    if (claimed === undefined) continue
    const done = await tellClaimed(spooler, claimed)
    if (done === 'store-trouble') break
    if (done === 'told') told += 1
  }
  return told
}

/** Records that nobody has claimed, or whose claimer is dead. */
async function waitingRecords(home: string): Promise<string[]> {
  const folder = spoolFolder(home)
  return (await namesIn(folder)).filter((name) => RECORD.test(name) || isAbandoned(folder, name)).toSorted()
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}

/** What this very process is telling. What it has claimed beside that, another one of its number did before, or it went wrong. */
const underWay = new Set<string>()

const ownStart = () => processIdentity()?.startTime ?? 0

function isAbandoned(folder: string, name: string): boolean {
  const claimed = CLAIMED.exec(name)
  if (claimed === null) return false
  const [pid, startTime] = [Number(claimed[2]), Number(claimed[3])]
  if (pid === process.pid && startTime === ownStart()) return !underWay.has(join(folder, name))
  return judgeProcess({ ...thisPlace(), pid, startTime }) === 'dead'
}

interface Claimed {
  readonly name: string
  readonly path: string
}

async function claim(home: string, name: string): Promise<Claimed | undefined> {
  const original = CLAIMED.exec(name)?.[1] ?? name
  const path = join(spoolFolder(home), `${original}.${process.pid}-${ownStart()}`)
  if (underWay.has(path)) return undefined
  underWay.add(path)
  try {
    await rename(join(spoolFolder(home), name), path)
    return { name: original, path }
  } catch (error) {
    underWay.delete(path)
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Whatever keeps one from being read, set aside or removed: it is looked at again, and the others go on. */
async function tellClaimed(spooler: Spooler, claimed: Claimed): Promise<Done> {
  try {
    return await tellRecord(spooler, claimed)
  } catch (error) {
    spooler.warn(`a record of the spool waits on: ${describeError(error)}`)
    return 'kept'
  } finally {
    underWay.delete(claimed.path)
  }
}

type Done = 'told' | 'set-aside' | 'kept' | 'store-trouble'

async function tellRecord(spooler: Spooler, { name, path }: Claimed): Promise<Done> {
  const told = readRecord(await readFile(path, 'utf8'), secretsAt(spoolFolder(spooler.home))?.key)
  if (told instanceof Unreadable) return setAside(spooler, { name, path }, told.why)
  try {
    await hear(spooler, { ...told, isReplayed: true })
  } catch (error) {
    if (!isStoreTrouble(error)) return setAside(spooler, { name, path }, describeError(error))
    await rename(path, join(spoolFolder(spooler.home), name))
    spooler.warn(`what is in the spool waits on: ${describeError(error)}`)
    return 'store-trouble'
  }
  await unlink(path)
  return 'told'
}

function readRecord(text: string, key: Key | undefined): Told | Unreadable {
  try {
    const stored = JSON.parse(text) as { readonly sealed?: unknown; readonly keyId?: unknown }
    if (typeof stored.sealed !== 'string') return readTold(stored)
    const opened = key?.idIfThere === stored.keyId ? key?.decrypt(stored.sealed)?.toString() : undefined
    if (opened === undefined) return unreadable(`it was sealed under another key (${String(stored.keyId)})`)
    return readTold(JSON.parse(opened))
  } catch {
    return unreadable('it is not JSON')
  }
}

/** One that will pass: the record is not to blame. Codes of SQLite, of the network and of PostgreSQL, without wrong data. */
function isStoreTrouble(error: unknown): boolean {
  if (error instanceof HoldfastError) return !/^(internal\/|store\/(constraint|postgres)$)/.test(error.code)
  return /^(ERR_SQLITE\w*|E[A-Z]+|(?!2[23])[0-9A-Z]{5})$/.test(errorCode(error) ?? '')
}

/** Kept for a person, with the reason beside it; the others go on. */
async function setAside({ home, warn }: Spooler, { name, path }: Claimed, why: string): Promise<'set-aside'> {
  await ensureFolder(corruptFolder(home))
  await ensureFolder(dirname(reasonFile(home, name)))
  await writeFileAtomic(reasonFile(home, name), `${veiled(why)}\n`)
  await rename(path, join(corruptFolder(home), name))
  warn(`a record of the spool was set aside in ${corruptFolder(home)}: ${why}`)
  return 'set-aside'
}

export interface CorruptRecord {
  readonly path: string
  readonly why: string
}

/** What was set aside: somebody has to look at it, and remove it. */
export async function corruptRecords(home: string): Promise<CorruptRecord[]> {
  const folder = corruptFolder(home)
  const names = (await namesIn(folder)).filter((name) => RECORD.test(name)).toSorted()
  return Promise.all(
    names.map(async (name) => ({
      path: join(folder, name),
      why: (await readFile(reasonFile(home, name), 'utf8').catch(() => 'nobody noted why')).trim(),
    })),
  )
}

/** How many events are still to be told. */
export const spooledRecords = async (home: string): Promise<number> =>
  (await namesIn(spoolFolder(home))).filter((name) => RECORD.test(name) || CLAIMED.test(name)).length
