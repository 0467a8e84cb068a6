import { defineBench, median } from '../bench.ts'
import type { Engine, Place, Row } from '../bench.ts'
import { ask, newHome, startDaemon } from '../product.ts'
import type { Daemon } from '../product.ts'
import { SOME_THREAD, runNumber, seedRuns } from './seed.ts'

/** What the page asks for, with so many runs: each is one request to the API. */
const requests = (runs: number): Readonly<Record<string, string>> => ({
  'runs, first page': '/runs?limit=50',
  'runs, a page from the middle': `/runs?limit=50&after=${runNumber(runs / 2)}`,
  'runs, the last page': `/runs?limit=50&after=${runNumber(51)}`,
  'runs that failed': '/runs?limit=50&state=failed',
  'runs of an agent': '/runs?limit=50&agent=agent-7',
  'runs of an agent, from the middle': `/runs?limit=50&agent=agent-7&after=${runNumber(runs / 2)}`,
  'runs of an agent that has none': '/runs?limit=50&agent=nobody',
  'runs of a thread': `/runs?limit=50&thread=${SOME_THREAD}`,
  'runs that wait (none do)': '/runs?limit=50&state=queued&state=parked',
  'one run': `/runs/${runNumber(runs / 2)}`,
  'threads, first page': '/threads?limit=50',
  status: '/status',
})

async function openWith(place: Place, engine: Engine, runs: number): Promise<Daemon> {
  const at = await newHome(place, engine)
  await seedRuns(at, runs)
  return startDaemon(at)
}

async function timed(daemon: Daemon, path: string): Promise<number> {
  const from = performance.now()
  await ask(daemon, path)
  return performance.now() - from
}

/** The daemons with few and with many runs take turns. */
async function measure(
  place: Place,
  engine: Engine,
  sizes: { few: number; many: number; rounds: number },
): Promise<Row[]> {
  const { few, many, rounds } = sizes
  const [small, large] = [await openWith(place, engine, few), await openWith(place, engine, many)]
  const rows: Row[] = []
  try {
    for (const [name, path] of Object.entries(requests(many))) {
      const times: { small: number[]; large: number[] } = { small: [], large: [] }
      for (let round = -3; round < rounds; round += 1) {
        const pair = [await timed(small, requests(few)[name]!), await timed(large, path)] as const
        // The first ones fill caches.
        if (round < 0) continue
        times.small.push(pair[0])
        times.large.push(pair[1])
      }
      const [value, raw] = [median(times.large), median(times.small)]
      const title = `${engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'}, ${many.toLocaleString('en-US')} runs (raw: ${few.toLocaleString('en-US')}): ${name}`
      rows.push({ name: title, value, unit: 'ms', raw, ratio: value / raw, bound: { of: 'value', most: 50 } })
    }
  } finally {
    await small.stop()
    await large.stop()
  }
  return rows
}

/** The answers that the dashboard waits for, as its database grows; `raw` is the same with a tenth of the runs. */
export const bench = defineBench({
  name: 'list',
  what: 'the lists of the dashboard with 100,000 runs',
  full: { few: 10_000, many: 100_000, rounds: 25 },
  quick: { few: 1_000, many: 10_000, rounds: 5 },
  async run(sizes, place) {
    const rows: Row[] = []
    for (const engine of place.engines) rows.push(...(await measure(place, engine, sizes)))
    return rows
  },
})
