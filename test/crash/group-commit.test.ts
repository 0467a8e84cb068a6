import { DatabaseSync } from 'node:sqlite'

import { expect, test } from 'vitest'

import { LIMITS } from '../../src/base/limits.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store, StorePoint, StoreProbe } from '../../src/store/store.ts'
import { onceAt, sqliteError } from '../../src/testing/faults.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { hurriedClock } from '../support/clocks.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { countWriters, counters, increment, put, putAndEndTransaction, putAndThrow } from './counters.ts'

const sqlite = engines.find(({ name }) => name === 'sqlite')!
const commitFails = (when: StorePoint['when'], nth: number) =>
  onceAt({
    nth,
    matches: (point) => point.at === 'commit' && point.when === when,
    act() {
      throw sqliteError(10)
    },
  })

const open = async (probe?: StoreProbe) => {
  const database = await sqlite.database()
  const store = await database.open({ clock: hurriedClock(), ...(probe === undefined ? {} : { probe }) })
  return { store, path: database.url.replace('sqlite:', '') }
}

const BATCH = 64

/** 64 in one batch; those at the given places are not the usual ones. */
function batch(store: Store, odd: ReadonlyMap<number, (scope: string) => Promise<unknown>>): Promise<string[]> {
  const all = Array.from({ length: BATCH }, (_, index) => {
    const scope = `member-${String(index).padStart(2, '0')}`
    return odd.get(index)?.(scope) ?? store.apply(put, scope)
  })
  return Promise.allSettled(all).then((results) =>
    results.map((result) => (result.status === 'fulfilled' ? 'kept' : (result.reason.code ?? result.reason.message))),
  )
}

const allBut = (odd: Readonly<Record<number, string>>) => Array.from({ length: BATCH }, (_, i) => odd[i] ?? 'kept')

async function keptIn(store: Store): Promise<number[]> {
  return (await store.read(counters)).map(({ scope }) => Number(scope.slice('member-'.length)))
}

const placesOf = (answers: readonly string[]) => answers.flatMap((answer, index) => (answer === 'kept' ? [index] : []))

test('of 64 in one commit the one that throws fails alone', async () => {
  const { store } = await open()
  const answers = await batch(store, new Map([[20, (scope: string) => store.apply(putAndThrow, scope)]]))
  expect(answers).toEqual(allBut({ 20: 'on purpose' }))
  expect(await keptIn(store)).toEqual(placesOf(answers))
})

test('of 64 in one commit the one whose statement ends the whole transaction fails alone', async () => {
  const { store } = await open()
  const answers = await batch(store, new Map([[33, (scope: string) => store.apply(putAndEndTransaction, scope)]]))
  expect(answers).toEqual(allBut({ 33: 'store/constraint' }))
  expect(await keptIn(store)).toEqual(placesOf(answers))
})

test.each([
  [10, 50],
  [50, 10],
])('one that throws at %i and one that ends the transaction at %i leave the other 62', async (thrower, ender) => {
  const { store } = await open()
  const odd = new Map([
    [thrower, (scope: string) => store.apply(putAndThrow, scope)],
    [ender, (scope: string) => store.apply(putAndEndTransaction, scope)],
  ])
  const answers = await batch(store, odd)
  expect(answers).toEqual(allBut({ [thrower]: 'on purpose', [ender]: 'store/constraint' }))
  expect(await keptIn(store)).toEqual(placesOf(answers))
})

test('nobody is told before the commit has returned, and then all of the batch are [durable/acknowledged]', async () => {
  const told: string[] = []
  const atCommit: { readonly when: string; readonly told: number }[] = []
  const { store } = await open(({ at, when }) => {
    if (at === 'commit') atCommit.push({ when, told: told.length })
  })
  atCommit.length = 0
  await Promise.all(Array.from({ length: BATCH }, (_, i) => store.apply(put, `${i}`).then((scope) => told.push(scope))))
  expect(atCommit).toEqual([
    { when: 'before', told: 0 },
    { when: 'after', told: 0 },
  ])
  expect(told).toHaveLength(BATCH)
})

test('a batch whose commit is reported as failed is looked up by its number, and each gets its own answer once', async () => {
  const probe = commitFails('after', 1)
  const { store } = await open(probe)
  const answers = await Promise.all(Array.from({ length: BATCH }, () => store.apply(increment, 'n')))
  expect(answers).toEqual(Array.from({ length: BATCH }, (_, index) => index + 1))
  expect(await store.read(counters)).toEqual([{ scope: 'n', used: BATCH }])
  expect(probe.seen()).toBe(1)
})

test('a batch whose commit failed is done again, once', async () => {
  const probe = commitFails('before', 1)
  const { store } = await open(probe)
  const answers = await Promise.all(Array.from({ length: BATCH }, () => store.apply(increment, 'n')))
  expect(answers).toEqual(Array.from({ length: BATCH }, (_, index) => index + 1))
  expect(await store.read(counters)).toEqual([{ scope: 'n', used: BATCH }])
  expect(probe.seen()).toBeGreaterThan(1)
})

test('a commit that is there but cannot be made safe, because a reader holds an older view, is not acknowledged', async () => {
  const probe = commitFails('after', 2)
  const { store, path } = await open(probe)
  await store.apply(put, 'first')
  const reader = new DatabaseSync(path)
  reader.exec('begin; select count(*) from capacity')
  const error = await store.apply(put, 'second').catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'store/unknown-commit', remedy: expect.stringContaining('look the change up') })
  reader.exec('rollback')
  reader.close()
  expect((await store.read(counters)).map(({ scope }) => scope)).toEqual(['first', 'second'])
  await store.apply(put, 'third')
})

test('what cannot be told at close is still told: a failing commit in the last batch is looked up', async () => {
  const probe = commitFails('after', 1)
  const { store } = await open(probe)
  const last = store.apply(put, 'last')
  await store.close()
  expect(await last).toBe('last')
  expect(probe.seen()).toBe(1)
})

test('a store that waits for a lock while it closes does not fall over its own look for news', async () => {
  const clock = new FakeClock()
  let locked = false
  const database = await sqlite.database()
  const store = await database.open({
    clock,
    probe({ at, when }) {
      if (locked && at === 'begin' && when === 'before') throw sqliteError(5)
    },
  })
  store.onChange(() => {})
  locked = true
  const last = store.apply(put, 'last')
  const closed = store.close()
  await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
  clock.advance(LIMITS.changePollMs * 2)
  locked = false
  for (let turn = 0; turn < 10; turn++) {
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(100)
  }
  expect(await last).toBe('last')
  await closed
})

test('the row that a dead writer left is swept by a later one, that of a living one is not', async () => {
  const database = await sqlite.database()
  const clock = hurriedClock()
  const [long, dead] = [await database.open({ clock }), await database.open({ clock })]
  await dead.apply(put, 'dead')
  await long.apply(put, 'long')
  const writers = () => long.read(countWriters)
  expect(await writers()).toEqual({ count: 2 })
  clock.step(8 * 86_400_000)
  await long.apply(put, 'still there')
  const later = await database.open({ clock })
  await later.apply(put, 'later')
  expect(await writers()).toEqual({ count: 2 })
})

test('every commit is synced: the connection says so itself [R8]', async () => {
  const { openConnection } = await import('../../src/store/sqlite/open.ts')
  const path = `${temporaryFolder()}/holdfast.db`
  await (await openSqliteStore({ path })).close()
  const connection = openConnection(path, hurriedClock())
  // 2 is FULL.
  expect([connection.ask('pragma journal_mode'), connection.ask('pragma synchronous')]).toEqual(['wal', 2])
  connection.close()
})
