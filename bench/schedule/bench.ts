import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'

import pg from 'pg'

import { defineBench, median } from '../bench.ts'
import type { Engine, Place, Row } from '../bench.ts'
import { newHome, openProduct } from '../product.ts'
import type { Home } from '../product.ts'

interface Measured {
  readonly fired: number
  readonly p50: number
  readonly p99: number
  readonly most: number
  readonly cpuMs: number
  readonly commitMs: number
}

const OPTIONS = JSON.stringify({ retry: { tries: 3, baseMs: 200, factor: 2, jitter: 0 }, misfire: { policy: 'once' } })

/** Schedules that lie a year ahead, written by hand: a million transactions are not what is measured. */
function farAhead(engine: Engine, count: number): string {
  const far = Date.now() + 365 * 86_400_000
  const [numbers, id] =
    engine === 'sqlite'
      ? [
          `(with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count}) select i from n)`,
          `printf('sch_far_%08d', i)`,
        ]
      : [`generate_series(1, ${count}) as n (i)`, `'sch_far_' || i`]
  return `insert into schedules (id, name, kind, state, rule, target, options, made_by, next_at, next_fire_at, created_at, updated_at)
    select ${id}, 'far ' || i, 'job', 'active', '{"kind":"once","at":0}', '{"kind":"agent","agent":"clerk","text":""}', '${OPTIONS}',
      'bench', ${far} + i * 79 % 86400000, ${far} + i * 79 % 86400000, 0, 0 from ${numbers}`
}

async function storeWith(place: Place, engine: Engine, count: number): Promise<Home> {
  const at = await newHome(place, engine)
  await (await openProduct(at.home, at.store)).close()
  if (count === 0) return at
  if (engine === 'sqlite') {
    const database = new DatabaseSync(join(at.home, 'holdfast.db'))
    database.exec(farAhead(engine, count))
    database.close()
    return at
  }
  const client = new pg.Client(at.store)
  await client.connect()
  await client.query(`set search_path to ${new URL(at.store!).searchParams.get('schema')}`)
  await client.query(farAhead(engine, count))
  await client.query('analyze schedules')
  await client.end()
  return at
}

/** One worker in a process of its own. */
function measure({ home, store = '' }: Home, firings: number, seconds: number): Promise<Measured> {
  const file = fileURLToPath(new URL('worker.ts', import.meta.url))
  const args = [file, home, store, String(firings), String(seconds)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  return new Promise((resolve, reject) => {
    child.on('close', (code) =>
      code === 0 ? resolve(JSON.parse(output) as Measured) : reject(new Error(`the worker exited with ${code}`)),
    )
  })
}

interface Sizes {
  readonly firings: number
  readonly pending: number
  readonly seconds: number
  readonly rounds: number
}

/** Once with nothing else in the store and once with many schedules that lie far ahead, in turns. */
async function compare(place: Place, engine: Engine, { firings, pending, seconds, rounds }: Sizes): Promise<Row[]> {
  const [alone, crowded] = [await storeWith(place, engine, 0), await storeWith(place, engine, pending)]
  const results: { alone: Measured; crowded: Measured }[] = []
  for (let round = 1; round <= rounds; round += 1) {
    results.push({ alone: await measure(alone, firings, seconds), crowded: await measure(crowded, firings, seconds) })
  }
  const of = (pick: (pair: { alone: Measured; crowded: Measured }) => number) => median(results.map(pick))
  const title = `${engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'}, ${pending.toLocaleString('en-US')} others pending`
  const missing = results.reduce((sum, pair) => sum + 2 * firings - pair.alone.fired - pair.crowded.fired, 0)
  const row = (name: string, unit: string, pick: (measured: Measured) => number): Row => {
    const [value, raw] = [of((pair) => pick(pair.crowded)), of((pair) => pick(pair.alone))]
    return { name: `${title} (raw: none): ${name}`, value, unit, raw, ratio: value / raw }
  }
  return [
    row('lateness p50', 'ms', ({ p50 }) => p50),
    {
      ...row('lateness p99', 'ms', ({ p99 }) => p99),
      bound: { of: 'value', most: engine === 'sqlite' ? 50 : 100 },
    },
    { ...row('processor time of all firings', 'ms', ({ cpuMs }) => cpuMs), bound: { of: 'ratio', most: 2 } },
    { name: `${title}: firings that did not happen`, value: missing, unit: 'firings', bound: { of: 'value', most: 0 } },
  ]
}

/**
 * Firings at random instants within some seconds. Lateness is the instant that the ledger gives a firing less the instant that it
 * was due; the commit follows within the group commit's own time.
 */
export const bench = defineBench({
  name: 'schedule',
  what: 'firings with a million others pending',
  full: { firings: 2_000, pending: 1_000_000, seconds: 10, rounds: 1 },
  quick: { firings: 200, pending: 50_000, seconds: 3, rounds: 1 },
  async run(sizes, place) {
    const rows: Row[] = []
    for (const engine of place.engines) rows.push(...(await compare(place, engine, sizes)))
    return rows
  },
})
