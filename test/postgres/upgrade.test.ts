import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { MIGRATIONS } from '../../src/store/migrations/index.ts'
import { migratePostgres } from '../../src/store/postgres/migrate.ts'
import { parsePostgresUrl } from '../../src/store/postgres/settings.ts'
import { ROWS, fillingRow } from '../migration/filled.ts'
import { engines } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'

const postgres = engines.find(({ name }) => name === 'postgres')!

async function aSchema() {
  const { url } = await postgres.database()
  const { pool: settings, schema } = parsePostgresUrl(url)
  const pool = new pg.Pool({ ...settings, max: 1 })
  onTestFinished(() => pool.end())
  // As if nobody had ever opened it.
  await pool.query(`drop schema if exists ${schema} cascade`)
  const ask = async (text: string) => (await pool.query<Record<string, unknown>>(text)).rows
  return { pool, schema, ask }
}

type Schema = Awaited<ReturnType<typeof aSchema>>

/** Columns, indices and constraints, without the order in which columns came and the name of the schema. */
async function described({ ask, schema }: Schema): Promise<unknown> {
  const columns = await ask(`select table_name, column_name, data_type, is_nullable, column_default
    from information_schema.columns where table_schema = '${schema}' order by 1, 2`)
  const indices = await ask(`select indexname, indexdef from pg_indexes where schemaname = '${schema}' order by 1`)
  const constraints = await ask(`select conrelid::regclass::text as on_table, conname, pg_get_constraintdef(oid) as says
    from pg_constraint where connamespace = '${schema}'::regnamespace order by 1, 2`)
  return JSON.parse(JSON.stringify({ columns, indices, constraints }).replaceAll(`${schema}.`, ''))
}

const tablesOf = async ({ ask, schema }: Schema) =>
  (
    await ask(`select table_name from information_schema.tables where table_schema = '${schema}'
    and table_name not in ('schema_migrations', 'writers') and table_type = 'BASE TABLE' order by 1`)
  ).map((row) => String(row['table_name']))

