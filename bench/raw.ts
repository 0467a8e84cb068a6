/** The limit: one row of the size of a step, committed and synced, with nothing around it. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import pg from 'pg'

import type { Engine, Place } from './bench.ts'

const payload = JSON.stringify({ ok: 1, padding: 'x'.repeat(80) })

export interface RawCommit {
  /** One commit of so many rows; what it took, in ms. */
  commit(rows: number): Promise<number>
  close(): Promise<void>
}

export const openRaw = (place: Place, engine: Engine): Promise<RawCommit> =>
  engine === 'sqlite' ? rawSqlite(place.folder) : rawPostgres(place)

let serial = 0

async function rawSqlite(folder: string): Promise<RawCommit> {
  const database = new DatabaseSync(join(folder, `raw-${(serial += 1)}.db`))
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 4000')
  database.exec('create table steps (id integer primary key, payload text not null) strict')
  const insert = database.prepare('insert into steps (payload) values (?)')
  return {
    async commit(rows) {
      const from = performance.now()
      if (rows > 1) database.exec('begin immediate')
      for (let row = 0; row < rows; row += 1) insert.run(payload)
      if (rows > 1) database.exec('commit')
      return performance.now() - from
    },
    close: async () => database.close(),
  }
}

async function rawPostgres(place: Place): Promise<RawCommit> {
  const client = new pg.Client({ connectionString: await place.postgres(), pipeline: true })
  client.on('error', () => {})
  await client.connect()
  const table = `raw_${(serial += 1)}`
  await client.query(`create table ${table} (id bigserial primary key, payload text not null)`)
  const insert = () =>
    client.query({ name: 'i', text: `insert into ${table} (payload) values ($1)`, values: [payload] })
  return {
    async commit(rows) {
      const from = performance.now()
      if (rows === 1) await insert()
      else await Promise.all([client.query('begin'), ...Array.from({ length: rows }, insert), client.query('commit')])
      return performance.now() - from
    },
    close: () => client.end(),
  }
}
