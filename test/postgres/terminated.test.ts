import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { runEventsAfter } from '../../src/events/event.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { restartsFor } from '../../src/store/postgres/errors.ts'
import { raw, sql } from '../../src/store/sql.ts'
import type { HoldingProbe, Store } from '../../src/store/store.ts'
import { run } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { openThread } from '../../src/threads/thread.ts'
import { counted, increment, incrementBoth } from '../support/counters.ts'
import { hurriedClock } from '../support/clocks.ts'
import { query, withParameters } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { aThread, running } from '../support/world.ts'
import { addOne, freshSchema, openedStore } from './support.ts'

/** No transition has nearly so many; a loop that gets here would otherwise never end. */
const MOST_POINTS = 200

/** Acts at the nth point after `arm`, once. */
function actingAt(act: () => Promise<void>) {
  let countdown = 0
  const probe: HoldingProbe = () => (--countdown === 0 ? act() : undefined)
  return { probe, arm: (nth: number) => void (countdown = nth), acted: () => countdown <= 0 }
}

const terminate = (url: string, name: string) =>
  query(url, `select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name = '${name}'`)

test('a backend that is terminated at any point of a transition leaves it done once, with its right answer', async () => {
  const url = await freshSchema()
  const death = actingAt(() => terminate(url, 'doomed').then(() => {}))
  const store = await openedStore(withParameters(url, { application_name: 'doomed' }), { probe: death.probe })
  const parentThreadId = aThread()
  await store.apply(openThread, parentThreadId, 'conductor', null)
  let nth = 1
  for (; nth < MOST_POINTS; nth++) {
    const { run: claimed, ref } = await running(store, { parentThreadId }, { total: 1_000 })
    death.arm(nth)
    expect(await store.apply(finishRun, ref, { state: 'succeeded' })).toMatchObject({ kind: 'finished' })
    const acted = death.acted()
    death.arm(0)
    const events = (await store.read(runEventsAfter, claimed.id, 0, 100)).map(({ type }) => type)
    expect(events.toSorted()).toEqual(['message.accepted', 'run.finished', 'run.queued', 'run.started'])
    if (!acted) break
  }
  // Begin, seven statements and the commit, before and after each.
  expect(nth).toBeGreaterThan(16)
  await assertInvariants(store)
})

test('a backend that is terminated at any point of a count leaves it counted once', async () => {
  const url = await freshSchema()
  const death = actingAt(() => terminate(url, 'doomed').then(() => {}))
  const store = await openedStore(withParameters(url, { application_name: 'doomed' }), { probe: death.probe })
  for (let nth = 1; nth <= 8; nth++) {
    death.arm(nth)
    expect(await store.apply(increment, 'n')).toBe(nth)
    expect(death.acted()).toBe(true)
  }
})

const fail = (state: string) => raw(`do $$ begin raise exception 'on purpose' using errcode = '${state}'; end $$`)

/** Refused by the server itself after its work is done, as often as this says. */
function failing(state: string, times: number) {
  let failures = 0
  return function* (): Transition<number> {
    const count = yield* increment('n')
    if (failures++ < times) yield* run(fail(state))
    return count
  }
}

test.each(['40001', '40P01', '55P03', '23505'])('%s starts a transition again, and it counts once', async (state) => {
  const store = await openedStore(await freshSchema(), { clock: hurriedClock() })
  expect(await store.apply(failing(state, 1))).toBe(1)
  expect(await store.apply(failing(state, restartsFor({ code: state }) - 1))).toBe(2)
  expect(await store.read(counted, 'n')).toBe(2)
})

test.each(['40001', '40P01', '55P03'])('%s again and again is store/busy, and nothing happened', async (state) => {
  const store = await openedStore(await freshSchema(), { clock: hurriedClock() })
  const refusal = { name: 'HoldfastError', code: 'store/busy', retry: { afterMs: 1_000 } }
  await expect(store.apply(failing(state, 1_000))).rejects.toMatchObject(refusal)
  expect(await store.read(counted, 'n')).toBe(0)
  expect(await store.apply(increment, 'n')).toBe(1)
})

