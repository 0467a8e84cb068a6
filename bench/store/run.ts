/**
 * The store beside raw `node:sqlite` on the same rows, durability on, in one run. Rounds of the contenders alternate,
 * so that a noisy machine is noisy for both; what counts is the ratio of medians.
 *
 *   node bench/store/run.ts [--rounds N] [--json FILE] [--check]
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parseArgs } from 'node:util'

import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { sql } from '../../src/store/sql.ts'
import { run, single } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'

const TABLE =
  'create table if not exists bench (id text primary key, run_id text not null, payload text not null) strict'
const CALLERS = 64
const payload = JSON.stringify({ tool: 'ledger_append', input: { entry: 'x'.repeat(380) } })
let serial = 0
const nextId = () => `bench_${String(++serial).padStart(12, '0')}`

function* insertRow(id: string): Transition<number> {
  return yield* run(sql`insert into bench (id, run_id, payload) values (${id}, ${'run'}, ${payload})`)
}
const insertSingle = single((id: string) =>
  run(sql`insert into bench (id, run_id, payload) values (${id}, ${'run'}, ${payload})`),
)

interface Contender {
  readonly name: string
  /** Performs `rows` rows and returns rows a second. */
  round(rows: number): Promise<number>
  close(): Promise<void> | void
}

async function timed(rows: number, work: () => Promise<void> | void): Promise<number> {
  const start = performance.now()
  await work()
  return rows / ((performance.now() - start) / 1_000)
}

function rawContender(folder: string, name: string, batch: number): Contender {
  const database = new DatabaseSync(join(folder, `${name}.db`))
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 2000')
  database.exec(TABLE)
  const insert = database.prepare('insert into bench (id, run_id, payload) values (?, ?, ?)')
  const writeBatch = (count: number) => {
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
          writeBatch(Math.min(batch, rows - done))
          // The same chance for the rest of the process to run as the store gives it.
          await new Promise((resolve) => setImmediate(resolve))
        }
      }),
    close: () => database.close(),
  }
}

async function storeContender(
  folder: string,
  name: string,
  callers: number,
  kind: 'single' | 'transition',
): Promise<Contender> {
  const path = join(folder, `${name}.db`)
  const store = await openSqliteStore({ path })
  const side = new DatabaseSync(path)
  side.exec(TABLE)
  side.close()
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
    close: () => store.close(),
  }
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

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

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    json: { type: 'string' },
    check: { type: 'boolean', default: false },
  },
})
const rounds = Number(values.rounds)
const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
try {
  const one = await compare(rounds, 600, [
    rawContender(folder, 'raw-1', 1),
    await storeContender(folder, 'store-1', 1, 'transition'),
    await storeContender(folder, 'store-1-single', 1, 'single'),
  ])
  const many = await compare(rounds, 64 * 200, [
    rawContender(folder, 'raw-64', CALLERS),
    await storeContender(folder, 'store-64', CALLERS, 'transition'),
    await storeContender(folder, 'store-64-single', CALLERS, 'single'),
  ])
  const rates = { ...one, ...many }
  const ratios = {
    'one caller: store cost / raw cost of a one-row commit (target <= 1.3)': rates['raw-1']! / rates['store-1']!,
    '64 callers: store rate / raw batched rate (target >= 0.7)': rates['store-64']! / rates['raw-64']!,
  }
  console.table(rates)
  console.table(Object.fromEntries(Object.entries(ratios).map(([name, ratio]) => [name, Number(ratio.toFixed(2))])))
  if (values.json !== undefined)
    writeFileSync(
      values.json,
      JSON.stringify({ node: process.version, sqlite: process.versions.sqlite, rounds, rates, ratios }, null, 2),
    )
  const [oneCaller, manyCallers] = Object.values(ratios) as [number, number]
  if (values.check && (oneCaller > 1.3 || manyCallers < 0.7)) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
