import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Runtime } from '../../src/index.ts'
import { listRuns } from '../../src/runs/run.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import type { HoldingProbe, Store } from '../../src/store/store.ts'
import { Load } from '../../test/support/load.ts'
import { TcpProxy } from '../../test/support/tcp-proxy.ts'
import { until } from '../../test/support/until.ts'
import { Dice } from '../simulation/seeded.ts'
import { FileLedger, openOffice } from './office.ts'
import { askForWork, decide } from './people.ts'
import type { Acknowledged } from './people.ts'
import type { Place } from './place.ts'

/** Longer than the wait for a row, so that this is given up first; a black hole is noticed five seconds after it. */
const STATEMENT_TIMEOUT = '6s'

export interface Trouble {
  /** What has to be there before anybody is at work. */
  readonly prepare?: (place: Place, database: string) => Promise<void>
  /** Some callers of the load lock two rows in opposite orders. */
  readonly crossing?: boolean
  /** Held at each point of each transaction of the load. */
  readonly probe?: HoldingProbe
  /** Makes everything that goes wrong in this case, and tells the world of each. */
  readonly cause: (world: World) => Promise<void>
}

/** One case: two programs with workers, the load, the people; all of them on one database, by a network that can fail. */
export class World {
  readonly place: Place
  readonly database: string
  readonly proxy: TcpProxy
  readonly dice: Dice
  readonly ledger: FileLedger
  readonly warnings: string[] = []
  readonly acknowledged: Acknowledged = { messages: [], calls: [] }
  /** How often each kind of fault happened. */
  readonly faults: Record<string, number> = {}
  #lastFault = 0
  readonly #folder: string
  readonly offices: Runtime[] = []
  readonly loads: Store[] = []
  load!: Load
  /** Of what the workers do, and of the load; by a way that nobody cuts. */
  office!: Store
  books!: Store

  private constructor(place: Place, database: string, proxy: TcpProxy, dice: Dice) {
    this.place = place
    this.database = database
    this.proxy = proxy
    this.dice = dice
    this.#folder = mkdtempSync(join(tmpdir(), 'holdfast-postgres-case-'))
    this.ledger = new FileLedger(join(this.#folder, 'ledger.txt'))
  }

  static async open(place: Place, seed: number, { probe, prepare }: Trouble): Promise<World> {
    const database = `case_${seed}_${process.pid}`
    await place.makeDatabase(database)
    await prepare?.(place, database)
    const proxy = await TcpProxy.before(place.url(database))
    const world = new World(place, database, proxy, new Dice(seed).fork())
    try {
      await world.#open(probe)
      return world
    } catch (error) {
      await world.close()
      throw error
    }
  }

  /** Something went wrong just now. */
  struck(kind: string, times = 1): void {
    if (times > 0) this.faults[kind] = (this.faults[kind] ?? 0) + times
    this.#lastFault = performance.now()
  }

  url(schema: string, name: string): string {
    return this.place.url(this.database, { schema, application_name: name, statement_timeout: STATEMENT_TIMEOUT })
  }

  async #open(probe: HoldingProbe | undefined): Promise<void> {
    const { proxy, ledger, dice, warnings } = this
    const probes = dice.chance(0.5)
    this.office = await openPostgresStore({ url: this.url('office', 'watcher') })
    this.books = await openPostgresStore({ url: this.url('load', 'watcher') })
    for (const at of [0, 1]) {
      const url = proxy.through(this.url('office', `office_${at}`))
      const work = { ledger, dice: dice.fork(), probes }
      this.offices.push(await openOffice(join(this.#folder, `home-${at}`), url, work, warnings))
      const loading = proxy.through(this.url('load', `load_${at}`))
      this.loads.push(await openPostgresStore({ url: loading, ...(probe === undefined ? {} : { probe }) }))
    }
    this.load = new Load(this.loads)
  }

  /** Lets the trouble happen while everybody works, and waits until all that was begun has come to its end. */
  async live({ cause, crossing = false }: Trouble) {
    let [enough, settled] = [false, false]
    const isEnough = () => enough
    const problems: string[] = []
    const stuck = (error: unknown) => void problems.push(`stuck: ${String(error)}`)
    const working = this.load.work(isEnough, 4, crossing).catch(stuck)
    const askers = this.offices.map((office, at) => askForWork(office, this, at, isEnough).catch(stuck))
    const deciding = this.#decideUntil(() => enough && settled)
    await cause(this).catch(stuck)
    enough = true
    // Whoever still asks for something may begin another run.
    await Promise.all([working, ...askers])
    await this.#ended().catch(stuck)
    settled = true
    const recoveryMs = performance.now() - this.#lastFault
    await deciding
    return { recoveryMs, problems }
  }

  async #decideUntil(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      // A person who was cut off looks again.
      await decide(this).catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  async #ended(): Promise<void> {
    await until('every run has ended', async () => ((await this.openRuns()) === 0 ? true : undefined))
  }

  openRuns(): Promise<number> {
    return this.office.read(listRuns, { states: ['queued', 'running', 'parked'], limit: 100 }).then(
      (runs) => runs.length,
      () => -1,
    )
  }

  /** What could not be closed, once everything else is. */
  async close(): Promise<string[]> {
    const stores = [...this.loads, this.office, this.books].filter((store) => store !== undefined)
    const ends = [
      ...(await Promise.allSettled(this.offices.map((office) => office.close()))),
      ...(await Promise.allSettled(stores.map((store) => store.close()))),
      ...(await Promise.allSettled([this.proxy.close()])),
      ...(await Promise.allSettled([this.place.dropDatabase(this.database)])),
    ]
    rmSync(this.#folder, { recursive: true, force: true })
    return ends.flatMap((end) => (end.status === 'rejected' ? [`its end: ${String(end.reason)}`] : []))
  }
}
