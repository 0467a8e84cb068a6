import { accessSync, constants, copyFileSync, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import pg from 'pg'
import { inject, onTestFinished } from 'vitest'

import type { Clock } from '../../src/base/clock.ts'
import type { Store, StoreProbe } from '../../src/store/store.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { copyOf, dropSchema, keep, setClock, spareSchema, wipeSchema } from './schemas.ts'

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
    return sqliteIn(databaseFolder())
  },
}

function sqliteIn(folder: string): TestDatabase {
  const path = join(folder, 'holdfast.db')
  const killed = () => {
    const copy = databaseFolder()
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
  database: () => Promise.resolve(postgresIn(spareSchema())),
}

function postgresIn(schema: string): TestDatabase {
  const address = withParameters(inject('postgres'), { schema })
  let isLent = false
  onTestFinished(() => (isLent ? dropSchema(schema) : wipeSchema(schema)))
  return {
    get url() {
      isLent = true
      return address
    },
    async open({ clock, probe } = {}) {
      const store = await closedAfterTest(
        openPostgresStore({ url: address, ...(probe === undefined ? {} : { probe }) }),
      )
      return clock === undefined ? store : ownClock(store, schema, clock)
    },
    async copy() {
      const copy = spareSchema()
      const database = postgresIn(copy)
      await (await openPostgresStore({ url: withParameters(address, { schema: copy }) })).close()
      await keep(copyOf(schema, copy))
      return database
    },
  }
}

export const engines: readonly TestEngine[] = [sqlite, postgres]

/**
 * The database's clock is one function; here it reads a row that follows the test's clock. The row is brought up to date
 * before each use of the store.
 */
async function ownClock(store: Store, schema: string, clock: Clock): Promise<Store> {
  await setClock(schema, clock.now())
  let [shown, turn] = [clock.now(), Promise.resolve()]
  const follow = () => {
    turn = turn.then(async () => {
      const at = clock.now()
      if (at !== shown) await setClock(schema, at)
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

/** For a database alone: in memory where there is some. No test here cuts the power, and every commit waits for its disk. */
function databaseFolder(): string {
  return temporaryFolder(hasRoom(MEMORY_DISK) ? MEMORY_DISK : tmpdir())
}

const MEMORY_DISK = '/dev/shm'
/** The largest database of a test has a few megabytes; a container's memory disk has 64 in all. */
const ENOUGH_BYTES = 1e9

function hasRoom(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize > ENOUGH_BYTES
  } catch {
    return false
  }
}

/** A folder that is removed when the test has finished, after everything that was opened in it. */
export function temporaryFolder(parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, 'holdfast-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function closedAfterTest(opening: Promise<Store>): Promise<Store> {
  const store = await opening
  onTestFinished(() => store.close())
  return store
}
