import assert from 'node:assert/strict'

import { integer, row, text } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import type { Store } from '../store/store.ts'
import { all, first, one, run, single, together } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'

/** What every engine must do, as data: a test runner of one's choice turns each case into a test. */
export interface StoreCase {
  readonly title: string
  readonly check: (open: OpenStore) => Promise<void>
}

/** Opens the same database on each call of one case: several stores are several processes. */
export type OpenStore = () => Promise<Store>

const noteRow = row({ scope: text(), used: integer })
const instantRow = row({ at: integer })

function* put(scope: string, used: number): Transition<void> {
  yield* run(sql`insert into capacity (scope, used) values (${scope}, ${used})`)
}
const putOne = single((scope: string, used: number) =>
  run(sql`insert into capacity (scope, used) values (${scope}, ${used})`),
)
const get = single((scope: string) => first(noteRow, sql`select * from capacity where scope = ${scope}`))
const count = single(() => one(row({ count: integer }), sql`select count(*) as count from capacity`))

function* putTwoThenThrow(): Transition<never> {
  yield* put('doomed-1', 1)
  yield* put('doomed-2', 1)
  throw new Error('on purpose')
}

function* nothing(): Transition<number> {
  return yield* run(sql`update capacity set used = 1 where scope = 'nobody'`)
}

/** A counter that only a serialised read-then-write gets right without a guard; the guard makes it right anyway. */
function* increment(scope: string): Transition<number> {
  const changed = yield* one(noteRow, sql`update capacity set used = used + 1 where scope = ${scope} returning *`)
  return changed.used
}

