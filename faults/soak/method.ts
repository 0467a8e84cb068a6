import { DatabaseSync } from 'node:sqlite'

import { countRuns, isTerminal } from '../../src/runs/run.ts'
import type { Store } from '../../src/store/store.ts'
import { builtProgram } from '../../test/support/built-program.ts'
import { violations } from '../../test/support/invariants.ts'
import { PostgresServer } from '../../test/support/postgres-server.ts'
import { until } from '../../test/support/until.ts'
import { sleep } from '../kill/program.ts'
import type { Started } from '../kill/program.ts'
import { Yard } from '../kill/yard.ts'
import type { Campaign, Method, Outcome } from '../method.ts'
import { Dice } from '../simulation/seeded.ts'
import { wrongInBooks, wrongInTicks } from './books.ts'
import { MIB, filesOf, growing, heldBy, peaksOf, quantile } from './gauges.ts'
import type { Sample } from './gauges.ts'
import { Load } from './load.ts'

/** However noisy the machine: what has not recovered then never will. */
const RECOVERS_MS = 60_000
/** What is promised of a machine that has time for it. */
const P99_MS = 5_000
/** Of fewer kills the slowest would be all that is looked at. */
const LEAST_FOR_P99 = 100

/** Kills between two looks at the books: all are kept back until then. */
const KILLS_A_LOOK = 20

/** Of the worlds, so many are on a PostgreSQL. */
const ON_POSTGRES = 0.3

interface Manner {
  readonly leastMs: number
  readonly mostMs: number
  /** By default the first seed says. */
  readonly engine?: 'sqlite' | 'postgres'
}

/** Hours of work for a daemon that is killed again and again, beside one that is not. */
export const soak: Method = soakWith({ leastMs: 5_000, mostMs: 20_000 })

export function soakWith(manner: Manner): Method {
  return {
    name: 'soak',
    title: 'Load on two daemons that share a store; one is killed with SIGKILL every 5 to 20 seconds, the other never',
    cases: 'kills',
    async run(campaign) {
      const isLarge = new Dice(~campaign.first).chance(ON_POSTGRES)
      const engine = manner.engine ?? (isLarge ? 'postgres' : 'sqlite')
      const server = engine === 'postgres' ? await PostgresServer.create() : undefined
      const yard = new Yard(await builtProgram(), server?.url({ schema: 'soak' }))
      try {
        await soakYard(campaign, { yard, server }, manner)
      } finally {
        await yard.close()
        await server?.stop()
      }
    },
  }
}

interface Place {
  readonly yard: Yard
  readonly server: PostgresServer | undefined
}

async function soakYard(campaign: Campaign, place: Place, manner: Manner): Promise<void> {
  const { yard } = place
  await yard.up()
  const beside = await yard.beside()
  const store = await yard.openStore()
  try {
    await new Soak(place, beside, store, campaign).run(manner)
  } finally {
    await store.close()
    beside.kill()
    await beside.ended
  }
}

/** What is told of a kill is kept back until its effects were compared; what is wrong then is told with the last one. */
class Soak {
  readonly #place: Place
  readonly #yard: Yard
  readonly #beside: Started
  readonly #store: Store
  readonly #campaign: Campaign
  readonly #load: Load
  readonly #samples: Sample[] = []
  readonly #recoveries: number[] = []
  readonly #kept: Outcome[] = []
  readonly #told = { runs: 0, effects: 0, problems: 0 }

  constructor(place: Place, beside: Started, store: Store, campaign: Campaign) {
    this.#place = place
    this.#yard = place.yard
    this.#beside = beside
    this.#store = store
    this.#campaign = campaign
    this.#load = new Load(store, place.yard, new Dice(campaign.first))
  }

