import { describe, expect, test } from 'vitest'

import { newAttemptId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import { eventsAfter } from '../../src/events/event.ts'
import { heldAttempts } from '../../src/runs/recover.ts'
import { callHere, openCalls } from '../../src/runs/call.ts'
import { findRun } from '../../src/runs/run.ts'
import { stepsOf } from '../../src/runs/step.ts'
import { counted, increment } from '../support/counters.ts'
import { Load } from '../support/load.ts'
import { hurriedClock } from '../support/clocks.ts'
import { query, withParameters } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { printedChance } from '../support/seed.ts'
import type { CommitFate } from '../support/tcp-proxy.ts'
import { LEASE_MS, addWorker } from '../support/world.ts'
import { expectBalanced } from './load.ts'
import { addOne, deep, freshSchema, openedStore, proxyBefore } from './support.ts'

const CUTS: readonly CommitFate[] = ['cut before', 'cut after', 'cut while']

test('commits that are cut off before, after and while they reach the server happen once each [durable/acknowledged]', async () => {
  const url = await freshSchema()
  const proxy = await proxyBefore(url)
  const stores = [await openedStore(proxy.through(url)), await openedStore(proxy.through(url))]
  const load = new Load(stores)
  const chance = printedChance('cut commits')
  const wanted = deep(200)
  const cut = new Map<CommitFate, number>(CUTS.map((fate) => [fate, 0]))
  const cuts = () => [...cut.values()].reduce((sum, each) => sum + each, 0)
  proxy.atCommit = () => {
    if (cuts() >= wanted || chance.below(4) > 0) return 'pass'
    const fate = CUTS[chance.below(CUTS.length)]!
    cut.set(fate, cut.get(fate)! + 1)
    return fate
  }
  await load.work(() => cuts() >= wanted, 8)
  const answers = await expectBalanced(load, await openedStore(url))
  console.log(`${cuts()} commits cut (${[...cut].map(([fate, n]) => `${n} ${fate}`).join(', ')}), ${answers} answers`)
  expect(cuts()).toBe(wanted)
})

test.each(CUTS)('a transaction that is one statement, and is %s, happens once [durable/acknowledged]', async (fate) => {
  const url = await freshSchema()
  const proxy = await proxyBefore(url)
  const store = await openedStore(proxy.through(url))
  await store.apply(increment, 'n')
  let cutting = 0
  proxy.atCommit = () => (cutting-- > 0 ? fate : 'pass')
  for (let number = 0; number < 4; number += 1) {
    cutting = 1
    expect(await store.apply(addOne)).toBe(1)
    expect(cutting).toBeLessThanOrEqual(0)
  }
  expect(await (await openedStore(url)).read(counted, 'n')).toBe(5)
  expect(await store.read(eventsAfter, 0, 100)).toHaveLength(4)
})

test.each(CUTS)('calls that are stored by a commit which is %s are told their numbers all the same', async (fate) => {
  const url = await freshSchema()
  const proxy = await proxyBefore(url)
  const store = await openedStore(proxy.through(url))
  await store.apply(openCalls, 'adder')
  const workerId = await addWorker(store)
  let cutting = 1
  proxy.atCommit = () => (cutting-- > 0 ? fate : 'pass')
  const calls = Array.from({ length: 3 }, () => ({ id: newRunId(random), agent: 'adder', input: '1' }))
  const place = () => ({ workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) })
  const answers = await Promise.all(calls.map((call) => store.apply(callHere, call, place(), ['add'])))
  expect(cutting).toBeLessThanOrEqual(0)
  for (const [at, { id }] of calls.entries()) {
    const { seq } = (await store.read(findRun, id))!
    expect(answers[at]).toMatchObject({ kind: 'claimed', call: { id, seq } })
    expect(await store.read(stepsOf, id)).toMatchObject([{ name: 'add', state: 'started' }])
  }
  expect(await store.read(heldAttempts)).toHaveLength(3)
})

/** What a server, or a pooler before it, says when it goes down at a commit that is done. */
const LAST_WORDS = ['XX000', '58030', '53100', '57P05', '25P04', '40003']

describe.each(LAST_WORDS)('a commit that is done and answered with %s', (state) => {
  const denied = async (members: number, parameters: Record<string, string> = {}) => {
    const url = withParameters(await freshSchema(), parameters)
    const proxy = await proxyBefore(url)
    const store = await openedStore(proxy.through(url))
    for (let at = 0; at < members; at += 1) await store.apply(increment, `n${at}`)
    await store.apply(increment, 'n')
    proxy.denial = state
    let denials = 1
    proxy.atCommit = () => (denials-- > 0 ? 'deny after' : 'pass')
    return { url, store, denials: () => denials }
  }

  test('is looked up, and happens once', async () => {
    const { url, store, denials } = await denied(0)
    expect(await store.apply(increment, 'n')).toBe(2)
    expect(denials()).toBeLessThanOrEqual(0)
    expect(await (await openedStore(url)).read(counted, 'n')).toBe(2)
  })

  test('is looked up where it is one statement, and happens once', async () => {
    const { url, store, denials } = await denied(0)
    expect(await store.apply(addOne)).toBe(1)
    expect(denials()).toBeLessThanOrEqual(0)
    expect(await (await openedStore(url)).read(counted, 'n')).toBe(2)
  })

  test('is looked up behind a pooler, and happens once', async () => {
    const { url, store, denials } = await denied(0, { pgbouncer: 'true' })
    expect(await store.apply(addOne)).toBe(1)
    expect(denials()).toBeLessThanOrEqual(0)
    expect(await (await openedStore(url)).read(counted, 'n')).toBe(2)
  })

  test('is looked up for all that shared it, and each happens once', async () => {
    const { store, denials } = await denied(3)
    const names = ['n0', 'n1', 'n2']
    expect(await Promise.all(names.map((name) => store.apply(increment, name)))).toEqual([2, 2, 2])
    expect(denials()).toBeLessThanOrEqual(0)
  })
})

