import type { Clock } from '../../src/base/clock.ts'
import type { Randomness } from '../../src/base/ids.ts'
import type { ProcessIdentity } from '../../src/processes/identity.ts'
import { judgeProcess } from '../../src/processes/identity.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store, StorePoint } from '../../src/store/store.ts'
import { SimulatedDeath } from '../../src/testing/faults.ts'
import type { FakeClock } from '../../src/testing/fake-clock.ts'
import { seededRandomness } from './seeded.ts'
import type { Dice } from './seeded.ts'

/** One each: what waits for the same one is kept for ever. */
const never = () => new Promise<never>(() => {})

/**
 * One process of the simulated world. Everything that it does passes a gate: a dead one never gets through, a stopped one
 * waits there until it goes on. Between two gates it runs as any JavaScript does, so it is never stopped inside a transaction.
 */
export class SimProcess {
  readonly name: string
  /** Of the process that stands for it, if anybody may ask whether it lives. */
  readonly identity: ProcessIdentity | undefined
  readonly clock: Clock
  readonly dice: Dice
  readonly random: Randomness
  #dead = false
  #resume: (() => void) | undefined
  #stopped: Promise<void> | undefined
  readonly #late: (() => void)[] = []
  #inner: Store | undefined
  #onGate = () => {}

  constructor(name: string, time: FakeClock, dice: Dice, identity?: ProcessIdentity) {
    this.name = name
    this.dice = dice
    this.random = seededRandomness(dice.fork(), () => time.now())
    this.identity = identity
    this.clock = {
      now: () => time.now(),
      monotonicMs: () => time.monotonicMs(),
      after: (ms, callback) => time.after(ms, () => this.#fire(callback)),
    }
  }

  get dead(): boolean {
    return this.#dead
  }

  get stopped(): boolean {
    return this.#stopped !== undefined
  }

  async gate(): Promise<void> {
    // Whoever kills the process that stands for it kills it as well.
    this.#dead ||= this.identity !== undefined && judgeProcess(this.identity) === 'dead'
    if (this.#dead) return never()
    if (this.#stopped === undefined) return
    await this.#stopped
    return this.gate()
  }

  /**
   * As long as it lives, an open store. `onPoint` may throw, and then says what the disk or a neighbour did; a store without it puts
   * the statements of a commit together, as it does outside of tests.
   */
  async open(path: string, onPoint: ((point: StorePoint) => void) | undefined, onGate: () => void): Promise<Store> {
    const probe = (point: StorePoint) => {
      if (this.dead) throw new SimulatedDeath()
      onPoint?.(point)
    }
    const watched = onPoint === undefined ? {} : { probe }
    const inner = await openSqliteStore({ path, clock: this.clock, random: this.random, ...watched })
    this.#inner = inner
    this.#onGate = onGate
    return {
      engine: inner.engine,
      apply: (change, ...args) => this.#gated(() => inner.apply(change, ...args)),
      read: (look, ...args) => this.#gated(() => inner.read(look, ...args)),
      onChange: (listener) => inner.onChange((topics) => (this.dead || this.stopped ? undefined : listener(topics))),
      check: () => inner.check(),
      copyTo: (to) => inner.copyTo(to),
      close: () => inner.close(),
    }
  }

  stop(): void {
    if (this.#stopped !== undefined || this.dead) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#stopped = promise
    this.#resume = resolve
  }

  /** What came due meanwhile fires now, late. */
  goOn(): void {
    this.#stopped = undefined
    this.#resume?.()
    for (const callback of this.#late.splice(0)) this.#fire(callback)
  }

  /** At this instant, wherever it is. */
  die(): void {
    this.#dead = true
  }

  /** When the world is over. */
  async close(): Promise<void> {
    this.#dead = true
    await this.#inner?.close().catch(() => {})
  }

  async #gated<T>(work: () => Promise<T>): Promise<T> {
    this.#onGate()
    await this.gate()
    try {
      return await work()
    } finally {
      // Committed or not: a dead process hears neither.
      this.#onGate()
      await this.gate()
    }
  }

  #fire(callback: () => void): void {
    if (this.dead) return
    if (this.stopped) return void this.#late.push(callback)
    callback()
  }
}
