import { describeError } from '../../src/base/errors.ts'
import { defineBench, median } from '../bench.ts'
import type { Place, Row } from '../bench.ts'
import type { Home } from '../product.ts'
import { casesOf, fileOf } from './cases.ts'
import type { Case } from './cases.ts'
import { withHome } from './home.ts'
import { recordPostgres, replayPostgres } from './postgres.ts'
import { recordSqlite, replaySqlite } from './sqlite.ts'
import { Stopwatch, untilEnd } from './watch.ts'
import type { Watch } from './watch.ts'

type Work = (home: Home, watch: Watch) => Promise<void>

/** What the product asks of its database until the work is done, and how to ask the same again of an empty one. */
export async function recorded({ engine, product }: Pick<Case, 'engine' | 'product'>, home: Home): Promise<Work> {
  if (engine === 'sqlite') {
    const recording = untilEnd(await recordSqlite((watch) => product(home, watch)))
    return (other, watch) => replaySqlite(recording, fileOf(other), watch)
  }
  const { entries, connections } = await recordPostgres((watch) => product(home, watch))
  const recording = { entries: untilEnd(entries), connections }
  return (other, watch) => replayPostgres(recording, other.store!, watch)
}

/** In turns, each time with an empty database. */
async function compare(place: Place, each: Case): Promise<Row> {
  const { name, engine, unit, better, rounds, figure, product, raw } = each
  place.say(name)
  const statements = await withHome(place, engine, (home) => recorded(each, home))
  const sides = { raw, statements, product } satisfies Record<string, Work>
  const figures = { raw: [], statements: [], product: [] } as Record<keyof typeof sides, number[]>
  for (let round = 0; round <= rounds; round += 1) {
    const order = Object.entries(sides) as [keyof typeof sides, Work][]
    for (const [side, work] of round % 2 === 0 ? order : order.toReversed()) {
      // The first round warms the compiler; the product was warmed by the recording.
      if (round === 0 && side === 'product') continue
      const watch = new Stopwatch()
      await withHome(place, engine, (home) => work(home, watch))
      if (round > 0) figures[side].push(figure(watch.laps))
    }
  }
  const [value, limit] = [median(figures.product), median(figures.raw)]
  return { name, unit, value, better, statements: median(figures.statements), raw: limit, ratio: value / limit }
}

const TRIES = 3

/** A recording may have a statement that was refused and repeated, which cannot be told again: then there is another one. */
async function compareAgain(place: Place, each: Case, tries = TRIES): Promise<Row> {
  try {
    return await compare(place, each)
  } catch (error) {
    if (tries === 1) throw error
    place.say(`once more: ${describeError(error)}`)
    return compareAgain(place, each, tries - 1)
  }
}

/**
 * Where a target is missed: the product, what it asks of its database with nobody who asks (recorded and replayed with the bare driver,
 * every commit synced), and raw rows. Between the first two is what the engine costs, between the last two what is kept.
 */
export const bench = defineBench({
  name: 'limits',
  what: 'the product beside its own statements alone, and beside raw rows',
  full: { rounds: 5, flows: 1_024, calls: 60, jobs: 20_000, firings: 2_000, seconds: 10, firingRounds: 3 },
  quick: { rounds: 1, flows: 128, calls: 10, jobs: 1_000, firings: 100, seconds: 1, firingRounds: 1 },
  async run(sizes, place) {
    const rows: Row[] = []
    for (const each of casesOf(sizes))
      if (place.engines.includes(each.engine)) rows.push(await compareAgain(place, each))
    return rows
  },
})
