import { randomBytes } from 'node:crypto'
import { copyFileSync, readFileSync, readdirSync, renameSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { expect, test } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { createRuntime } from '../../src/runtime.ts'
import { MIGRATIONS } from '../../src/store/migrations/index.ts'
import { migrate } from '../../src/store/sqlite/migrate.ts'
import { openConnection } from '../../src/store/sqlite/open.ts'
import type { Store } from '../../src/store/store.ts'
import { findThread, openThread } from '../../src/threads/thread.ts'
import { temporaryFolder } from '../support/engines.ts'
import { Installation } from '../support/holdfast.ts'
import { SHAPED } from '../support/secrets.ts'

interface Restored {
  readonly kept?: string
  readonly forgotten: number
  readonly seq: number
}

/** As any command opens it. */
async function inStore<T>(home: string, work: (store: Store) => Promise<T>): Promise<T> {
  const runtime = await createRuntime({ home })
  try {
    return await work(runtime.store)
  } finally {
    await runtime.close()
  }
}

const NAMES = ['early', 'late', 'elsewhere', 'of-old', 'afterwards'] as ThreadId[]

const threadsOf = ({ home }: Pick<Installation, 'home'>) =>
  inStore(home, async (store) => {
    const found = await Promise.all(NAMES.map((name) => store.read(findThread, name)))
    return found.flatMap((thread) => (thread === undefined ? [] : [thread.id]))
  })

const opened = ({ home }: Installation, thread: string) =>
  inStore(home, (store) => store.apply(openThread, thread as ThreadId, 'a', null))

/** An installation with one thread that its backup has, and one that came later. */
async function withBackup() {
  const place = new Installation()
  const backup = join(dirname(place.home), 'backup.db')
  await opened(place, 'early')
  expect((await place.run(['backup', backup])).code).toBe(0)
  await opened(place, 'late')
  return { place, backup, database: join(place.home, 'holdfast.db') }
}

test('a backup names the key that belongs beside it, where there is one', async () => {
  const place = new Installation()
  const folder = dirname(place.home)
  const without = await place.run(['backup', join(folder, 'without.db')])
  expect(without.stderr).toContain('nothing in it is sealed: no key was needed here so far')
  const key = join(place.home, 'secrets.key')
  writeFileSync(key, randomBytes(32), { mode: 0o600 })
  const beside = await place.run(['backup', join(folder, 'beside.db')])
  expect([beside.code, beside.stderr]).toEqual([0, expect.stringContaining(`keep a copy of ${key} elsewhere`)])
})

test('a backup with sealed values never says that no key is needed, wherever the key is', async () => {
  const place = new Installation()
  const folder = dirname(place.home)
  await place.run(['run', '--', 'echo', SHAPED['github']!.text])
  const key = join(place.home, 'secrets.key')
  expect((await place.run(['backup', join(folder, 'here.db')])).stderr).toContain(`keep a copy of ${key} elsewhere`)
  // As for several machines; the shell of whoever makes the backup need not have the variable of the daemon.
  const moved = join(folder, 'moved.key')
  renameSync(key, moved)
  const away = await place.run(['backup', join(folder, 'away.db')])
  expect(away).toMatchObject({ code: 0, stderr: expect.stringContaining('under a key that is not here') as string })
  expect(away.stderr).not.toContain('no key was needed')
  const named = await place.run(['backup', join(folder, 'named.db')], { HOLDFAST_SECRET_KEY_FILE: moved })
  expect(named.stderr).toContain(`keep a copy of ${moved} elsewhere`)
})

const leftovers = (place: Installation) => readdirSync(place.home).filter((name) => name.endsWith('.restored'))

test('what happened since a backup is forgotten only if somebody says so, and even then it is kept [durable/acknowledged]', async () => {
  const { place, backup } = await withBackup()
  const bytes = readFileSync(backup)
  const refused = await place.run(['restore', backup])
  expect(refused).toMatchObject({ code: 4, stdout: '' })
  expect(refused.stderr).toMatch(/would be forgotten.*--accept-restore/)
  expect(await threadsOf(place)).toEqual(['early', 'late'])

  const restored = await place.json<Restored>(['restore', backup, '--accept-restore'])
  expect(restored.forgotten).toBeGreaterThan(0)
  // No --accept-restore any more: it was said once.
  expect(await threadsOf(place)).toEqual(['early'])
  await opened(place, 'afterwards')
  expect(readFileSync(backup).equals(bytes)).toBe(true)

  const before = temporaryFolder()
  copyFileSync(restored.kept!, join(before, 'holdfast.db'))
  expect(await threadsOf({ home: before })).toEqual(['early', 'late'])
  expect(leftovers(place)).toEqual([])
})

test('a database that somebody uses is not replaced, not even with --accept-restore', async () => {
  const { place, backup } = await withBackup()
  const daemon = await place.up()
  const refused = await place.run(['restore', backup, '--accept-restore'])
  expect(refused).toMatchObject({ code: 4, stdout: '' })
  expect(refused.stderr).toContain('restore/in-use')
  expect(await threadsOf(place)).toEqual(['early', 'late'])
  daemon.kill('SIGTERM')
  await daemon.ended
  expect((await place.run(['restore', backup, '--accept-restore'])).code).toBe(0)
  expect(await threadsOf(place)).toEqual(['early'])
})

test('a damaged database is put aside with its log, and the backup takes its place', async () => {
  const { place, backup, database } = await withBackup()
  writeFileSync(database, 'no database any more, whatever happened to it'.repeat(100))
  writeFileSync(`${database}-wal`, 'a log of it')
  expect((await place.run(['restore', backup])).stderr).toContain('restore/would-forget')
  const { kept } = await place.json<Restored>(['restore', backup, '--accept-restore'])
  expect(await threadsOf(place)).toEqual(['early'])
  expect(readFileSync(kept!, 'utf8')).toMatch(/^no database any more/)
  expect(readFileSync(`${kept}-wal`, 'utf8')).toBe('a log of it')
})

test('on a new machine a backup is restored without a question', async () => {
  const { place, backup } = await withBackup()
  const other = new Installation()
  const { kept, forgotten } = await other.json<Restored>(['restore', backup])
  expect({ kept, forgotten }).toEqual({ kept: undefined, forgotten: 0 })
  expect(await threadsOf(other)).toEqual(['early'])
  expect(await threadsOf(place)).toEqual(['early', 'late'])
})

test('a backup of another database, a damaged one, a foreign file and none at all are refused', async () => {
  const { place, backup } = await withBackup()
  const folder = dirname(backup)
  const other = new Installation()
  await opened(other, 'elsewhere')
  const theirs = join(folder, 'theirs.db')
  await other.run(['backup', theirs])
  const torn = join(folder, 'torn.db')
  writeFileSync(torn, readFileSync(backup))
  truncateSync(torn, readFileSync(backup).length / 2)
  const foreign = join(folder, 'foreign.db')
  writeFileSync(foreign, 'Dear diary,')
  const tries = await Promise.all(
    [theirs, torn, foreign, join(folder, 'none.db')].map((file) => place.run(['restore', file])),
  )
  expect(tries.map(({ code }) => code)).toEqual([4, 1, 1, 3])
  expect(tries[0]!.stderr).toContain('another database')
  expect(tries[1]!.stderr).toContain('torn.db cannot be restored')
  expect(await threadsOf(place)).toEqual(['early', 'late'])
  expect(leftovers(place)).toEqual([])
})

test('a backup of an older Holdfast is upgraded as it is restored, and the file stays as it was', async () => {
  const place = new Installation()
  const backup = join(dirname(place.home), 'old.db')
  const old = openConnection(backup, systemClock)
  migrate(old, MIGRATIONS.slice(0, 1))
  old.script(`insert into threads (id, generation, agent, state, created_at) values ('of-old', 1, 'a', 'open', 1)`)
  old.script('pragma journal_mode = delete')
  old.close()
  const bytes = readFileSync(backup)
  expect((await place.run(['restore', backup])).code).toBe(0)
  expect(await threadsOf(place)).toEqual(['of-old'])
  expect(readFileSync(backup).equals(bytes)).toBe(true)
})
