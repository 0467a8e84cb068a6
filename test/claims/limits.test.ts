import { DatabaseSync } from 'node:sqlite'

import pg from 'pg'
import { expect, inject, test } from 'vitest'

import { recorded } from '../../bench/limits/bench.ts'
import { fileOf } from '../../bench/limits/cases.ts'
import { withHome } from '../../bench/limits/home.ts'
import { recordPostgres, replayPostgres } from '../../bench/limits/postgres.ts'
import { recordSqlite, replaySqlite } from '../../bench/limits/sqlite.ts'
import { AnotherWay, Stopwatch } from '../../bench/limits/watch.ts'
import * as workloads from '../../bench/limits/workloads.ts'
import type { Home } from '../../bench/product.ts'
import { temporaryFolder } from '../support/engines.ts'

/*
 * The limits that the page of the speed names are those of the same work: what the product asked of its database leaves the same rows in
 * every table when it is asked again without the product.
 */

const newPlace = () => ({ folder: temporaryFolder(), postgres: async () => inject('postgres') })

type Tables = Readonly<Record<string, readonly object[]>>

function tablesOfSqlite(home: Home): Tables {
  const database = new DatabaseSync(fileOf(home), { readOnly: true })
  const names = database.prepare(`select name from sqlite_schema where type = 'table'`).all()
  const tables = names.map(({ name }) => [name, database.prepare(`select * from "${String(name)}"`).all()])
  database.close()
  return Object.fromEntries(tables) as Tables
}

async function tablesOfPostgres({ store }: Home): Promise<Tables> {
  const client = new pg.Client(store)
  await client.connect()
  const { rows: names } = await client.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'holdfast'`,
  )
  const tables: Record<string, object[]> = {}
  for (const { name } of names) tables[name] = (await client.query<object>(`select * from holdfast.${name}`)).rows
  await client.end()
  return tables
}

/** Without the server's own clock, and the numbers that it gives: of commits at the same time either may be the first. */
const withoutItsOwn = (tables: Tables): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries(
    Object.entries(tables).map(([name, rows]) => [
      name,
      rows.map((row) => JSON.stringify({ ...row, seq: 0 }).replaceAll(/\b(?:1[789]|2\d)\d{11}\b/g, 'then')).toSorted(),
    ]),
  )

const [FLOWS, STEPS] = [3, 10]

test('what the product asks of SQLite leaves the same rows when it is asked without it', async () => {
  const place = newPlace()
  const [recording, tables] = await withHome(place, 'sqlite', async (home) => {
    const made = await recordSqlite((watch) => workloads.steps(home, FLOWS, STEPS, watch))
    return [made, tablesOfSqlite(home)] as const
  })
  expect(tables['steps']).toHaveLength(2 * FLOWS * STEPS)
  const watch = new Stopwatch()
  const again = await withHome(place, 'sqlite', async (home) => {
    await replaySqlite(recording, fileOf(home), watch)
    return tablesOfSqlite(home)
  })
  expect(again).toEqual(tables)
  expect(watch.laps).toHaveLength(1)
  const other = recording.filter((entry) => !('text' in entry && entry.text.includes('into attempts')))
  await expect(
    withHome(place, 'sqlite', (home) => replaySqlite(other, fileOf(home), new Stopwatch())),
  ).rejects.toBeInstanceOf(AnotherWay)
})

test('what the product asks of PostgreSQL leaves the same rows when it is asked without it', async () => {
  const place = newPlace()
  const [recording, tables] = await withHome(place, 'postgres', async (home) => {
    const made = await recordPostgres((watch) => workloads.steps(home, FLOWS, STEPS, watch))
    return [made, await tablesOfPostgres(home)] as const
  })
  expect(tables['steps']).toHaveLength(2 * FLOWS * STEPS)
  const again = await withHome(place, 'postgres', async (home) => {
    await replayPostgres(recording, home.store!, new Stopwatch())
    return tablesOfPostgres(home)
  })
  expect(withoutItsOwn(again)).toEqual(withoutItsOwn(tables))
})

test('jobs that were claimed on several connections are claimed and ended again, whichever of them each claim gets', async () => {
  const [place, jobs] = [newPlace(), 300]
  const replay = await withHome(place, 'postgres', (home) =>
    recorded({ engine: 'postgres', product: (where, watch) => workloads.drain(where, jobs, watch) }, home),
  )
  const { runs, attempts, events } = await withHome(place, 'postgres', async (home) => {
    await replay(home, new Stopwatch())
    return tablesOfPostgres(home)
  })
  const ended = (runs as { state: string }[]).filter(({ state }) => state === 'succeeded')
  expect(ended.length).toBeGreaterThanOrEqual(jobs)
  expect((attempts as { outcome: string | null }[]).filter(({ outcome }) => outcome === 'succeeded')).toHaveLength(
    ended.length,
  )
  expect((events as { type: string }[]).filter(({ type }) => type === 'run.finished')).toHaveLength(ended.length)
})
