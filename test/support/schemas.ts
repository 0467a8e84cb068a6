import { randomBytes } from 'node:crypto'

import pg from 'pg'
import { inject } from 'vitest'

import { TABLES } from './tables.ts'
import { letGo } from './warm-connections.ts'

/**
 * A new schema costs PostgreSQL 115 ms (measured: 90 to make, 25 to drop), an emptied one 10. So those that nobody but the
 * test itself had open are emptied and used again, by this worker.
 */
const spare: string[] = []

/** Its rows are not gone before a vacuum, and everything that reads them gets slower. */
const MOST_USES = 40
const MOST_ROWS = 2_000
const uses = new Map<string, number>()

/** Those whose clock is ours; without a row in `test_clock` it is the time of day. */
const clocked = new Set<string>()

const SERIALS = ['runs', 'messages', 'events', 'entries']

/** A schema that is empty, with the tables or not yet there. */
export function spareSchema(): string {
  const schema = spare.pop() ?? `t_${randomBytes(8).toString('hex')}`
  uses.set(schema, (uses.get(schema) ?? 0) + 1)
  return schema
}

/** Makes it a spare one. What cannot be emptied at once (a lock that somebody kept) is dropped, whenever that is possible. */
export async function wipeSchema(schema: string): Promise<void> {
  if (uses.get(schema)! >= MOST_USES) return dropSchema(schema)
  try {
    const answers = await keep(emptying(schema))
    const rows = answers.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0)
    if (rows > MOST_ROWS) dropSchema(schema)
    else spare.push(schema)
  } catch {
    dropSchema(schema)
  }
}

/** Nobody waits for it: the name is never used again. */
export function dropSchema(schema: string): void {
  letGo(schema)
  keep(`drop schema if exists ${schema} cascade`).catch(() => {})
}

/** Statements for the content of one schema in another. */
export function copyOf(from: string, to: string): string {
  const tables = TABLES.map(
    (table) => `insert into ${to}.${table} overriding system value select * from ${from}.${table};`,
  )
  const next = (table: string) => `(select coalesce(max(seq), 0) + 1 from ${to}.${table})`
  return [...tables, ...SERIALS.map((table) => setSerial(to, table, next(table)))].join('\n')
}

const setSerial = (schema: string, table: string, value: string) =>
  `select setval(pg_get_serial_sequence('${schema}.${table}', 'seq'), ${value}, false);`

function emptying(schema: string): string {
  const tables = [...TABLES, 'writers', ...(clocked.has(schema) ? ['test_clock'] : [])]
  return [
    // All of it is one message, and so one transaction.
    `set local lock_timeout to '1s';`,
    // The references between them do not matter if all go.
    'set local session_replication_role to replica;',
    ...tables.map((table) => `delete from ${schema}.${table};`),
    ...SERIALS.map((table) => setSerial(schema, table, '1')),
  ].join('\n')
}

/** What the schema's `now_ms()` says from now on. */
export async function setClock(schema: string, now: number): Promise<void> {
  if (!clocked.has(schema)) {
    await keep(`create table ${schema}.test_clock (now bigint);
      create or replace function ${schema}.now_ms() returns bigint language sql volatile as $$
        select coalesce((select now from ${schema}.test_clock), (extract(epoch from clock_timestamp()) * 1000)::bigint) $$`)
    clocked.add(schema)
  }
  await keep(`delete from ${schema}.test_clock; insert into ${schema}.test_clock values (${now})`)
}

let keeper: Promise<pg.Client> | undefined

interface Answer {
  readonly rowCount: number | null
  readonly rows?: Record<string, unknown>[]
}

/** One connection for all that the tests of this worker do beside the stores. */
export async function keep(text: string): Promise<readonly Answer[]> {
  keeper ??= connected()
  // Several statements have several answers.
  const answers: unknown = await (await keeper).query(text)
  return (Array.isArray(answers) ? answers : [answers]) as Answer[]
}

async function connected(): Promise<pg.Client> {
  const client = new pg.Client(inject('postgres').replace(/\?.*/, ''))
  // The server ends before the worker does.
  client.on('error', () => (keeper = undefined))
  await client.connect()
  // It keeps no worker alive; only the types do not know of it.
  ;(client as unknown as { unref(): void }).unref()
  return client
}
