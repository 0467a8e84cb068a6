import { beside, defineBench, median } from '../bench.ts'
import type { Place, Row } from '../bench.ts'
import { bareSqliteStore, postgresStore, rawPostgres, rawSqlite, sqliteStore } from './contenders.ts'
import type { Contender } from './contenders.ts'

const CALLERS = 64

/** Rounds of the contenders alternate, so that a noisy machine is noisy for all; medians of rows a second. */
async function compare(rounds: number, rows: number, contenders: Contender[]): Promise<Record<string, number>> {
  const rates = new Map(contenders.map((contender) => [contender.name, [] as number[]]))
  for (let round = 0; round <= rounds; round++) {
    const order = round % 2 === 0 ? contenders : contenders.toReversed()
    for (const contender of order) {
      const rate = await contender.round(rows)
      // The first round warms caches and the compiler.
      if (round > 0) rates.get(contender.name)?.push(rate)
    }
  }
  for (const contender of contenders) await contender.close()
  return Object.fromEntries([...rates].map(([name, values]) => [name, median(values)]))
}

const cost = (name: string, ours: number | undefined, raw: number | undefined, most?: number) =>
  beside(name, 'ms a row', 1_000 / ours!, 1_000 / raw!, most === undefined ? undefined : { most })

async function onSqlite(rounds: number, { folder }: Place): Promise<Row[]> {
  const one = await compare(rounds, 600, [
    rawSqlite(folder, 'raw-1', 1),
    await bareSqliteStore(folder, 'bare-1', 1),
    await sqliteStore(folder, 'store-1', 1, 'transition'),
    await sqliteStore(folder, 'store-1-single', 1, 'single'),
  ])
  const many = await compare(rounds, CALLERS * 200, [
    rawSqlite(folder, 'raw-64', CALLERS),
    await bareSqliteStore(folder, 'bare-64', CALLERS),
    await sqliteStore(folder, 'store-64', CALLERS, 'transition'),
    await sqliteStore(folder, 'store-64-single', CALLERS, 'single'),
  ])
  return [
    cost('SQLite, the store alone, 1 caller, transition', one['bare-1'], one['raw-1'], 1.3),
    cost('SQLite, 1 caller, transition', one['store-1'], one['raw-1'], 1.3),
    cost('SQLite, 1 caller, single statement', one['store-1-single'], one['raw-1']),
    beside('SQLite, the store alone, 64 callers', 'rows/s', many['bare-64']!, many['raw-64']!, { least: 0.7 }),
    beside('SQLite, 64 callers, transition', 'rows/s', many['store-64']!, many['raw-64']!, { least: 0.7 }),
    beside('SQLite, 64 callers, single statement', 'rows/s', many['store-64-single']!, many['raw-64']!),
  ]
}

async function onPostgres(rounds: number, place: Place): Promise<Row[]> {
  const url = await place.postgres()
  const at = { url, folder: place.folder }
  const one = await compare(rounds, 200, [
    await rawPostgres(url, 'pg-raw-1', 1),
    await postgresStore(at, 'pg-store-1', 1, 'transition'),
    await postgresStore(at, 'pg-store-1-single', 1, 'single'),
  ])
  const many = await compare(rounds, CALLERS * 50, [
    await rawPostgres(url, 'pg-raw-64', CALLERS),
    await postgresStore(at, 'pg-store-64', CALLERS, 'transition'),
    await postgresStore(at, 'pg-store-64-single', CALLERS, 'single'),
  ])
  return [
    cost('PostgreSQL, 1 caller, transition', one['pg-store-1'], one['pg-raw-1']),
    cost('PostgreSQL, 1 caller, single statement', one['pg-store-1-single'], one['pg-raw-1']),
    beside('PostgreSQL, 64 callers, transition', 'rows/s', many['pg-store-64']!, many['pg-raw-64']!, { least: 0.6 }),
    beside('PostgreSQL, 64 callers, single statement', 'rows/s', many['pg-store-64-single']!, many['pg-raw-64']!),
  ]
}

/** The store beside the raw drivers on the same rows, durability on. */
export const bench = defineBench({
  name: 'store',
  what: 'a transition against a hand-written commit, one caller and 64',
  full: { rounds: 9 },
  quick: { rounds: 3 },
  run: async ({ rounds }, place) => [
    ...(place.engines.includes('sqlite') ? await onSqlite(rounds, place) : []),
    ...(place.engines.includes('postgres') ? await onPostgres(rounds, place) : []),
  ],
})
