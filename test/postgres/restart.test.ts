import { expect, test } from 'vitest'

import type { RunId } from '../../src/base/ids.ts'
import type { Store } from '../../src/store/store.ts'
import { counted, increment } from '../support/counters.ts'
import { Load } from '../support/load.ts'
import { query, withParameters } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import { addWorker, claim, submitted } from '../support/world.ts'
import { expectBalanced } from './load.ts'
import { deep, freshSchema, openedStore, ownServer, proxyBefore } from './support.ts'

/** So that every restart meets a store that had recovered from the last one. */
const COMMITS_BETWEEN = 40

test('a server that is killed and started again under load loses nothing and does nothing twice [durable/acknowledged]', async () => {
  const server = await ownServer({ fsync: true })
  const stores = [await openedStore(server.url()), await openedStore(server.url())]
  const load = new Load(stores)
  let restarts = 0
  const work = load.work(() => restarts >= deep(50), 8)
  for (; restarts < deep(50); restarts++) {
    const before = load.done
    await until('work goes on', () => Promise.resolve(load.done >= before + COMMITS_BETWEEN ? true : undefined))
    await server.kill()
    await server.start()
  }
  await work
  const answers = await expectBalanced(load, stores[0]!)
  console.log(`${restarts} restarts, ${answers} answers, all of them true`)
})

/** Each on a connection of its own: none is answered before all were asked. */
async function onManyConnections(store: Store, proxy: TcpProxy, names: readonly string[]): Promise<void> {
  const holding = () => proxy.links().filter(({ holds }) => holds)
  const answers: Promise<number>[] = []
  for (const name of names) {
    proxy.holdAt = /insert into breakers/
    answers.push(store.apply(increment, name))
    await until('it is held', () => Promise.resolve(holding().length === answers.length ? true : undefined))
  }
  for (const link of holding()) link.deliver()
  await Promise.all(answers)
}

// Behind a pooler the connections outlive that.
test.each([1, 3])('a server that took over without the last commits is written to at once, by %i', async (count) => {
  const url = await freshSchema()
  const schema = new URL(url).searchParams.get('schema')!
  const proxy = await proxyBefore(url)
  const store = await openedStore(proxy.through(url))
  const names = ['a', 'b', 'c']
  await onManyConnections(store, proxy, names)
  expect(await query(url, `update ${schema}.writers set batch = batch - 1 returning 1`)).toHaveLength(3)
  const answers = await Promise.all(names.slice(0, count).map((name) => store.apply(increment, name)))
  expect(answers).toEqual(answers.map(() => 2))
  for (const name of names.slice(0, count)) expect(await store.read(counted, name)).toBe(2)
})

/** Heard of something after this was called. */
function nextNews(store: Store): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = store.onChange(() => {
    stop()
    resolve()
  })
  return promise
}

test('after a restart a listener listens again and hears of the commits of others', async () => {
  const server = await ownServer({ fsync: false })
  const listening = await openedStore(withParameters(server.url(), { application_name: 'listening' }))
  const other = await openedStore(server.url())
  const ears = () =>
    server.query(`select 1 from pg_stat_activity where application_name = 'listening' and query like 'listen %'`)
  let heard = 0
  listening.onChange(() => (heard += 1))
  const someEar = async () => ((await ears()).length > 0 ? true : undefined)
  await until('it listens', someEar)
  await server.kill()
  await server.start()
  await until('it listens again', someEar)
  const before = heard
  await other.apply(increment, 'n')
  await until('it hears', () => Promise.resolve(heard > before ? true : undefined))
})

test('a worker whose listening connection has silently died finds its work by looking, and listens anew', async () => {
  const url = await freshSchema()
  const proxy = await proxyBefore(url)
  const [store, other] = [await openedStore(proxy.through(url)), await openedStore(url)]
  const workerId = await addWorker(store)
  const claimed = new Set<RunId>()
  const take = () => claim(store, workerId).then((found) => found && claimed.add(found.run.id))
  // The test may be over when the last news comes.
  store.onChange(() => void take().catch(() => {}))
  const takes = (id: RunId) => until(`${id} is claimed`, () => Promise.resolve(claimed.has(id) ? true : undefined))
  const ears = () => proxy.links(/listen /)
  await until('it listens', () => Promise.resolve(ears()[0]))
  await takes((await submitted(other)).id)
  const [dead] = ears()
  dead!.blackHole()
  await takes((await submitted(other)).id)
  await until('it listens anew', () => Promise.resolve(ears().find((ear) => ear !== dead)))
})

test('where no connection can listen, changes are noticed by looking', async () => {
  const url = await freshSchema()
  const listening = await openedStore(withParameters(url, { pgbouncer: 'true' }))
  const other = await openedStore(url)
  const news = nextNews(listening)
  await other.apply(increment, 'n')
  await news
})