  async run({ leastMs, mostMs }: Manner): Promise<void> {
    const { first, most, isOver } = this.#campaign
    await this.#load.start()
    let seed = first
    const broken: string[] = []
    const broke = (error: unknown) => void broken.push(`broke: ${String(error)}`)
    try {
      for (; seed < first + most && !isOver() && !this.#load.isBroken; seed++) {
        await this.#pause(leastMs + new Dice(seed).below(mostMs - leastMs))
        await this.#oneKill(seed)
        if (this.#kept.length > KILLS_A_LOOK) this.#tell(await this.#atAnyTime(), 1)
      }
    } catch (error) {
      broke(error)
      this.#kept.push({ seed, faults: {}, runs: 0, effects: 0, problems: [] })
    }
    await this.#load.stop(RECOVERS_MS)
    this.#tell([...broken, ...(await this.#atTheEnd().catch((error: unknown) => [`its end: ${String(error)}`]))], 0)
  }

  /** Cut short when the time is up: the kill that follows is the last one. */
  async #pause(ms: number): Promise<void> {
    const end = performance.now() + ms
    while (performance.now() < end && !this.#campaign.isOver()) await sleep(Math.min(200, ms))
  }

  async #oneKill(seed: number): Promise<void> {
    const { daemon } = this.#yard
    const sample = await this.#sample(daemon)
    this.#samples.push(sample)
    const before = this.#load.inFlight()
    const at = performance.now()
    await this.#yard.kill()
    const problems: string[] = []
    await this.#yard.up()
    const over = async () => (this.#load.isOver(before) ? true : undefined)
    await until('all that was at work has ended', over, RECOVERS_MS).catch((error: Error) =>
      problems.push(error.message),
    )
    const recoveryMs = performance.now() - at
    this.#recoveries.push(recoveryMs)
    if (this.#beside.isOver()) problems.push('the daemon that nobody kills has ended')
    this.#kept.push({
      seed,
      faults: { 'daemon under load': 1 },
      ...this.#counted(),
      recoveryMs,
      peaks: peaksOf(sample),
      problems,
    })
  }

  async #sample(daemon: Started): Promise<Sample> {
    const size = await this.#place.server?.query<{ bytes: string }>(
      'select pg_database_size(current_database()) as bytes',
    )
    const files = size === undefined ? filesOf(this.#yard.database) : { databaseMiB: Number(size[0]?.bytes ?? 0) / MIB }
    return { runs: this.#load.begun, ...files, daemon: heldBy(daemon.pid), beside: heldBy(this.#beside.pid) }
  }

  /** Since it was told the last time. */
  #counted(): { readonly runs: number; readonly effects: number } {
    const [runs, effects] = [this.#load.begun, this.#yard.lines().length]
    const since = { runs: runs - this.#told.runs, effects: effects - this.#told.effects }
    Object.assign(this.#told, { runs, effects })
    return since
  }

  /** All that was kept back but the last ones; what was found is of the last that is told. */
  #tell(problems: readonly string[], but: number): void {
    const found = this.#load.problems.slice(this.#told.problems)
    this.#told.problems += found.length
    const kept = this.#kept.splice(0, this.#kept.length - but)
    const last = kept.pop()
    for (const outcome of kept) this.#campaign.tell(outcome)
    if (last !== undefined) this.#campaign.tell({ ...last, problems: [...last.problems, ...found, ...problems] })
  }

  async #atAnyTime(): Promise<string[]> {
    return wrongInBooks(this.#store, () => this.#yard.lines(), false)
  }

  /** Who looks at everything at once asks what nobody else does: without this, of 40,000 runs it would take minutes. */
  async #index(): Promise<void> {
    const { server } = this.#place
    if (server !== undefined) return void (await server.query('create index on soak.messages (key)'))
    const database = new DatabaseSync(this.#yard.database, { timeout: 10_000 })
    database.exec('create index messages_by_key_alone on messages (key)')
    database.close()
  }

  async #isIdle(): Promise<true | undefined> {
    const open = (await this.#store.read(countRuns)).filter(({ state }) => !isTerminal(state))
    return open.length === 0 ? true : undefined
  }

  async #atTheEnd(): Promise<string[]> {
    const ticks = await wrongInTicks(this.#store, Date.now(), RECOVERS_MS)
    await this.#yard.command(['schedule', 'remove', 'tick']).ended
    await until('the last tick has ended', () => this.#isIdle(), RECOVERS_MS).catch(() => {})
    await this.#index()
    const p99 = quantile(this.#recoveries, 0.99)
    const isSlow = this.#recoveries.length >= LEAST_FOR_P99 && p99 > P99_MS
    return [
      ...(await violations(this.#store)),
      ...(await wrongInBooks(this.#store, () => this.#yard.lines(), true)),
      ...ticks,
      ...growing(this.#samples),
      ...(isSlow ? [`recovery at the 99th percentile: ${Math.round(p99)} ms`] : []),
    ]
  }
}