test.each([
  ['53100', 'store/full'],
  ['57014', 'store/slow'],
  ['23514', 'store/constraint'],
  ['XX000', 'store/postgres'],
])('%s is %s at once, and nothing happened', async (state, code) => {
  const store = await openedStore(await freshSchema())
  await expect(store.apply(failing(state, 1))).rejects.toMatchObject({ name: 'HoldfastError', code })
  expect(await store.read(counted, 'n')).toBe(0)
})

test.each([
  ['53100', 'store/full'],
  ['57014', 'store/slow'],
  ['XX000', 'store/postgres'],
])('%s at the statement that ends a transaction is %s, and nothing happened', async (state, code) => {
  const url = await freshSchema()
  const schema = new URL(url).searchParams.get('schema')!
  const store = await openedStore(url)
  await store.apply(increment, 'n')
  await query(
    url,
    `create function ${schema}.refuse() returns trigger language plpgsql as
      $$ begin raise exception 'on purpose' using errcode = '${state}'; end $$;
    create trigger refused before insert on ${schema}.events execute function ${schema}.refuse()`,
  )
  await expect(store.apply(addOne)).rejects.toMatchObject({ name: 'HoldfastError', code })
  expect(await store.read(counted, 'n')).toBe(1)
  await query(url, `drop trigger refused on ${schema}.events`)
  expect(await store.apply(addOne)).toBe(1)
  expect(await store.read(counted, 'n')).toBe(2)
})

/** Lets nobody go on from its third statement, the second counter's first, before all are there. */
function meeting(size: number): () => HoldingProbe {
  const together = Promise.withResolvers<void>()
  let arrived = 0
  return () => {
    let statements = 0
    return ({ at, when }) => {
      if (at !== 'statement' || when !== 'before' || ++statements !== 3) return
      if (++arrived === size) together.resolve()
      return together.promise
    }
  }
}

test('two transitions that lock two rows in opposite order both happen, once each', async () => {
  const url = await freshSchema()
  const setUp = await openedStore(url)
  await setUp.apply(incrementBoth, 'a', 'b')
  const probes = meeting(2)
  const [one, two] = [await openedStore(url, { probe: probes() }), await openedStore(url, { probe: probes() })]
  const answers = await Promise.all([one.apply(incrementBoth, 'a', 'b'), two.apply(incrementBoth, 'b', 'a')])
  expect(answers.flat().toSorted((a, b) => a - b)).toEqual([2, 2, 3, 3])
  expect(await setUp.read(counted, 'a')).toBe(3)
  expect(await setUp.read(counted, 'b')).toBe(3)
})

test('many that lock many rows in any order all happen, once each', async () => {
  const url = await freshSchema()
  const stores = await Promise.all(Array.from({ length: 3 }, () => openedStore(url)))
  const names = ['a', 'b', 'c', 'd']
  const work = (store: Store, at: number) =>
    Promise.all(
      names.flatMap((left, i) => names.map((_, j) => store.apply(incrementBoth, left, names[(i + j + at) % 4]!))),
    )
  await Promise.all(stores.map(work))
  const counts = await Promise.all(names.map((name) => stores[0]!.read(counted, name)))
  expect(counts).toEqual([24, 24, 24, 24])
})

function* impatient(): Transition<number> {
  yield* run(sql`set local lock_timeout to 100`)
  return yield* increment('n')
}

test('a row that another session has locked is waited for, and given up and started again', async () => {
  const url = await freshSchema()
  let begins = 0
  const again = Promise.withResolvers<void>()
  const probe: HoldingProbe = ({ at, when }) => {
    if (at === 'begin' && when === 'before' && ++begins === 2) again.resolve()
  }
  const setUp = await openedStore(url)
  await setUp.apply(increment, 'n')
  const store = await openedStore(url, { probe })
  const neighbour = new pg.Client(url.replace(/\?.*/, ''))
  await neighbour.connect()
  onTestFinished(() => neighbour.end())
  const schema = new URL(url).searchParams.get('schema')
  await neighbour.query('begin')
  await neighbour.query(`select * from ${schema}.breakers for update`)
  const answer = store.apply(impatient)
  await Promise.race([again.promise, answer])
  await neighbour.query('rollback')
  expect(await answer).toBe(2)
})
