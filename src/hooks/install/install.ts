import { factsOf, settingsFile } from './client.ts'
import type { ClientName, Scope, Surroundings } from './client.ts'
import { choicesIn, wantedHandlers } from './entries.ts'
import type { Choices, Wanted } from './entries.ts'
import { unifiedDiff } from './diff.ts'
import { valueOf } from '../../base/json-tree.ts'
import { findOurs, readTree, withEntries, withoutEntries } from './merge.ts'
import { backupPath, forget, formerBytes, keepFormer, readRecord, writeRecord } from './record.ts'
import type { InstallRecord } from './record.ts'
import { digestOf, readSettingsFile, writeSettingsFile } from './settings-file.ts'
import type { SettingsFile } from './settings-file.ts'

/** Which settings, and whose backups. */
export interface Place {
  readonly client: ClientName
  readonly scope: Scope
  readonly home: string
  readonly surroundings: Surroundings
}

/** A change that was worked out and not made yet. */
export interface Change {
  readonly place: Place
  readonly file: SettingsFile
  readonly verb: 'install' | 'remove'
  /** `none`: there is nothing to do. */
  readonly kind: 'none' | 'first' | 'update' | 'remove'
  /** What the file is to say; undefined: it is to go. */
  readonly after: string | Uint8Array | undefined
  /** What it would say without us; undefined: nothing, there would be no file. */
  readonly without: Uint8Array | undefined
  readonly diff: string
}

export async function planInstall(place: Place, wanted: Wanted): Promise<Change> {
  const { file, settings, record, ours } = await lookAt(place)
  const after = withEntries(settings, wantedHandlers(wanted))
  const unchanged = after === file.text
  return {
    place,
    file,
    verb: 'install',
    kind: unchanged ? 'none' : ours ? 'update' : 'first',
    after,
    without: await withoutUs(place, file, record),
    diff: unchanged ? '' : unifiedDiff(file.target, file.bytes === undefined ? undefined : file.text, after),
  }
}

/** What was chosen when they were installed. */
export async function installedChoices(place: Place): Promise<Choices> {
  const { settings } = await lookAt(place)
  return choicesIn(findOurs(readTree(settings)).map(({ handler }) => handler))
}

export async function planRemove(place: Place): Promise<Change> {
  const { file, record, ours } = await lookAt(place)
  const without = await withoutUs(place, file, record)
  const after = without === undefined ? undefined : new TextDecoder('utf-8', { ignoreBOM: true }).decode(without)
  return {
    place,
    file,
    verb: 'remove',
    kind: ours ? 'remove' : 'none',
    after: without,
    without,
    diff: ours ? unifiedDiff(file.target, file.text, after) : '',
  }
}

async function lookAt(place: Place) {
  const file = await readSettingsFile(settingsFile(place.client, place.scope, place.surroundings))
  const settings = { path: file.path, text: file.text, comments: factsOf(place.client).comments }
  const record = await readRecord(place.home, file.target)
  return { file, settings, record, ours: findOurs(readTree(settings)).length > 0 }
}

/** To the byte, as long as nobody but us has written the file; else what the others wrote, less our entries. */
async function withoutUs(
  { client, home }: Place,
  file: SettingsFile,
  record: InstallRecord | undefined,
): Promise<Uint8Array | undefined> {
  if (file.bytes === undefined) return undefined
  const former = record === undefined ? undefined : await formerBytes(home, record)
  const backedUp = record?.former === null || former !== undefined
  if (record !== undefined && backedUp && digestOf(file.bytes) === record.wrote) return former
  const settings = { path: file.path, text: file.text, comments: factsOf(client).comments }
  const formerly = former === undefined ? undefined : { ...settings, text: Buffer.from(former).toString() }
  const text = withoutEntries(settings, formerly === undefined ? undefined : valueOf(readTree(formerly)))
  const isNothing = readTree({ ...settings, text }).children.length === 0
  return isNothing && record?.former === null ? undefined : Buffer.from(text)
}

/**
 * The record comes first: a crash after it leaves a record of a file that does not say what we meant to write, which
 * counts for nothing. The other way round the way back would be lost.
 */
export async function carryOut(change: Change): Promise<{ readonly backup: string | undefined }> {
  const { place, file, after, without, kind } = change
  const { home, client, scope } = place
  if (kind === 'none') return { backup: undefined }
  if (kind === 'remove' || after === undefined) {
    await writeSettingsFile(file, after)
    await forget(home, file.target)
    return { backup: undefined }
  }
  const former = without === undefined ? null : await keepFormer(home, client, without)
  const record: InstallRecord = { client, scope, path: file.target, former, wrote: digestOf(after) }
  await writeRecord(home, record)
  await writeSettingsFile(file, after)
  return { backup: backupPath(home, record) }
}
