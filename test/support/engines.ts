import { randomBytes } from 'node:crypto'
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import pg from 'pg'
import { inject, onTestFinished } from 'vitest'

import type { Clock } from '../../src/base/clock.ts'
import type { Store, StoreProbe } from '../../src/store/store.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { TABLES } from './tables.ts'

export interface OpenOptions {
  readonly clock?: Clock
  readonly probe?: StoreProbe
}

/** One database of a test, gone when the test is; each `open` is another process as far as the engine can tell. */
export interface TestDatabase {
  /** What HOLDFAST_STORE would say. */
  readonly url: string
  open(options?: OpenOptions): Promise<Store>
  /** Another database with the same content. Nobody may have this one open. */
  copy(): Promise<TestDatabase>
  /** Where an engine allows it: what `kill -9` of everybody who uses it would leave at this instant. */
  killed?(): TestDatabase
}

export interface TestEngine {
  readonly name: 'sqlite' | 'postgres'
  database(): Promise<TestDatabase>
}

const sqlite: TestEngine = {
  name: 'sqlite',
  async database() {
    return sqliteIn(temporaryFolder())
  },
}

function sqliteIn(folder: string): TestDatabase {
  const path = join(folder, 'holdfast.db')
  const killed = () => {
    const copy = temporaryFolder()
    // Not the `-shm` file: it is memory, and gone with its processes.
    for (const name of ['holdfast.db', 'holdfast.db-wal']) {
      if (existsSync(join(folder, name))) copyFileSync(join(folder, name), join(copy, name))
    }
    return sqliteIn(copy)
  }
  return {
    url: `sqlite:${path}`,
    open: (options = {}) => closedAfterTest(openSqliteStore({ path, ...options })),
    copy: async () => killed(),
    killed,
  }
}

const postgres: TestEngine = {
  name: 'postgres',
  database: () => Promise.resolve(postgresIn(`t_${randomBytes(8).toString('hex')}`)),
}

function postgresIn(schema: string): TestDatabase {
  const url = withParameters(inject('postgres'), { schema })
  onTestFinished(() => void query(url, `drop schema if exists ${schema} cascade`))
  return {
    url,
    async open({ clock, probe } = {}) {
      const store = await closedAfterTest(openPostgresStore({ url, ...(probe === undefined ? {} : { probe }) }))
      return clock === undefined ? store : ownClock(store, url, schema, clock)
    },
    async copy() {
      const copy = `${schema.slice(0, 40)}_${randomBytes(4).toString('hex')}`
      const database = postgresIn(copy)
      await (await openPostgresStore({ url: database.url })).close()
      const tables = TABLES.map(
        (table) => `insert into ${copy}.${table} overriding system value select * from ${schema}.${table};`,
      )
      const serials = ['runs', 'messages', 'events', 'entries'].map(
        (table) =>
          `select setval(pg_get_serial_sequence('${copy}.${table}', 'seq'), (select coalesce(max(seq), 0) + 1 from ${copy}.${table}), false);`,
      )
      await query(url, [...tables, ...serials].join('\n'))
      return database
    },
  }
}

export const engines: readonly TestEngine[] = [sqlite, postgres]

/**
 * The database's clock is one function; here it reads a row that follows the test's clock. The row is brought up to date
 * before each use of the store.
 */
async function ownClock(store: Store, url: string, schema: string, clock: Clock): Promise<Store> {
  await query(
    url,
    `create table if not exists ${schema}.test_clock (now bigint); delete from ${schema}.test_clock;
    insert into ${schema}.test_clock values (${clock.now()});
    create or replace function ${schema}.now_ms() returns bigint language sql volatile as $$ select now from ${schema}.test_clock $$`,
  )
  let [shown, turn] = [clock.now(), Promise.resolve()]
  const follow = () => {
    turn = turn.then(async () => {
      const at = clock.now()
      if (at !== shown) await query(url, `update ${schema}.test_clock set now = ${at}`)
      shown = at
    })
    return turn
  }
  return {
    engine: store.engine,
    apply: (change, ...args) =>
      clock.now() === shown ? store.apply(change, ...args) : follow().then(() => store.apply(change, ...args)),
    read: (look, ...args) => follow().then(() => store.read(look, ...args)),
    onChange: (listener) => store.onChange(listener),
    check: () => store.check(),
    copyTo: (path) => store.copyTo(path),
    close: () => store.close(),
  }
}

export function withParameters(url: string, parameters: Readonly<Record<string, string>>): string {
  const parsed = new URL(url)
  for (const [name, value] of Object.entries(parameters)) parsed.searchParams.set(name, value)
  return parsed.href
}

export async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url.replace(/\?.*/, ''))
  await client.connect()
  try {
    return (await client.query(text)).rows ?? []
  } finally {
    await client.end()
  }
}

/** A folder that is removed when the test has finished, after everything that was opened in it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function closedAfterTest(opening: Promise<Store>): Promise<Store> {
  const store = await opening
  onTestFinished(() => store.close())
  return store
}
