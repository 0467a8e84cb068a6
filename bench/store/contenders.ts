import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import pg from 'pg'

import type { Runtime } from '../../src/runtime.ts'
import { sql } from '../../src/store/sql.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { run, single } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { openProduct } from '../product.ts'

export interface Contender {
  readonly name: string
  /** Performs `rows` rows and returns rows a second. */
  round(rows: number): Promise<number>
  close(): Promise<void> | void
}

const COLUMNS = '(id text primary key, run_id text not null, payload text not null)'
const payload = JSON.stringify({ tool: 'ledger_append', input: { entry: 'x'.repeat(380) } })
let serial = 0
const nextId = () => `bench_${String(++serial).padStart(12, '0')}`

function* insertRow(id: string): Transition<number> {
  return yield* run(sql`insert into bench (id, run_id, payload) values (${id}, ${'run'}, ${payload})`)
}
const insertSingle = single((id: string) =>
  run(sql`insert into bench (id, run_id, payload) values (${id}, ${'run'}, ${payload})`),
)

async function timed(rows: number, work: () => Promise<void>): Promise<number> {
  const start = performance.now()
  await work()
  return rows / ((performance.now() - start) / 1_000)
}

/** One caller after the other, `batch` rows a commit, written by hand. */
export function rawSqlite(folder: string, name: string, batch: number): Contender {
  const database = new DatabaseSync(join(folder, `${name}.db`))
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 4000')
  database.exec(`create table bench ${COLUMNS} strict`)
  const insert = database.prepare('insert into bench (id, run_id, payload) values (?, ?, ?)')
  const write = (count: number) => {
    if (count === 1) return void insert.run(nextId(), 'run', payload)
    database.exec('begin immediate')
    for (let i = 0; i < count; i++) insert.run(nextId(), 'run', payload)
    database.exec('commit')
  }
  return {
    name,
    round: (rows) =>
      timed(rows, async () => {
        for (let done = 0; done < rows; done += batch) {
          write(Math.min(batch, rows - done))
          // The same chance for the rest of the process to run as the store gives it.
          await new Promise((resolve) => setImmediate(resolve))
        }
      }),
    close: () => database.close(),
  }
}

/** The same statements, prepared and pipelined, `batch` of them a commit, written by hand. */
export async function rawPostgres(url: string, name: string, batch: number): Promise<Contender> {
  const client = new pg.Client({ connectionString: url, pipeline: true })
  client.on('error', () => {})
  await client.connect()
  const table = name.replaceAll('-', '_')
  await client.query(`create table ${table} ${COLUMNS}`)
  const insert = () =>
    client.query({
      name: 'i',
      text: `insert into ${table} (id, run_id, payload) values ($1, $2, $3)`,
      values: [nextId(), 'run', payload],
    })
  const write = async (count: number) => {
    if (count === 1) return void (await insert())
    await Promise.all([client.query('begin'), ...Array.from({ length: count }, insert), client.query('commit')])
  }
  return {
    name,
    round: (rows) =>
      timed(rows, async () => {
        for (let done = 0; done < rows; done += batch) await write(Math.min(batch, rows - done))
      }),
    close: () => client.end(),
  }
}

/** The store alone, without what the product puts between it and its texts. */
export async function bareSqliteStore(folder: string, name: string, callers: number): Promise<Contender> {
  const path = join(folder, `${name}.db`)
  const store = await openSqliteStore({ path })
  makeTable(path)
  return storeContender({ store, close: () => store.close() }, name, callers, 'transition')
}

function makeTable(path: string): void {
  const side = new DatabaseSync(path)
  side.exec(`create table bench ${COLUMNS} strict`)
  side.close()
}

export async function sqliteStore(folder: string, name: string, callers: number, kind: Kind): Promise<Contender> {
  const home = join(folder, name)
  const runtime = await openProduct(home)
  makeTable(join(home, 'holdfast.db'))
  return storeContender(runtime, name, callers, kind)
}

export async function postgresStore(
  { folder, url }: { readonly folder: string; readonly url: string },
  name: string,
  callers: number,
  kind: Kind,
): Promise<Contender> {
  const schema = `bench_${name.replaceAll('-', '_')}`
  const store = `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`
  const runtime = await openProduct(join(folder, name), store)
  const side = new pg.Client(url)
  await side.connect()
  await side.query(`create table ${schema}.bench ${COLUMNS}`)
  await side.end()
  return storeContender(runtime, name, callers, kind)
}

type Kind = 'single' | 'transition'

function storeContender(
  runtime: Pick<Runtime, 'store' | 'close'>,
  name: string,
  callers: number,
  kind: Kind,
): Contender {
  const { store } = runtime
  const write = () => (kind === 'single' ? store.apply(insertSingle, nextId()) : store.apply(insertRow, nextId()))
  const caller = async (count: number) => {
    for (let i = 0; i < count; i++) await write()
  }
  return {
    name,
    round: (rows) =>
      timed(rows, async () => {
        await Promise.all(Array.from({ length: callers }, () => caller(Math.floor(rows / callers))))
      }),
    close: () => runtime.close(),
  }
}
