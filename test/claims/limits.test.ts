import { randomUUIDv7 } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'

import pg from 'pg'
import { expect, inject, test } from 'vitest'

import { recorded } from '../../bench/limits/bench.ts'
import { fileOf } from '../../bench/limits/cases.ts'
import { withHome } from '../../bench/limits/home.ts'
import { Rows } from '../../bench/peers/rows.ts'
import { againstLimit } from '../../bench/page/limits.ts'
import type { Checked } from '../../bench/page/targets.ts'
import { recordPostgres, replayPostgres } from '../../bench/limits/postgres.ts'
import type { PostgresRecording } from '../../bench/limits/postgres.ts'
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

type Place = ReturnType<typeof newPlace>

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
/** One after the other: where two calls are stored at once, either may get the lower number, and is known by it later. */
const ALONE = 1

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

/** A call that comes while a worker has its first look is claimed by one of two looks that are under way at once, now by the one and now by the other. */
const hasClaimed = ({ entries }: PostgresRecording) =>
  entries.some((entry) => entry.kind === 'packet' && entry.requests.some(({ claimed = [] }) => claimed.length > 0))

async function recordedWithoutClaims(place: Place) {
  for (let tries = 20; tries > 0; tries -= 1) {
    const made = await withHome(place, 'postgres', async (home) => {
      const recording = await recordPostgres((watch) => workloads.steps(home, ALONE, STEPS, watch))
      return { recording, tables: await tablesOfPostgres(home) }
    })
    if (!hasClaimed(made.recording)) return made
  }
  throw new Error('no call was stored with its claim')
}

test('what the product asks of PostgreSQL leaves the same rows when it is asked without it', async () => {
  const place = newPlace()
  const { recording, tables } = await recordedWithoutClaims(place)
  expect(tables['steps']).toHaveLength(2 * ALONE * STEPS)
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

/** Ids and instants are each time others, and who wrote a batch has another name. */
const alike = (rows: readonly object[] = []): string[] =>
  rows.map((row) =>
    JSON.stringify(row)
      .replaceAll(/\b(run|att|wrk)_[0-9a-f]{32}\b/g, '$1')
      .replaceAll(/\b(?:1[789]|2\d)\d{11}\b/g, 'then'),
  )

test('the rows by hand, beside which the speed of a step is shown, are those that the product keeps', async () => {
  const place = newPlace()
  const byProduct = await withHome(place, 'sqlite', async (home) => {
    await workloads.steps(home, ALONE, STEPS, new Stopwatch())
    return tablesOfSqlite(home)
  })
  const byHand = await withHome(place, 'sqlite', async (home) => {
    await workloads.steps(home, 0, STEPS, new Stopwatch())
    const database = new DatabaseSync(fileOf(home), { enableForeignKeyConstraints: true })
    const { workers = [] } = tablesOfSqlite(home) as Record<string, readonly { id: string }[]>
    database.exec(`insert into threads (id, agent, created_at) values ('calls:flow', 'flow', 1760000000000)`)
    const rows = new Rows(database, () => randomUUIDv7().replaceAll('-', ''), workers[0]!.id)
    for (let flow = 0; flow < 2 * ALONE; flow += 1) await rows.run('x', STEPS, (_, index) => ({ ok: index }))
    database.close()
    return tablesOfSqlite(home)
  })
  for (const table of ['steps', 'attempts']) expect(alike(byHand[table]), table).toEqual(alike(byProduct[table]))
  const told = ({ events }: Tables) =>
    (events as { type: string; data: string }[]).filter(({ type }) => /^(run|step)\./.test(type))
  const without = (rows: readonly object[]) => rows.map((row) => ({ ...row, seq: 0, input: '', result: '' }))
  expect(alike(without(byHand['runs']!))).toEqual(alike(without(byProduct['runs']!)))
  expect(alike(without(told(byHand)))).toEqual(alike(without(told(byProduct))))
})

const missedBy = (measured: number, needs: number, target: string): Checked => ({
  workload: 'W1',
  engine: 'SQLite',
  what: 'steps',
  measured,
  unit: '/s',
  beside: undefined,
  ratio: undefined,
  target,
  needs,
  met: false,
  runs: { met: 0, of: 0 },
})
const limit = { name: '', unit: '/s', value: 100, statements: 150, raw: 400, better: 'high' as const }

test('a target is called out of reach only where the statements alone do not reach it', () => {
  const words = againstLimit([missedBy(1_000, 1_400, 'A'), missedBy(1_000, 1_600, 'B')], limit, 'the wheels')
  expect(words).toContain('1.50 times as many ([limits](#limits)): here to 1,500/s.')
  expect(words).toContain(
    'The statements alone would reach “A” (1,400/s); between them and the product are the wheels.',
  )
  expect(words).toContain('Out of reach with these rows is “B”: it asks for 1,600/s')
  expect(words).toContain('The best to be had is less than 1,500/s.')
  const time = { ...limit, unit: 'ms', statements: 60, better: 'low' as const }
  expect(againstLimit([missedBy(1_000, 700, 'A')], time, 'the wheels')).toContain('would reach the target')
  expect(againstLimit([missedBy(1_000, 500, 'A')], time, 'the wheels')).toContain('Out of reach with these rows')
})

test('an engine that costs nothing promises nothing better', () => {
  const words = againstLimit([missedBy(1_000, 1_400, 'A')], { ...limit, statements: 90 }, 'the wheels')
  expect(words).toContain('take as long')
  expect(words).toContain('The best to be had is what is measured.')
})
