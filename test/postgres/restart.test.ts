import { test } from 'vitest'

import type { Store } from '../../src/store/store.ts'
import { withParameters } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { Load } from './load.ts'
import { deep, freshSchema, increment, openedStore, ownServer, proxyBefore } from './support.ts'

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
  const answers = await load.balance(stores[0]!)
  console.log(`${restarts} restarts, ${answers} answers, all of them true`)
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

test('a listener whose connection has silently died finds what others committed by looking, and listens anew', async () => {
  const url = await freshSchema()
  const proxy = await proxyBefore(url)
  const [listening, other] = [await openedStore(proxy.through(url)), await openedStore(url)]
  let heard = 0
  listening.onChange(() => (heard += 1))
  const ears = () => proxy.links(/listen /)
  await until('it listens', () => Promise.resolve(ears()[0]))
  await other.apply(increment, 'n')
  await until('it hears', () => Promise.resolve(heard > 1 ? true : undefined))
  const [dead] = ears()
  dead!.blackHole()
  const before = heard
  await other.apply(increment, 'n')
  await until('it has looked', () => Promise.resolve(heard > before ? true : undefined))
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
