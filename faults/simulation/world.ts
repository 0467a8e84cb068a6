import { existsSync, linkSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { newWorkerId } from '../../src/base/ids.ts'
import type { Randomness } from '../../src/base/ids.ts'
import { judgeProcess } from '../../src/processes/identity.ts'
import { takeOverRun } from '../../src/runs/recover.ts'
import type { HeldAttempt } from '../../src/runs/recover.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { SimulatedDeath, sqliteError } from '../../src/testing/faults.ts'
import type { AnyAgent } from '../../src/workers/agents/execute-agent.ts'
import { tendRegularly } from '../../src/workers/tend.ts'
import { Worker } from '../../src/workers/worker.ts'
import { SimClock } from './clock.ts'
import { LEASE_MS, asItIs, wakesWhenLost } from './faults.ts'
import type { Fault, FaultKind, Moment, Plan, Planned, StatementMoment } from './faults.ts'
import { Ledger } from './ledger.ts'
import { forgetProcesses } from './process-table.ts'
import { Dice, seededRandomness } from './seeded.ts'
import { SharedFile } from './shared-file.ts'
import { SimProcess } from './sim-process.ts'
import type { Surroundings } from './sim-process.ts'
import { forgetDatabases, knowDatabase } from './sqlite.ts'
import { comeToRest } from './turns.ts'
import { Witness, addNotes } from './witness.ts'

const MINUTE = 60_000

/** Beside the database of a world; a folder, so that nobody can watch it: commits are noticed by the simulated clock alone. */
const UNWATCHABLE = 'holdfast.db-wake'

/** How soon whoever was taken over may come back: just when his work is being done by another. */
export const SOON_MS: readonly number[] = [0, 1, 3, 10, 40]

/** SQLite's own numbers. */
const ERRORS: Partial<Record<FaultKind, number>> = {
  busy: 5,
  'disk error': 10,
  'disk full': 13,
  'committed but reported as failed': 10,
  // SQLITE_BUSY_SNAPSHOT, with its transaction rolled back.
  'serialization failure': 517,
}
const SICK = 10

export interface WorldOptions {
  readonly seed: number
  /** An empty database with the newest schema. */
  readonly template: string
  readonly plan: Plan
  readonly jitterMs: number
  /** How soon whoever was taken over may come back. */
  readonly soonMs?: readonly number[]
  readonly workers: number
  readonly agentsOf: (world: World, process: SimProcess, store: Store) => ReadonlyMap<string, AnyAgent>
}

/** The real engine, workers and loop in one thread, on a clock that only the simulation moves. */
export class World {
  readonly time = new SimClock()
  readonly ledger = new Ledger()
  readonly witness = new Witness()
  readonly faults: Fault[] = []
  readonly warnings: string[] = []
  readonly dice: Dice
  readonly random: Randomness
  /** Whether anything goes wrong at present. */
  isTroubled = false
  /** How many moments there were in which something could. */
  moments = 0
  /** Does once more what somebody asked for before. */
  redeliver: (which: number) => void = () => {}
  readonly #options: WorldOptions
  readonly #path: string
  readonly #folder: string
  readonly #file: SharedFile
  readonly #processes: SimProcess[] = []
  readonly #names = new Map<string, number>()
  readonly #slots = new Map<SimProcess, number>()
  readonly #byWorker = new Map<string, SimProcess>()
  readonly #around: Surroundings
  #isOver = false

  constructor(options: WorldOptions) {
    forgetProcesses()
    this.#options = options
    this.dice = new Dice(options.seed)
    this.random = seededRandomness(this.dice.fork(), () => this.time.now())
    this.#folder = mkdtempSync(join(dirname(options.template), 'world-'))
    this.#path = join(this.#folder, 'holdfast.db')
    this.#file = sharedFile(options.template)
    this.#file.restore()
    // Whoever looks for the file finds it; whoever opens it is given a connection to the one that all worlds have.
    linkSync(this.#file.path, this.#path)
    knowDatabase(this.#path, this.#file)
    mkdirSync(join(this.#folder, UNWATCHABLE))
    const { time } = this
    this.#around = {
      time,
      jitterMs: options.jitterMs,
      onGate: (process, gate) => void this.#strike(process, gate),
      onApplied: (process, change, args, answer) => {
        this.witness.hear(process.name, change, args, answer)
        this.#noticeTakeover(change, args, answer)
      },
      onEnd: (process) => this.#restart(process),
    }
  }

  start(): void {
    for (let slot = 0; slot < this.#options.workers; slot++) this.#startWorker(slot)
  }

  get workers(): readonly SimProcess[] {
    return [...this.#slots.keys()]
  }

  /** Lets time pass, event by event. */
  async pass(ms: number): Promise<void> {
    const until = this.time.monotonicMs() + ms
    await comeToRest()
    while (this.time.fireNext(until)) await comeToRest()
  }

  newProcess(name: string): SimProcess {
    const nth = (this.#names.get(name) ?? 0) + 1
    this.#names.set(name, nth)
    const process = new SimProcess(`${name} ${nth}`, this.dice.fork(), this.#around)
    this.#processes.push(process)
    return process
  }

  /** By a path of its own to the one file, so that what its database does is known to be its doing. */
  open(process: SimProcess): Promise<Store> {
    const own = join(this.#folder, String(process.identity.pid))
    mkdirSync(own)
    const path = `${own}/../holdfast.db`
    knowDatabase(path, this.#file, (moment, undo) => this.#onStatement(process, moment, undo))
    return process.open(path)
  }

  /** Looks at everything, and nothing happens to it. */
  openUntouched(): Promise<Store> {
    return openSqliteStore({ path: this.#path, clock: this.time, random: this.random })
  }

  #onStatement(process: SimProcess, moment: StatementMoment, undo: () => void): void {
    if (process.dead) throw new SimulatedDeath()
    if (process.sick > 0 && !moment.startsWith('after')) {
      process.sick -= 1
      throw sqliteError(SICK)
    }
    const struck = this.#strike(process, moment)
    if (struck === undefined) return
    if (struck.kind === 'crash') throw new SimulatedDeath()
    if (struck.kind === 'serialization failure') undo()
    throw sqliteError(ERRORS[struck.kind] ?? SICK)
  }

  #strike(process: SimProcess, moment: Moment): Planned | undefined {
    process.moments += 1
    if (!this.isTroubled || process.dead) return undefined
    this.moments += 1
    const { name, moments: nth, fate: dice } = process
    const intended = this.#options.plan.at({ process: name, nth, overall: this.moments, moment, dice })
    if (intended === undefined) return undefined
    const planned = asItIs(intended, name)
    this.faults.push({ ...planned, process: name, nth, moment, atMs: this.time.monotonicMs() })
    this.#befall(process, planned)
    return planned
  }

  /** What happens to a process, besides the error that its store throws. */
  #befall(process: SimProcess, { kind, amount }: Planned): void {
    if (kind === 'crash') process.die()
    if (kind === 'delay' || kind === 'stopped for a while' || kind === 'stopped beyond its lease') {
      process.stop()
      process.wakesWhenLost = kind !== 'delay' && wakesWhenLost(amount)
      this.time.after(amount, () => process.goOn())
    }
    if (kind === 'disk error' || kind === 'committed but reported as failed') process.sick = amount
    if (kind === 'clock step') this.time.step(amount * MINUTE)
    if (kind === 'duplicate delivery') this.redeliver(amount)
  }

  /** A worker that was stopped comes back at the worst moment: when another has just taken over what it was about to do. */
  #noticeTakeover(change: unknown, args: readonly unknown[], answer: unknown): void {
    if (change !== takeOverRun || answer === undefined) return
    const lost = this.#byWorker.get((args[0] as HeldAttempt).workerId)
    if (lost?.wakesWhenLost !== true) return
    lost.wakesWhenLost = false
    this.time.after(lost.fate.pick(this.#options.soonMs ?? SOON_MS), () => lost.goOn())
  }

  /** What is dead comes back, as by a service manager. */
  #restart(process: SimProcess): void {
    const slot = this.#slots.get(process)
    if (slot === undefined || this.#isOver) return
    this.#slots.delete(process)
    this.time.after(20 + this.dice.below(300), () => this.#startWorker(slot))
  }

  #startWorker(slot: number): void {
    if (this.#isOver) return
    const process = this.newProcess(`worker ${slot}`)
    this.#slots.set(process, slot)
    // A start that fails is a process that ends; the service manager tries again.
    this.#boot(process, slot).catch((error: unknown) => {
      this.warnings.push(`${process.name}: ${String(error)}`)
      process.die()
    })
  }

  async #boot(process: SimProcess, slot: number): Promise<void> {
    const store = await this.open(process)
    const { random, clock, identity } = process
    const agents = this.#options.agentsOf(this, process, store)
    const home = join(this.#folder, `home-${slot}`)
    const warn = (message: string) => void this.warnings.push(`${this.time.monotonicMs()} ${process.name}: ${message}`)
    const id = newWorkerId(random)
    this.#byWorker.set(id, process)
    const worker = { id, kind: 'daemon', home, identity, agents: [...agents.keys()] } as const
    const registered = await store.apply(registerWorker, worker)
    if (registered.kind === 'occupied' && judgeProcess(registered.by.identity) === 'dead')
      await store.apply(registerWorker, worker, registered.by.id)
    const limits = {}
    const fixed = { kind: 'daemon', leaseMs: LEASE_MS, concurrency: 4, graceMs: 100, limits } as const
    const serving = new Worker(id, { store, clock, random, home, agents, warn, ...fixed })
    await serving.start()
    tendRegularly({ clock, leaseMs: LEASE_MS }, serving)
  }

  async close(): Promise<void> {
    this.#isOver = true
    for (const process of this.#processes) await process.close()
    forgetDatabases()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** An empty database with the newest schema, to be copied. With this process its folder goes, and all worlds in it. */
export async function makeTemplate(): Promise<string> {
  const folder = mkdtempSync(join(memoryDisk(), 'holdfast-simulated-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
  const path = join(folder, 'holdfast.db')
  await (await openSqliteStore({ path })).close()
  addNotes(path)
  return path
}

const files = new Map<string, SharedFile>()

function sharedFile(template: string): SharedFile {
  const file = files.get(template) ?? new SharedFile(template)
  files.set(template, file)
  return file
}

const memoryDisk = () => (existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