const ONE_COLUMN = /^CHECK \(\(\(?(\w+)\)?(?:::text)? = ANY \(.*?'([^']*)'/g

async function fill(place: Schema): Promise<void> {
  const { ask, schema } = place
  await ask(ROWS)
  // Rows that refer to others are made up too: the order of the tables need not be known.
  await ask(`set session_replication_role = replica`)
  for (const table of await tablesOf(place)) {
    if ((await ask(`select 1 from ${table}`)).length > 0) continue
    const columns = await ask(`select column_name, data_type, is_nullable, column_default, is_identity
      from information_schema.columns where table_schema = '${schema}' and table_name = '${table}'`)
    const checks = await ask(`select pg_get_constraintdef(oid) as says from pg_constraint
      where contype = 'c' and conrelid = '${schema}.${table}'::regclass`)
    // The first word that a check has for a column: `CHECK ((state = ANY (ARRAY['a', …`, or the first case of one for the whole row.
    const words = checks.flatMap(({ says }) => {
      const about = String(says).includes('CASE') ? /\((\w+) = (?:ANY \()?'\{?(\w+)/g : ONE_COLUMN
      return [...String(says).matchAll(about)].map(([, column, word]) => [column!, word!] as const).toReversed()
    })
    const filled = columns.map((column) => ({
      name: String(column['column_name']),
      type: String(column['data_type']),
      required: column['is_nullable'] === 'NO' && column['column_default'] === null && column['is_identity'] === 'NO',
    }))
    await ask(fillingRow(table, filled, new Map(words)))
  }
  await ask('reset session_replication_role')
}

const contentOf = ({ ask }: Schema, tables: readonly string[]) =>
  Promise.all(tables.map((table) => ask(`select * from ${table}`)))

// One after another in one test: a schema is soon made, but each is made from nothing.
test('a schema of the first migrations, any number of them, upgraded, is like a fresh one and keeps its rows', async () => {
  const fresh = await aSchema()
  await migratePostgres(fresh.pool, fresh.schema)
  const expected = await described(fresh)
  for (const k of MIGRATIONS.map((_, index) => index + 1)) {
    const old = await aSchema()
    await migratePostgres(old.pool, old.schema, MIGRATIONS.slice(0, k))
    await fill(old)
    const tables = await tablesOf(old)
    expect(tables.length).toBeGreaterThanOrEqual(8 + k)
    const before = await contentOf(old, tables)
    expect(before.map((rows) => rows.length)).toEqual(tables.map(() => 1))
    await migratePostgres(old.pool, old.schema)
    expect(await described(old), `from ${k}`).toEqual(expected)
    expect(await contentOf(old, tables), `from ${k}`).toMatchObject(before)
  }
})

test('what cannot be is refused by the database itself, though it reads one check a table', async () => {
  const place = await aSchema()
  await migratePostgres(place.pool, place.schema)
  await fill(place)
  const cannotBe = [
    `runs set state = 'lost', ended_at = null`,
    `runs set state = 'running', ended_at = 1`,
    `runs set state = 'succeeded', ended_at = null`,
    `runs set state = 'succeeded', ended_at = 1, cancel_requested_at = 1`,
    `runs set state = 'failed', ended_at = 1, cancel_requested_at = 1`,
    `runs set kind = 'other'`,
    `runs set parent_mode = 'other'`,
    `runs set workspace = 'other'`,
    `attempts set outcome = 'lost', ended_at = 1`,
    `attempts set outcome = null, ended_at = 1`,
    `attempts set outcome = 'failed', ended_at = null`,
    `steps set effect = 'other'`,
    `steps set state = 'lost', settled_at = 1`,
    `steps set state = 'started', settled_at = 1`,
    `steps set state = 'done', settled_at = null`,
  ]
  for (const change of cannotBe) await expect(place.ask(`update ${change}`), change).rejects.toThrow('_says')
  const canBe = [
    `runs set state = 'cancelled', ended_at = 1, cancel_requested_at = 1`,
    `runs set state = 'succeeded', ended_at = 1, cancel_requested_at = null, parent_mode = null, workspace = null`,
    `attempts set outcome = 'superseded', ended_at = 1`,
    `attempts set outcome = null, ended_at = null`,
    `steps set state = 'in_doubt', settled_at = 1`,
  ]
  for (const change of canBe) await place.ask(`update ${change}`)
})

/** What a worker that is up may do next, after it has changed a run. */
const GOING_ON: Readonly<Record<string, string>> = {
  'its attempt': `insert into attempts (id, run_id, number, fence, worker_id, mark, slots, claimed_at, lease_until)
    values ('y', 'r', 2, 2, 'w', 'm', '[]', 1, 2)`,
  'its thread': `update threads set agent = agent where id = 't'`,
}

test.each(Object.entries(GOING_ON))(
  'a worker that goes on with %s does not keep a database from its upgrade',
  async (_, next) => {
    const place = await aSchema()
    await migratePostgres(place.pool, place.schema, MIGRATIONS.slice(0, 19))
    await place.ask(ROWS)
    await place.ask(`update attempts set ended_at = 1, outcome = 'parked'`)
    const { pool: settings } = parsePostgresUrl((await postgres.database()).url)
    const worker = new pg.Client({ ...settings, options: `-c search_path=${place.schema}` })
    await worker.connect()
    onTestFinished(() => worker.end())
    await worker.query('begin')
    await worker.query(`update runs set fence = 2 where id = 'r'`)
    const upgraded = migratePostgres(place.pool, place.schema)
    await until('the upgrade waits', async () => {
      const { rows } = await worker.query(
        `select 1 from pg_locks where not granted and relation = '${place.schema}.runs'::regclass`,
      )
      return rows.length === 1 || undefined
    })
    await worker.query(next)
    await worker.query('commit')
    await upgraded
    expect((await place.ask(`select number from schema_migrations`)).length).toBe(MIGRATIONS.length)
  },
)
