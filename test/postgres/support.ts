import { onTestFinished } from 'vitest'

import { openPostgresStore } from '../../src/store/postgres/store.ts'
import type { PostgresOptions } from '../../src/store/postgres/store.ts'
import { integer, row } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { record } from '../../src/events/event.ts'
import { GIVEN, change, one, run } from '../../src/store/transition.ts'
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

const counterRow = row({ count: integer })

/**
 * Not idempotent on purpose: done twice, it shows. Two statements, so that it is a transaction like most; in a table
 * whose content no invariant speaks of.
 */
export function* increment(name: string): Transition<number> {
  yield* run(
    sql`insert into breakers (agent, cause, failures) values (${name}, 'counter', 0) on conflict (agent, cause) do nothing`,
  )
  const counter = yield* one(
    counterRow,
    sql`update breakers set failures = failures + 1 where agent = ${name} and cause = 'counter' returning failures as count`,
  )
  return counter.count
}

export function* counted(name: string): Transition<number> {
  const counter = yield* one(
    counterRow,
    sql`select coalesce(max(failures), 0) as count from breakers where agent = ${name} and cause = 'counter'`,
  )
  return counter.count
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
