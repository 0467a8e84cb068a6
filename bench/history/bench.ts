import { beside, defineBench, median } from '../bench.ts'
import type { Engine, Place, Row } from '../bench.ts'
import { newHome } from '../product.ts'
import { openRaw } from '../raw.ts'
import { walkAgents, walkFunctions } from './walkers.ts'
import type { Walker, Walking } from './walkers.ts'

const NAMES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const
/** Steps that a walker takes at its turn. */
const TURN = 5

interface Paced {
  readonly behind: number
  readonly walker: Walker
  readonly times: number[]
  /** Processor time of this process for a turn of steps, divided by them: what a busy machine does not change. */
  readonly cpu: number[]
}

async function takeTurn({ walker, times, cpu }: Paced): Promise<void> {
  const before = process.cpuUsage()
  for (let step = 0; step < TURN; step += 1) times.push(await walker.step())
  const { user, system } = process.cpuUsage(before)
  cpu.push((user + system) / 1_000 / TURN)
}

/**
 * Three runs in one store, with few, more and many steps behind them, take turns with each other and with a raw commit. So all
 * see the same machine and the same size of the database; what differs is the history of the run.
 */
async function measure(what: string, open: () => Promise<Walking>, engine: Engine, options: Options): Promise<Row[]> {
  const { place, lengths, turns } = options
  const [walking, raw] = [await open(), await openRaw(place, engine)]
  const paced: Paced[] = []
  for (const behind of lengths) {
    const walker = await walking.walker(`behind-${behind}`)
    for (let step = 0; step < behind; step += 1) await walker.step()
    paced.push({ behind, walker, times: [], cpu: [] })
  }
  const commits: number[] = []
  for (let turn = 0; turn < turns; turn += 1) {
    for (const each of turn % 2 === 0 ? paced : paced.toReversed()) await takeTurn(each)
    for (let step = 0; step < TURN; step += 1) commits.push(await raw.commit(1))
  }
  await raw.close()
  await walking.close()
  const [limit, title] = [median(commits), `${NAMES[engine]}, ${what}`]
  const rows = paced.map(({ behind, times }) =>
    beside(`${title}, ${behind.toLocaleString('en-US')} steps behind it`, 'ms a step', median(times), limit),
  )
  return [...rows, ...flatness(title, paced)]
}

/** The longest history against the shortest. */
function flatness(title: string, paced: readonly Paced[]): Row[] {
  const [short, long] = [paced[0]!, paced.at(-1)!]
  const name = `${title}: with ${long.behind.toLocaleString('en-US')} behind it against ${short.behind}`
  const grown = (pick: (each: Paced) => readonly number[]) => median(pick(long)) / median(pick(short))
  return [
    { name, unit: 'times', value: grown(({ times }) => times), bound: { of: 'value', most: 1.25 } },
    {
      name: `${name}, processor time`,
      unit: 'times',
      value: grown(({ cpu }) => cpu),
      bound: { of: 'value', most: 1.25 },
    },
  ]
}

interface Options {
  readonly place: Place
  readonly lengths: readonly number[]
  readonly turns: number
}

/** What a step costs as the history of its run grows: it must not. */
export const bench = defineBench({
  name: 'history',
  what: 'a step with 10, 1,000 and 10,000 steps behind it',
  full: { few: 10, more: 1_000, many: 10_000, turns: 80 },
  quick: { few: 10, more: 100, many: 500, turns: 30 },
  async run({ few, more, many, turns }, place) {
    const rows: Row[] = []
    for (const engine of place.engines) {
      const [options, agents] = [
        { place, lengths: [few, more, many], turns },
        // There an agent's step is ten round trips: ten thousand of them would take longer than all the rest.
        { place, lengths: engine === 'sqlite' ? [few, more, many] : [few, more], turns },
      ]
      const home = () => newHome(place, engine)
      place.say(`steps of functions on ${engine}`)
      rows.push(...(await measure('function', async () => walkFunctions(await home()), engine, options)))
      place.say(`steps of agents on ${engine}`)
      rows.push(...(await measure('agent', async () => walkAgents(await home()), engine, agents)))
    }
    return rows
  },
})