export const storeContract: readonly StoreCase[] = [
  {
    title: 'what was acknowledged is there for another reader',
    async check(open) {
      const [writer, reader] = [await open(), await open()]
      await writer.apply(put, 'a', 7)
      assert.deepEqual(await reader.read(get, 'a'), { scope: 'a', used: 7 })
    },
  },
  {
    title: 'a transition that throws leaves nothing behind and fails alone among those that share its commit',
    async check(open) {
      const store = await open()
      const results = await Promise.allSettled([
        store.apply(put, 'before', 1),
        store.apply(putTwoThenThrow),
        store.apply(put, 'after', 1),
      ])
      assert.deepEqual(
        results.map(({ status }) => status),
        ['fulfilled', 'rejected', 'fulfilled'],
      )
      assert.equal((await store.read(count)).count, 2)
    },
  },
  {
    title: 'a statement that breaks a rule fails its own transition only, with a code',
    async check(open) {
      const store = await open()
      const [one1, one2, other] = await Promise.allSettled([
        store.apply(put, 'one', 1),
        store.apply(put, 'one', 2),
        store.apply(put, 'two', 1),
      ])
      assert.equal(other?.status, 'fulfilled')
      const [refused, ...more] = [one1, one2].filter((each) => each?.status === 'rejected')
      assert.equal(more.length, 0)
      assert.equal((refused as PromiseRejectedResult).reason.code, 'store/constraint')
      assert.equal((await store.read(count)).count, 2)
    },
  },
  {
    title: 'two hundred callers at once each get their own answer',
    async check(open) {
      const store = await open()
      await store.apply(put, 'n', 0)
      const answers = await Promise.all(Array.from({ length: 200 }, () => store.apply(increment, 'n')))
      assert.deepEqual(
        answers.toSorted((a, b) => a - b),
        Array.from({ length: 200 }, (_, index) => index + 1),
      )
    },
  },
  {
    title: 'several stores on one database lose no update',
    async check(open) {
      const stores = [await open(), await open(), await open()]
      await stores[0]!.apply(put, 'n', 0)
      await Promise.all(
        stores.map(async (store) => {
          for (let i = 0; i < 40; i++) await store.apply(increment, 'n')
        }),
      )
      assert.equal((await stores[1]!.read(get, 'n'))?.used, 120)
    },
  },
  {
    title: 'a read may ask several statements together, as a change may, and none of them may write',
    async check(open) {
      const store = await open()
      await store.apply(put, 'a', 1)
      await store.apply(put, 'b', 2)
      function* both() {
        const [a, b, counted] = yield* together([get.single('a'), get.single('b'), count.single()])
        const none = yield* together([])
        const [again] = yield* together([get.single('a')])
        return [a?.used, b?.used, counted.count, none.length, again?.used]
      }
      assert.deepEqual(await store.read(both), [1, 2, 2, 0, 1])
      assert.deepEqual(await store.apply(both), [1, 2, 2, 0, 1])
      function* hidden() {
        yield* together([get.single('a'), putOne.single('c', 3)])
      }
      await assert.rejects(store.read(hidden), { code: 'store/read-only-look' })
      assert.equal((await store.read(count)).count, 2)
    },
  },
  {
    title: 'a read that tries to write is refused and changes nothing',
    async check(open) {
      const store = await open()
      await assert.rejects(store.read(putOne, 'x', 1), { code: 'store/read-only-look' })
      assert.equal((await store.read(count)).count, 0)
    },
  },
  {
    title: 'a read of several statements sees one snapshot',
    async check(open) {
      const store = await open()
      await store.apply(put, 'n', 1)
      function* twice(): Transition<[number | undefined, number | undefined]> {
        const before = yield* get.single('n')
        const after = yield* get.single('n')
        return [before?.used, after?.used]
      }
      const [pair] = await Promise.all([store.read(twice), store.apply(increment, 'n')])
      assert.equal(pair[0], pair[1])
    },
  },
  {
    title: 'values come back as they went in: text of every kind, large and negative integers, null',
    async check(open) {
      const store = await open()
      const shape = row({ words: text(), large: integer })
      const words = 'quote \' double " back \\ percent % zero-width \u200b emoji 🪢 newline\n'
      const echo = single(() =>
        all(shape, sql`select cast(${words} as text) as words, cast(${-9007199254740991} as bigint) as large`),
      )
      assert.deepEqual(await store.read(echo), [{ words, large: -9007199254740991 }])
    },
  },
  {
    title: 'now is the same instant for every statement of one transition or later, never earlier',
    async check(open) {
      const store = await open()
      function* twoInstants(): Transition<[number, number]> {
        const early = yield* one(instantRow, sql`select cast(${now} as bigint) as at`)
        const late = yield* one(instantRow, sql`select cast(${now} as bigint) as at`)
        return [early.at, late.at]
      }
      const [early, late] = await store.read(twoInstants)
      assert.ok(late >= early)
    },
  },
  {
    title: 'listeners hear of commits by their own store and by another',
    async check(open) {
      const [mine, other] = [await open(), await open()]
      for (const writer of [mine, other]) {
        const heard = new Promise<void>((resolve) => {
          const stop = mine.onChange(() => {
            stop()
            resolve()
          })
        })
        await writer.apply(put, writer === mine ? 'mine' : 'other', 1)
        await heard
      }
    },
  },
  {
    title: 'a transition that changes nothing wakes nobody',
    async check(open) {
      const store = await open()
      let heard = 0
      const stop = store.onChange(() => (heard += 1))
      for (let i = 0; i < 50; i++) assert.equal(await store.apply(nothing), 0)
      stop()
      // A hint may come without a cause, when listening begins, or every now and then where nobody can be told; not with every call.
      assert.ok(heard < 25, `heard ${heard} times of nothing`)
    },
  },
  {
    title: 'a closed store finishes what it was given and takes nothing new',
    async check(open) {
      const [store, reader] = [await open(), await open()]
      const last = store.apply(put, 'last', 1)
      await store.close()
      await last
      await assert.rejects(store.apply(put, 'late', 1), { code: 'store/closed' })
      await assert.rejects(store.check(), { code: 'store/closed' })
      assert.equal((await reader.read(count)).count, 1)
    },
  },
]
