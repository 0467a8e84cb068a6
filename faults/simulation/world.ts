import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { newWorkerId } from '../../src/base/ids.ts'
import type { Randomness } from '../../src/base/ids.ts'
import { judgeProcess } from '../../src/processes/identity.ts'
import type { ProcessIdentity } from '../../src/processes/identity.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store, StorePoint } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { tendRegularly } from '../../src/workers/tend.ts'
import { Worker } from '../../src/workers/worker.ts'
import { agentsOf } from './agents.ts'
import { Injector } from './injector.ts'
import type { FaultKind } from './injector.ts'
import { Ledger } from './ledger.ts'
import { Dice, seededRandomness } from './seeded.ts'
import { SimProcess } from './sim-process.ts'
import type { StandIns } from './stand-ins.ts'

export const WORKERS = 3
const LEASE_MS = 1_500
const MINUTE = 60_000
/** How many of the dead come back at each step. */
const RESTARTS = 0.4

/** Beside the database of a world; a folder, so that nobody can watch it: commits are noticed by the simulated clock alone. */
const UNWATCHABLE = 'holdfast.db-wake'

export interface Fault {
  readonly kind: FaultKind
  readonly process: string
  readonly atMs: number
}

/** The real engine, workers and loop in one thread, on a clock that only the simulation moves. */
export class World {
  readonly time = new FakeClock()
  readonly ledger = new Ledger()
  readonly faults: Fault[] = []
  readonly warnings: string[] = []
  readonly dice: Dice
  readonly injector: Injector
  readonly random: Randomness
  readonly path: string
  readonly #folder: string
  readonly #standIns: StandIns
  readonly #probes: boolean
  /** Statements of a commit go together, and only whole transactions are interrupted. */
  readonly isJoined: boolean
  readonly #processes: SimProcess[] = []
  readonly #slots = new Map<number, SimProcess>()

  constructor(seed: number, standIns: StandIns, template: string) {
    this.dice = new Dice(seed)
    this.#standIns = standIns
    this.#probes = this.dice.chance(0.5)
    this.isJoined = seed % 4 === 0
    this.random = seededRandomness(this.dice.fork(), () => this.time.now())
    // From a world in which almost nothing happens to one in which little works.
    const probability = this.dice.pick([0.0005, 0.002, 0.005, 0.01])
    this.injector = new Injector({ probability, onFault: (kind, process) => this.befall(kind, process) })
    this.#folder = mkdtempSync(join(memoryDisk(), 'holdfast-simulated-'))
    this.path = join(this.#folder, 'holdfast.db')
    copyFileSync(template, this.path)
    mkdirSync(join(this.#folder, UNWATCHABLE))
  }

  async start(): Promise<void> {
    for (let slot = 0; slot < WORKERS; slot++) await this.#startWorker(slot)
  }

  /** What happens to a process, besides the error that its store throws. */
  befall(kind: FaultKind, process: SimProcess): void {
    this.faults.push({ kind, process: process.name, atMs: this.time.monotonicMs() })
    if (kind === 'crash' || kind === 'killed in a tool') this.kill(process)
    if (kind === 'delay') this.#stopFor(process, 20 + process.dice.below(200))
    if (kind === 'stopped beyond its lease') this.#stopFor(process, LEASE_MS * (1 + process.dice.below(3)))
    if (kind === 'clock step') this.time.step(process.dice.pick([-10, -1, 1, 10, 24 * 60]) * MINUTE)
  }

  kill(process: SimProcess): void {
    process.die()
    if (process.identity !== undefined) this.#standIns.kill(process.identity)
  }

  #stopFor(process: SimProcess, ms: number): void {
    process.stop()
    this.time.after(ms, () => process.goOn())
  }

  get workers(): readonly SimProcess[] {
    return [...this.#slots.values()]
  }

  /** One that comes and goes, as a command does. */
  newProcess(name: string, identity?: ProcessIdentity): SimProcess {
    const process = new SimProcess(name, this.time, this.dice.fork(), identity)
    this.#processes.push(process)
    return process
  }

  open(process: SimProcess): Promise<Store> {
    const { injector, isJoined } = this
    const onPoint = (point: StorePoint) => injector.at(process, point)
    const onGate = () => {
      injector.happens('stopped beyond its lease', 0.001, process)
      if (isJoined) injector.happens('crash', 0.003, process)
    }
    return process.open(this.path, isJoined ? undefined : onPoint, onGate)
  }

  /** What is dead comes back, as by a service manager. */
  async restartTheDead(): Promise<void> {
    for (const [slot, process] of this.#slots)
      if (process.dead && this.dice.chance(RESTARTS)) await this.#startWorker(slot)
  }

  async #startWorker(slot: number): Promise<void> {
    const identity = this.#standIns.take()
    const process = this.newProcess(`worker ${slot}`, identity)
    this.#slots.set(slot, process)
    // A start that fails is a process that ends; the service manager tries again.
    await this.#boot(process, slot, identity).catch((error: unknown) => {
      this.warnings.push(`${process.name}: ${String(error)}`)
      this.kill(process)
    })
  }

  async #boot(process: SimProcess, slot: number, identity: ProcessIdentity): Promise<void> {
    const store = await this.open(process)
    const { ledger, injector, time } = this
    const { random } = process
    const agents = agentsOf({ process, store, ledger, injector, probes: this.#probes })
    const home = join(this.#folder, `home-${slot}`)
    const warn = (message: string) => void this.warnings.push(`${time.monotonicMs()} ${process.name}: ${message}`)
    const options = {
      store,
      clock: process.clock,
      random,
      home,
      kind: 'daemon',
      agents,
      warn,
      leaseMs: LEASE_MS,
      limits: {},
      concurrency: 4,
      graceMs: 100,
    } as const
    const id = newWorkerId(random)
    const worker = { id, kind: 'daemon', home, identity, agents: [...agents.keys()] } as const
    const booted = (async () => {
      const registered = await store.apply(registerWorker, worker)
      if (registered.kind === 'occupied' && judgeProcess(registered.by.identity) === 'dead')
        await store.apply(registerWorker, worker, registered.by.id)
      const serving = new Worker(id, options)
      await serving.start()
      tendRegularly({ clock: process.clock, leaseMs: LEASE_MS }, serving)
    })()
    // Not waited for: the one that starts it may not hang with it.
    booted.catch((error: unknown) => {
      warn(String(error))
      this.kill(process)
    })
  }

  async close(): Promise<void> {
    for (const process of this.#processes) {
      await process.close()
      if (process.identity !== undefined) this.#standIns.giveBack(process.identity)
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** An empty database with the newest schema, to be copied. */
export async function makeTemplate(): Promise<string> {
  const folder = mkdtempSync(join(memoryDisk(), 'holdfast-faults-'))
  const path = join(folder, 'holdfast.db')
  await (await openSqliteStore({ path })).close()
  return path
}

const memoryDisk = () => (existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
