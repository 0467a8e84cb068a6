import type { Pool, PoolClient } from 'pg'

import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { MIGRATIONS } from '../migrations/index.ts'
import { appliedMigrations, checksumOf, pendingMigrations } from '../migrations/history.ts'
import { POSTGRES } from '../migrations/migration.ts'
import type { Migration } from '../migrations/migration.ts'
import { sqlState } from './errors.ts'

/** 14 is the oldest that the PostgreSQL project itself still looks after. */
const OLDEST_SERVER = 140_000

/** They take every character. A result with one that the database lacks could never be recorded. */
const WHOLE = new Set(['UTF8', 'SQL_ASCII'])

/**
 * Time comes from the database, through this one function, so that leases and due times of many machines share a clock.
 * A test replaces it to own the clock.
 */
const CLOCK = `create function now_ms() returns bigint language sql volatile parallel safe
  as $$ select (extract(epoch from clock_timestamp()) * 1000)::bigint $$`

/** Our column, table or function is not what is there under its name. */
const FOREIGN = new Set(['42703', '42P07', '42723'])

/** Daemons that are up lock the tables in another order; who of them meets the migration there may be the one that goes on. */
const MOST_TRIES = 5

/** Brings the schema up to date: one transaction, under a lock, so that of many machines that start together one does it. */
export async function migratePostgres(
  pool: Pool,
  schema: string,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await migrateOnce(pool, schema, migrations)
    } catch (error) {
      if (sqlState(error) !== '40P01' || tried === MOST_TRIES) throw error
    }
  }
}

async function migrateOnce(pool: Pool, schema: string, migrations: readonly Migration[]): Promise<void> {
  const client = await pool.connect()
  try {
    await refuseUnfit(client)
    if (await isCurrent(client, schema, migrations)) return await forgetOldWriters(client, schema)
    await client.query('begin')
    await client.query(`set local search_path to ${schema}`)
    await client.query('set local lock_timeout to 0')
    await client.query('select pg_advisory_xact_lock(hashtext($1))', [`holdfast.migrate.${schema}`])
    await applyPending(client, schema, migrations)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw FOREIGN.has(sqlState(error) ?? '') ? foreignSchema(schema, error) : error
  } finally {
    client.release()
  }
}

async function applyPending(client: PoolClient, schema: string, migrations: readonly Migration[]): Promise<void> {
  if (!(await exists(client, schema))) await client.query(`create schema if not exists ${schema}`)
  if (!(await exists(client, schema, 'schema_migrations'))) await createEngineTables(client)
  for (const migration of await pending(client, schema, migrations)) {
    for (const statement of migration.statements(POSTGRES)) await client.query(statement)
    await client.query(
      'insert into schema_migrations (number, name, checksum, applied_at) values ($1, $2, $3, now_ms())',
      [migration.number, migration.name, checksumOf(migration, POSTGRES)],
    )
  }
}

async function forgetOldWriters(client: PoolClient, schema: string): Promise<void> {
  await client.query(`delete from ${schema}.writers where used_at < ${schema}.now_ms() - $1`, [LIMITS.writersKeptMs])
}

async function createEngineTables(client: PoolClient): Promise<void> {
  await client.query(CLOCK)
  await client.query(`create table schema_migrations (
    number bigint primary key, name text not null, checksum text not null, applied_at bigint not null)`)
  await client.query('create table writers (id text primary key, batch bigint not null, used_at bigint not null)')
}

async function isCurrent(client: PoolClient, schema: string, migrations: readonly Migration[]): Promise<boolean> {
  if (!(await exists(client, schema, 'schema_migrations'))) return false
  return (await pending(client, schema, migrations)).length === 0
}

async function pending(
  client: PoolClient,
  schema: string,
  migrations: readonly Migration[],
): Promise<readonly Migration[]> {
  const { rows } = await client.query(
    appliedMigrations.sql.strings[0]!.replace('schema_migrations', `${schema}.schema_migrations`),
  )
  return pendingMigrations(appliedMigrations.read({ rows, changes: 0 }), migrations, POSTGRES)
}

async function exists(client: PoolClient, schema: string, table?: string): Promise<boolean> {
  const { rowCount } =
    table === undefined
      ? await client.query('select 1 from pg_namespace where nspname = $1', [schema])
      : await client.query('select 1 from pg_tables where schemaname = $1 and tablename = $2', [schema, table])
  return rowCount === 1
}

function foreignSchema(schema: string, cause: unknown): HoldfastError {
  return new HoldfastError('store/foreign', `the schema ${schema} holds the tables of another program`, {
    remedy: 'choose another with ?schema= in HOLDFAST_STORE; this one was left as it is',
    cause,
  })
}

async function refuseUnfit(client: PoolClient): Promise<void> {
  const { rows } = await client.query<{ version: string; encoding: string }>(
    `select current_setting('server_version_num') as version, current_setting('server_encoding') as encoding`,
  )
  const [version, encoding] = [Number(rows[0]?.version), String(rows[0]?.encoding)]
  if (!(version >= OLDEST_SERVER))
    throw new HoldfastError('store/old-postgres', `this is PostgreSQL ${Math.floor(version / 10_000)}`, {
      remedy: `use PostgreSQL ${OLDEST_SERVER / 10_000} or newer`,
    })
  if (!WHOLE.has(encoding))
    throw new HoldfastError('store/encoding', `this database is in ${encoding}, which lacks characters`, {
      remedy: `create one that has them all (create database NAME encoding 'UTF8' template template0), and name it in HOLDFAST_STORE`,
    })
}
