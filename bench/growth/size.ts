/** How much room a store takes on disk. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import pg from 'pg'

import type { Home } from '../product.ts'

/** In bytes; what lies in SQLite's log is written into the file first. */
export async function bytesOf(at: Home): Promise<number> {
  if (at.engine === 'sqlite') {
    const path = join(at.home, 'holdfast.db')
    const database = new DatabaseSync(path, { timeout: 5_000 })
    database.exec('pragma wal_checkpoint(truncate)')
    database.close()
    return statSync(path).size
  }
  const [row] = await queryOn(
    at,
    `select sum(pg_total_relation_size(c.oid)) as bytes from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = current_schema() and c.relkind = 'r'`,
  )
  return Number(row?.['bytes'])
}

/** Bytes of the log that PostgreSQL has written, all together. */
export async function walOf(at: Home): Promise<number> {
  const [row] = await queryOn(at, `select pg_current_wal_lsn() - '0/0'::pg_lsn as bytes`)
  return Number(row?.['bytes'])
}

/** So that what was removed can be used again, as autovacuum does it after a while. */
export async function tidyUp(at: Home): Promise<void> {
  if (at.engine === 'postgres') await queryOn(at, 'vacuum')
}

async function queryOn({ store }: Home, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(store)
  await client.connect()
  try {
    await client.query(`set search_path to ${new URL(store!).searchParams.get('schema')}`)
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}
