import { copyFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { expect, test } from 'vitest'

import { systemClock } from '../../base/clock.ts'
import { LIMITS } from '../../base/limits.ts'
import { temporaryFolder } from '../../../test/support/engines.ts'
import { growLog } from './log.ts'
import { openConnection } from './open.ts'
import { openSqliteStore } from './store.ts'

const lengthOfLog = (path: string) => statSync(`${path}-wal`).size
const WHOLE = LIMITS.logPages * 4096

/** A store with a table of its own, by another connection: what a store keeps is not what this is about. */
async function opened() {
  const path = join(temporaryFolder(), 'holdfast.db')
  const store = await openSqliteStore({ path })
  const other = new DatabaseSync(path, { timeout: 1000 })
  other.exec('pragma synchronous = full; create table kept (n integer) strict')
  const commit = (n: number) => other.prepare('insert into kept (n) values (?)').run(n)
  return { path, store, other, commit }
}

/** What a process finds that comes after a power cut: the two files as they are, and nothing of what was in memory. */
function recovered(path: string) {
  const copy = join(temporaryFolder(), 'holdfast.db')
  for (const part of ['', '-wal']) copyFileSync(`${path}${part}`, `${copy}${part}`)
  using database = new DatabaseSync(copy)
  const names = database.prepare(`select name from sqlite_schema where name = 'filling'`).all()
  const kept = database.prepare('select n from kept').all()
  return { kept: kept.map(({ n }) => n), names, damage: database.prepare('pragma integrity_check').get() }
}

const sound = (...kept: number[]) => ({ kept, names: [], damage: { integrity_check: 'ok' } })

test('the log is as long as it gets before it is needed, and commits make it no longer', async () => {
  const { path, store, other, commit } = await opened()
  const before = lengthOfLog(path)
  await store.warmUp()
  const length = lengthOfLog(path)
  expect(length).toBeGreaterThanOrEqual(WHOLE)
  expect(before).toBeLessThan(WHOLE / 2)
  for (let n = 0; n < 20; n += 1) commit(n)
  expect(lengthOfLog(path)).toBe(length)
  // Once is enough, for all who have the file open.
  await store.warmUp()
  expect(lengthOfLog(path)).toBe(length)
  other.close()
  await store.close()
})

test('what was put there is passed over by a recovery, with the commits before it and after it whole [durable/acknowledged]', async () => {
  const { path, store, other, commit } = await opened()
  commit(1)
  await store.warmUp()
  expect(recovered(path)).toEqual(sound(1))
  commit(2)
  expect(recovered(path)).toEqual(sound(1, 2))
  // Far into what was put there.
  other.exec('create table long (what text) strict')
  const grow = other.prepare('insert into long (what) values (?)')
  for (let n = 0; n < 50; n += 1) grow.run('x'.repeat(40_000))
  commit(3)
  expect(recovered(path)).toEqual(sound(1, 2, 3))
  other.close()
  await store.close()
})

test('where another process is writing, or a change is under way, it is done without', async () => {
  const { path, store, other, commit } = await opened()
  const connection = openConnection(path, systemClock)
  other.exec('begin immediate')
  commit(1)
  expect(growLog(connection, path)).toBe(false)
  other.exec('commit')
  connection.begin()
  connection.script('insert into kept (n) values (2)')
  expect(growLog(connection, path)).toBe(false)
  connection.commit()
  expect(recovered(path)).toEqual(sound(1, 2))
  expect(lengthOfLog(path)).toBeLessThan(WHOLE / 2)
  connection.close()
  other.close()
  await store.close()
})
