import { describe, expect, test } from 'vitest'

import type { RunId } from '../../src/base/ids.ts'
import { eventsAfter, record } from '../../src/events/event.ts'
import { integer, row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { GIVEN, all, change, changed, run, single } from '../../src/store/transition.ts'
import type { Joint, Transition } from '../../src/store/transition.ts'
import { engines } from '../support/engines.ts'

const counterRow = row({ scope: text(), used: integer })
const counters = single(() => all(counterRow, sql`select * from capacity order by scope`))

const ADDED: Joint = {
  table: 'capacity',
  columns: [
    ['scope', 'text'],
    ['more', 'bigint'],
  ],
  key: ['scope'],
  likely: true,
  many: sql`update capacity set used = capacity.used + given.more from ${GIVEN} where capacity.scope = given.scope`,
}

const PUT: Joint = {
  ...ADDED,
  likely: false,
  returns: ['used'],
  many: sql`insert into capacity (scope, used) select given.scope, given.more from ${GIVEN} order by place on conflict do nothing`,
}

/** What it returns rests on the answer, and so does what it records. */
function* add(scope: string, more: number): Transition<'added' | 'made'> {
  if ((yield* change(ADDED, [scope, more])) === 1) {
    yield* record({ type: 'run.queued', runId: scope as RunId, data: { more } })
    return 'added'
  }
  yield* run(sql`insert into capacity (scope, used) values (${scope}, ${more})`)
  return 'made'
}

function* put(scope: string, used: number): Transition<number | undefined> {
  return (yield* changed(counterRow, PUT, [scope, used]))?.used
}

function* putThenAdd(scope: string): Transition<string> {
  yield* change(PUT, [scope, 1])
  return yield* add(scope, 10)
}

const name = (index: number) => `n${String(index).padStart(3, '0')}`
const scopes = (count: number) => Array.from({ length: count }, (_, index) => name(index))

async function filled(store: Store, count: number): Promise<void> {
  await Promise.all(scopes(count).map((scope, index) => store.apply(put, scope, index)))
}

describe.each(engines)('transitions side by side on $name', (engine) => {
  const open = async () => (await engine.database()).open()

  test.each([1, 2, 7, 64, 150])('of %i that are stored at once each hears of its own row', async (count) => {
    const store = await open()
    const answers = await Promise.all(scopes(count).map((scope, index) => store.apply(put, scope, index)))
    expect(answers).toEqual(scopes(count).map((_, index) => index))
    expect((await store.read(counters)).map(({ used }) => used)).toEqual(answers)
  })

  test('of many that are stored at once, those that are there already hear so', async () => {
    const store = await open()
    await Promise.all([store.apply(put, name(3), 90), store.apply(put, name(8), 90)])
    const answers = await Promise.all(scopes(12).map((scope, index) => store.apply(put, scope, index)))
    expect(answers).toEqual(scopes(12).map((_, index) => (index === 3 || index === 8 ? undefined : index)))
  })

  test('what is likely and so is counted once, and its events have the order in which they came', async () => {
    const store = await open()
    await filled(store, 100)
    const answers = await Promise.all(scopes(100).map((scope) => store.apply(add, scope, 1_000)))
    expect(new Set(answers)).toEqual(new Set(['added']))
    expect((await store.read(counters)).map(({ used }) => used)).toEqual(scopes(100).map((_, index) => index + 1_000))
    expect((await store.read(eventsAfter, 0, 1_000)).map(({ runId }) => runId)).toEqual(scopes(100))
  })

  test('what is likely and is not so happens as if each had been alone, and nothing twice', async () => {
    const store = await open()
    await filled(store, 40)
    const some = scopes(42)
    const answers = await Promise.all(some.map((scope) => store.apply(add, scope, 1_000)))
    expect(answers).toEqual(some.map((_, index) => (index < 40 ? 'added' : 'made')))
    expect((await store.read(counters)).map(({ used }) => used)).toEqual(
      some.map((_, index) => (index < 40 ? index : 0) + 1_000),
    )
    const told = (await store.read(eventsAfter, 0, 1_000)).map(({ runId }) => runId)
    expect(told).toHaveLength(40)
    expect(new Set<string | null>(told)).toEqual(new Set(scopes(40)))
  })

  test('one alone for which the likely is not so happens once', async () => {
    const store = await open()
    expect(await store.apply(add, 'n', 5)).toBe('made')
    expect(await store.apply(add, 'n', 5)).toBe('added')
    expect(await store.read(counters)).toEqual([{ scope: 'n', used: 10 }])
  })

  test('several about the same row in one commit all count', async () => {
    const store = await open()
    await store.apply(put, 'n', 0)
    await Promise.all(Array.from({ length: 20 }, () => store.apply(add, 'n', 1)))
    expect(await store.read(counters)).toEqual([{ scope: 'n', used: 20 }])
    expect(await store.read(eventsAfter, 0, 100)).toHaveLength(20)
  })

  test('a likely one sees what the same transition stored before it', async () => {
    const store = await open()
    const answers = await Promise.all(scopes(30).map((scope) => store.apply(putThenAdd, scope)))
    expect(new Set(answers)).toEqual(new Set(['added']))
    expect((await store.read(counters)).map(({ used }) => used)).toEqual(scopes(30).map(() => 11))
  })
})
