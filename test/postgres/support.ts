import { onTestFinished } from 'vitest'

import { openPostgresStore } from '../../src/store/postgres/store.ts'
import type { PostgresOptions } from '../../src/store/postgres/store.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { record } from '../../src/events/event.ts'
import { GIVEN, change } from '../../src/store/transition.ts'
import type { Joint, Transition } from '../../src/store/transition.ts'
import { engines } from '../support/engines.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import type { ServerOptions } from '../support/postgres-server.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

/** The full count with HOLDFAST_DEEP=1, a tenth of it otherwise. */
export const deep = (count: number): number => (process.env.HOLDFAST_DEEP === '1' ? count : Math.ceil(count / 10))

/** A schema of its own on the server that all tests share, gone when the test is. */
export async function freshSchema(): Promise<string> {
  return (await engines.find(({ name }) => name === 'postgres')!.database()).url
}

export async function openedStore(url: string, options: Omit<PostgresOptions, 'url'> = {}): Promise<Store> {
  const store = await openPostgresStore({ url, ...options })
  onTestFinished(() => store.close())
  return store
}

export async function proxyBefore(url: string): Promise<TcpProxy> {
  const proxy = await TcpProxy.before(url)
  onTestFinished(() => proxy.close())
  return proxy
}

export async function ownServer(options: ServerOptions = {}): Promise<PostgresServer> {
  const server = await PostgresServer.create(options)
  onTestFinished(() => server.stop())
  return server
}

const ADDED: Joint = {
  table: 'breakers',
  columns: [['agent', 'text']],
  key: ['agent'],
  likely: true,
  many: sql`update breakers set failures = breakers.failures + 1 from ${GIVEN}
    where breakers.agent = given.agent and breakers.cause = 'counter'`,
}

/** A transition that is one statement, if there is such a counter. */
export function* addOne(): Transition<number> {
  const added = yield* change(ADDED, ['n'])
  yield* record({ type: 'run.queued' })
  return added
}
