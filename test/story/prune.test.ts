import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { expect, test } from 'vitest'

import { row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { all as every, single } from '../../src/store/transition.ts'
import { archived } from '../support/forgetting.ts'
import { Installation, until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { someCalls } from '../support/some-calls.ts'

const runIds = single(() => every(row({ id: text() }), sql`select id from runs order by seq`))

/** Whole ones: what is being written has another name. */
const filesIn = (folder: string) =>
  existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.gz')) : []

const SECRET = 'kept-to-ourselves-7f3a9c'

test('`holdfast prune` says first, archives with secrets hidden, removes, and leaves what waits', async () => {
  const place = new Installation()
  const folder = join(dirname(place.home), 'archive')
  writeFileSync(place.configuration, JSON.stringify({ secrets: { own: { env: 'OWN_SECRET' } } }))
  const own = { OWN_SECRET: SECRET }
  for (const word of ['one', SECRET]) expect((await place.run(['run', '--', 'echo', word], own)).code).toBe(0)
  const dry = await place.run(['--json', 'prune', '--older-than', '1ms', '--dry-run'], own)
  expect(JSON.parse(dry.stdout)).toMatchObject({ dryRun: true, runs: 2, held: 0 })
  expect(existsSync(folder)).toBe(false)
  const done = await place.run(['--json', 'prune', '--older-than', '1ms', '--archive', folder], own)
  expect(JSON.parse(done.stdout)).toMatchObject({ runs: 2, held: 0, archive: folder })
  expect(await place.json(['runs', 'list'])).toEqual([])
  const tables = archived(folder)
  expect(tables.get('runs')).toHaveLength(2)
  const whole = JSON.stringify([...tables])
  expect(whole).toContain('one')
  expect(whole).not.toContain(SECRET)
  // Everything goes on as before.
  expect((await place.run(['run', '--', 'true'], own)).code).toBe(0)
  expect((await place.run(['doctor'], own)).stderr).not.toContain('older backup')
})

test('killed with SIGKILL in the middle, each run is in the database or in the archive, and the next one goes on', async () => {
  const place = new Installation()
  const folder = join(dirname(place.home), 'archive')
  mkdirSync(place.home, { recursive: true })
  const store = await openSqliteStore({ path: join(place.home, 'holdfast.db') })
  for (let i = 0; i < 6; i++) await someCalls(store, 250)
  const left = async () => (await store.read(runIds)).map(({ id }) => id)
  const all = await left()
  const pruning = place.start(['prune', '--older-than', '1ms', '--archive', folder])
  await until('it is at it', async () => (filesIn(folder).length > 1 ? true : undefined))
  pruning.kill('SIGKILL')
  await pruning.ended
  const kept = () => new Set((archived(folder).get('runs') ?? []).map(({ id }) => id as string))
  const [remaining, put] = [await left(), kept()]
  expect(all.filter((id) => !put.has(id) && !remaining.includes(id))).toEqual([])
  expect((await place.run(['prune', '--older-than', '1ms', '--archive', folder])).code).toBe(0)
  expect(await left()).toEqual([])
  const whole = kept()
  expect(all.filter((id) => !whole.has(id))).toEqual([])
  await assertInvariants(store)
  await store.close()
})

test('a daemon forgets what its configuration says, and archives it', async () => {
  const place = new Installation({ lease: '1s' })
  const folder = join(dirname(place.home), 'kept')
  writeFileSync(place.configuration, JSON.stringify({ lease: '1s', retention: { runs: '1ms', archive: 'kept' } }))
  expect((await place.run(['run', '--', 'true'])).code).toBe(0)
  const daemon = await place.up()
  await expect.poll(() => place.json(['runs', 'list']), { timeout: 30_000 }).toEqual([])
  expect(archived(folder).get('runs')).toHaveLength(1)
  daemon.kill('SIGTERM')
  expect((await daemon.ended).code).toBe(0)
})
