import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { temporaryFolder } from '../support/engines.ts'
import { counters, put } from './counters.ts'

/** A file system of two megabytes that is really full when it is. */
function smallDisk(): { readonly folder: string; readonly reason?: string } {
  const folder = temporaryFolder()
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', folder], { encoding: 'utf8' })
  if (mounted.status !== 0) return { folder, reason: mounted.stderr?.trim() || 'mount does not work' }
  onTestFinished(() => void execFileSync('umount', ['-l', folder]))
  return { folder }
}

/** Writes until nothing more fits; removing it is making room. */
function fill(folder: string): () => void {
  const path = join(folder, 'filler')
  const file = openSync(path, 'w')
  try {
    for (const bytes of [65_536, 4_096, 1]) while (accepts(file, bytes));
  } finally {
    closeSync(file)
  }
  return () => rmSync(path)
}

function accepts(file: number, bytes: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(bytes)) === bytes
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false
    throw error
  }
}

const BATCHES = 10

/** Batches of long names until one is refused: what was acknowledged, and the refusals. */
async function writeUntilFull(store: Store, lanes: number) {
  const acknowledged: string[] = []
  for (let round = 0; round < BATCHES; round++) {
    const names = Array.from({ length: lanes }, (_, lane) => `${round}-${lane}-${'x'.repeat(2_000)}`)
    const results = await Promise.allSettled(names.map((name) => store.apply(put, name)))
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    for (const result of results) if (result.status === 'fulfilled') acknowledged.push(result.value)
    if (refused.length > 0) return { acknowledged, refused }
  }
  throw new Error('the disk never was full')
}

const namesIn = async (store: Store) => (await store.read(counters)).map(({ scope }) => scope).toSorted()

test.for([1, 64])(
  'a full disk, %i at a time: store/full, nothing acknowledged is lost, and with room the store goes on [durable/acknowledged]',
  async (lanes, { skip }) => {
    const disk = smallDisk()
    if (disk.reason !== undefined) {
      console.warn(`a full disk is not tested here: ${disk.reason}`)
      skip(disk.reason)
    }
    const path = join(disk.folder, 'holdfast.db')
    const store = await openSqliteStore({ path })
    await store.apply(put, 'early')
    const makeRoom = fill(disk.folder)
    const { acknowledged, refused } = await writeUntilFull(store, lanes)
    for (const error of refused) {
      expect(error).toMatchObject({ code: 'store/full', remedy: expect.stringContaining('free some space') })
    }
    const expected = ['early', ...acknowledged].toSorted()
    expect(await namesIn(store)).toEqual(expected)
    makeRoom()
    await store.apply(put, 'late')
    expect(await namesIn(store)).toEqual([...expected, 'late'].toSorted())
    await store.close()
    const reopened = await openSqliteStore({ path })
    expect(await namesIn(reopened)).toEqual([...expected, 'late'].toSorted())
    await reopened.close()
  },
)