/** A commit that is held on the network while the engine believes that the connection is gone. */
async function lateCommit(fate: 'hold' | 'hold all', lookUpHeldAt?: RegExp) {
  const url = await freshSchema()
  const schema = new URL(url).searchParams.get('schema')!
  const proxy = await proxyBefore(url)
  const store = await openedStore(proxy.through(url))
  await store.apply(increment, 'n')
  let holding = 1
  proxy.atCommit = () => (holding-- > 0 ? fate : 'pass')
  const answer = store.apply(increment, 'n')
  const link = await until('the commit is held', () => Promise.resolve(proxy.links().find(({ holds }) => holds)))
  proxy.holdAt = lookUpHeldAt
  link.resetClient()
  const see = (what: string, text: string) =>
    until(what, async () => ((await query(url, text)).length > 0 ? true : undefined))
  return { proxy, url, schema, link, answer, see }
}

test('a commit that arrives after it was looked up and not found does not happen any more', async () => {
  const { url, schema, link, answer, see } = await lateCommit('hold all')
  await see('the batch is sealed', `select 1 from ${schema}.writers where batch < 0`)
  link.deliver()
  expect(await answer).toBe(2)
  expect(await (await openedStore(url)).read(counted, 'n')).toBe(2)
})

const WAITING = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%writers%'`

test('the look-up of a batch whose commit is still on its way waits for it, and finds it', async () => {
  const { url, link, answer, see } = await lateCommit('hold')
  await see('the look-up waits', WAITING)
  link.deliver()
  expect(await answer).toBe(2)
  expect(await (await openedStore(url)).read(counted, 'n')).toBe(2)
})

test('a batch that comes in the middle of its own look-up is waited for, and found', async () => {
  const { proxy, url, link, answer, see } = await lateCommit('hold all', /select batch from writers/)
  const lookUp = await until('the look-up has begun', () =>
    Promise.resolve(proxy.links().find((other) => other !== link && other.holds)),
  )
  const marked = `select 1 from pg_stat_activity where state = 'idle in transaction' and query like '%insert into writers as w %'`
  link.deliver(/^Q.{4}commit/s)
  await see('all but the commit has arrived', marked)
  lookUp.deliver()
  await see('the look-up waits', WAITING)
  link.deliver()
  expect(await answer).toBe(2)
  expect(await (await openedStore(url)).read(counted, 'n')).toBe(2)
})

test('the look-up of a batch whose commit never comes waits until the server gives it up, and does it again', async () => {
  const { url, link, answer, see } = await lateCommit('hold')
  await see('the look-up waits', WAITING)
  link.reset()
  expect(await answer).toBe(2)
  expect(await (await openedStore(url)).read(counted, 'n')).toBe(2)
})

test('a database that cannot be asked any more leaves it open, and says so', async () => {
  const url = await freshSchema()
  const proxy = await proxyBefore(url)
  const store = await openedStore(proxy.through(url), { clock: hurriedClock() })
  proxy.atCommit = () => {
    proxy.refusing = true
    return 'cut after'
  }
  await expect(store.apply(increment, 'n')).rejects.toMatchObject({ code: 'store/unknown-commit' })
  proxy.atCommit = () => 'pass'
  proxy.refusing = false
  expect(await store.apply(increment, 'n'), 'the store goes on').toBe(2)
})

test('a connection that swallows everything is given up in time, and what it was asked is looked up', async () => {
  const url = await freshSchema()
  const proxy = await proxyBefore(url)
  // The engine waits for an answer five seconds longer than the server may take.
  const store = await openedStore(withParameters(proxy.through(url), { statement_timeout: '1s' }))
  await store.apply(increment, 'n')
  let swallowing = 1
  proxy.atCommit = () => (swallowing-- > 0 ? 'swallow' : 'pass')
  expect(await store.apply(increment, 'n')).toBe(2)
  expect(await (await openedStore(url)).read(counted, 'n')).toBe(2)
})

test('a look at a database that does not answer says so in our words', async () => {
  const url = await freshSchema()
  const proxy = await proxyBefore(url)
  const store = await openedStore(proxy.through(url))
  expect(await store.check()).toEqual([])
  await proxy.close()
  await expect(store.check()).rejects.toMatchObject({ code: 'store/unreachable', retry: { afterMs: 1_000 } })
})
