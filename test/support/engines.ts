import {
  accessSync,
  constants,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import pg from 'pg'
import { inject, onTestFinished } from 'vitest'

import type { Clock } from '../../src/base/clock.ts'
import type { Store, StoreProbe } from '../../src/store/store.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { copyOf, dropSchema, keep, setClock, spareSchema, wipeSchema } from './schemas.ts'
import { warmDriver } from './warm-connections.ts'

export interface OpenOptions {
  readonly clock?: Clock
  readonly probe?: StoreProbe
}

/** One database of a test, gone when the test is; each `open` is another process as far as the engine can tell. */
export interface TestDatabase {
  /** What HOLDFAST_STORE would say. Other processes may go on with it after the test, so nobody else gets this database. */
  readonly url: string
  /** The same, for what the test opens, and closes, by itself. */
  readonly ownUrl: string
  open(options?: OpenOptions): Promise<Store>
  /** Another database with the same content. Nobody may have this one open. */
  copy(): Promise<TestDatabase>
  /** Where an engine allows it: what `kill -9` of everybody who uses it would leave at this instant. */
  killed?(): TestDatabase
  /** Where an engine allows it: all that is on disk. Nobody may have it open. */
  bytes?(): Buffer
}

export interface TestEngine {
  readonly name: 'sqlite' | 'postgres'
  database(): Promise<TestDatabase>
}

const sqlite: TestEngine = {
  name: 'sqlite',
  async database() {
    const folder = databaseFolder()
    emptyDatabase ??= makeEmptyDatabase()
    writeFileSync(join(folder, 'holdfast.db'), await emptyDatabase, { mode: 0o600 })
    return sqliteIn(folder)
  },
}

/** The bytes of a database that is empty but for its tables: making them takes 8 ms, writing these down less than one. */
let emptyDatabase: Promise<Buffer> | undefined

async function makeEmptyDatabase(): Promise<Buffer> {
  const folder = mkdtempSync(join(memoryDisk(), 'holdfast-test-'))
  try {
    await (await openSqliteStore({ path: join(folder, 'holdfast.db') })).close()
    return readFileSync(join(folder, 'holdfast.db'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function sqliteIn(folder: string): TestDatabase {
  const path = join(folder, 'holdfast.db')
  const killed = () => {
    const copy = databaseFolder()
    for (const name of onDisk(folder)) copyFileSync(join(folder, name), join(copy, name))
    return sqliteIn(copy)
  }
  return {
    url: `sqlite:${path}`,
    ownUrl: `sqlite:${path}`,
    open: (options = {}) => closedAfterTest(openSqliteStore({ path, ...options })),
    copy: async () => killed(),
    killed,
    bytes: () => Buffer.concat(onDisk(folder).map((name) => readFileSync(join(folder, name)))),
  }
}

/** Not the `-shm` file: it is memory, and gone with its processes. */
const onDisk = (folder: string) => ['holdfast.db', 'holdfast.db-wal'].filter((name) => existsSync(join(folder, name)))

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
    ownUrl: address,
    async open({ clock, probe } = {}) {
      const store = await closedAfterTest(
        openPostgresStore({ url: address, driver: warmDriver(schema), ...(probe === undefined ? {} : { probe }) }),
      )
      return clock === undefined ? store : ownClock(store, schema, clock)
    },
    async copy() {
      const copy = spareSchema()
      const database = postgresIn(copy)
      const url = withParameters(address, { schema: copy })
      await (await openPostgresStore({ url, driver: warmDriver(copy) })).close()
      await keep(copyOf(schema, copy))
      return database
    },
  }
}

export const engines: readonly TestEngine[] = [sqlite, postgres]

/** For stories of processes, in which the engine has no part that other tests do not see: PostgreSQL in the deep run. */
export const usualEngines = process.env['HOLDFAST_DEEP'] === undefined ? [sqlite] : engines

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
    warmUp: () => store.warmUp(),
    copyTo: (path) => store.copyTo(path),
    close: () => store.close(),
  }
}

export function withParameters(url: string, parameters: Readonly<Record<string, string>>): string {
  const parsed = new URL(url)
  for (const [name, value] of Object.entries(parameters)) parsed.searchParams.set(name, value)
  return parsed.href
}

/** On the server that all tests share by the connection that is there: a new one takes it longer than the question. */
export async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  if (isShared(url)) return (await keep(text)).at(-1)?.rows ?? []
  const client = new pg.Client(url.replace(/\?.*/, ''))
  await client.connect()
  try {
    return (await client.query(text)).rows ?? []
  } finally {
    await client.end()
  }
}

const isShared = (url: string) => new URL(url).host === new URL(inject('postgres')).host

/** For a database alone: in memory where there is some. No test here cuts the power, and every commit waits for its disk. */
function databaseFolder(): string {
  return temporaryFolder(memoryDisk())
}

/** Where the tests have their temporary files, if that is in memory already (memory-disk.ts). */
const memoryDisk = () => (!tmpdir().startsWith(MEMORY_DISK) && hasRoom(MEMORY_DISK) ? MEMORY_DISK : tmpdir())

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
