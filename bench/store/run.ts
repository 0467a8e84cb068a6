/**
 * The store beside the raw drivers on the same rows, durability on, in one run. Rounds of the contenders alternate, so
 * that a noisy machine is noisy for all; what counts is the ratio of medians.
 *
 *   node bench/store/run.ts [--engine sqlite|postgres|both] [--rounds N] [--json FILE] [--check]
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { PostgresServer } from '../../test/support/postgres-server.ts'
import { postgresStore, rawPostgres, rawSqlite, sqliteStore } from './contenders.ts'
import type { Contender } from './contenders.ts'

const CALLERS = 64

interface Comparison {
  readonly title: string
  readonly ratio: number
  readonly holds: boolean
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

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
  return Object.fromEntries([...rates].map(([name, values]) => [name, Math.round(median(values))]))
}

async function benchSqlite(rounds: number, folder: string): Promise<[Record<string, number>, Comparison[]]> {
  const one = await compare(rounds, 600, [
    rawSqlite(folder, 'raw-1', 1),
    await sqliteStore(folder, 'store-1', 1, 'transition'),
    await sqliteStore(folder, 'store-1-single', 1, 'single'),
  ])
  const many = await compare(rounds, CALLERS * 200, [
    rawSqlite(folder, 'raw-64', CALLERS),
    await sqliteStore(folder, 'store-64', CALLERS, 'transition'),
    await sqliteStore(folder, 'store-64-single', CALLERS, 'single'),
  ])
  const cost = one['raw-1']! / one['store-1']!
  const rate = many['store-64']! / many['raw-64']!
  return [
    { ...one, ...many },
    [
      {
        title: 'SQLite, 1 caller: cost of a one-row commit against raw (at most 1.3)',
        ratio: cost,
        holds: cost <= 1.3,
      },
      { title: 'SQLite, 64 callers: rate against raw batches (at least 0.7)', ratio: rate, holds: rate >= 0.7 },
    ],
  ]
}

async function benchPostgres(rounds: number): Promise<[Record<string, number>, Comparison[]]> {
  const server = await PostgresServer.create()
  try {
    const url = server.url()
    const one = await compare(rounds, 200, [
      await rawPostgres(url, 'pg-raw-1', 1),
      await postgresStore(url, 'pg-store-1', 1, 'transition'),
      await postgresStore(url, 'pg-store-1-single', 1, 'single'),
    ])
    const many = await compare(rounds, CALLERS * 50, [
      await rawPostgres(url, 'pg-raw-64', CALLERS),
      await postgresStore(url, 'pg-store-64', CALLERS, 'transition'),
      await postgresStore(url, 'pg-store-64-single', CALLERS, 'single'),
    ])
    const cost = one['pg-raw-1']! / one['pg-store-1']!
    const single = one['pg-raw-1']! / one['pg-store-1-single']!
    const rate = many['pg-store-64']! / many['pg-raw-64']!
    return [
      { ...one, ...many },
      [
        {
          title: 'PostgreSQL, 1 caller: cost of a one-row transaction against a raw one-row commit',
          ratio: cost,
          holds: true,
        },
        { title: 'PostgreSQL, 1 caller: cost of a declared single statement against raw', ratio: single, holds: true },
        { title: 'PostgreSQL, 64 callers: rate against raw batches (at least 0.6)', ratio: rate, holds: rate >= 0.6 },
      ],
    ]
  } finally {
    await server.stop()
  }
}

const { values } = parseArgs({
  options: {
    engine: { type: 'string', default: 'both' },
    rounds: { type: 'string', default: '9' },
    json: { type: 'string' },
    check: { type: 'boolean', default: false },
  },
})
const rounds = Number(values.rounds)
const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
try {
  const results = [
    ...(values.engine === 'postgres' ? [] : [await benchSqlite(rounds, folder)]),
    ...(values.engine === 'sqlite' ? [] : [await benchPostgres(rounds)]),
  ]
  const rates = Object.assign({}, ...results.map(([each]) => each)) as Record<string, number>
  const comparisons = results.flatMap(([, each]) => each)
  console.table(Object.fromEntries(Object.entries(rates).map(([name, rate]) => [name, { 'rows a second': rate }])))
  for (const { title, ratio, holds } of comparisons) console.log(`${holds ? '  ' : '✗ '}${ratio.toFixed(2)}  ${title}`)
  const about = { node: process.version, sqlite: process.versions.sqlite, rounds }
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify({ ...about, rates, comparisons }, null, 2))
  if (values.check && comparisons.some(({ holds }) => !holds)) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
