import { sleep } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { Randomness } from '../../src/base/ids.ts'
import type { ProcessIdentity } from '../../src/processes/identity.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import type { SimClock } from './clock.ts'
import type { Gate } from './faults.ts'
import { endProcess, startProcess } from './process-table.ts'
import { seededRandomness } from './seeded.ts'
import type { Dice } from './seeded.ts'
import { comeToRest } from './turns.ts'

/** What a process has around it. */
export interface Surroundings {
  readonly time: SimClock
  /** It comes to a gate: whatever is to happen to it there. */
  readonly onGate: (process: SimProcess, gate: Gate) => void
  /** A change of it was acknowledged. */
  readonly onApplied: (process: SimProcess, change: unknown, args: readonly unknown[], answer: unknown) => void
  /** Killed by somebody, whoever that is. */
  readonly onEnd: (process: SimProcess) => void
  /** At each gate it is up to so much late, so that no two worlds have the same order of things. */
  readonly jitterMs: number
}

/** Of what a store waits for when its world is over. */
const MOST_ROUNDS = 1_000

/** One each: what waits for the same one is kept for ever. */
const never = () => new Promise<never>(() => {})

/**
 * One process of the simulated world. Everything that it does passes a gate: a dead one never gets through, a stopped one
 * waits there until it goes on. Between two gates it runs as any JavaScript does, so it is never stopped inside a transaction.
 */
export class SimProcess {
  readonly name: string
  readonly identity: ProcessIdentity
  readonly clock: Clock
  readonly dice: Dice
  /** Of its faults alone. */
  readonly fate: Dice
  readonly random: Randomness
  /** How many moments it has come to. */
  moments = 0
  /** So many statements fail that follow. */
  sick = 0
  /** It may go on as soon as somebody has taken its work over. */
  wakesWhenLost = false
  readonly #around: Surroundings
  readonly #latency: Dice
  readonly #death = Promise.withResolvers<void>()
  #dead = false
  #resume: (() => void) | undefined
  #stopped: Promise<void> | undefined
  readonly #late: (() => void)[] = []
  #inner: Store | undefined
  /** What its store waits for: a database that was busy is asked again after a while. */
  readonly #awaited = new Set<() => void>()
  readonly #storeClock: Clock

  constructor(name: string, dice: Dice, around: Surroundings) {
    const { time } = around
    this.name = name
    this.dice = dice
    this.fate = dice.fork()
    this.#latency = dice.fork()
    this.random = seededRandomness(dice.fork(), () => time.now())
    this.#around = around
    this.identity = startProcess(() => this.#end())
    this.clock = {
      now: () => time.now(),
      monotonicMs: () => time.monotonicMs(),
      after: (ms, callback) => time.after(ms, () => this.#fire(callback)),
    }
    this.#storeClock = { ...this.clock, after: (ms, callback) => this.#awaitIn(ms, callback) }
  }

  get dead(): boolean {
    return this.#dead
  }

  get stopped(): boolean {
    return this.#stopped !== undefined
  }

  async gate(gate: Gate): Promise<void> {
    const { onGate, time, jitterMs } = this.#around
    onGate(this, gate)
    const late = this.#latency.below(jitterMs + 1)
    if (late > 0) await sleep(time, late)
    while (this.#stopped !== undefined && !this.#dead) await this.#stopped
    if (this.#dead) await never()
  }

  /** Resolves when it is dead. */
  get death(): Promise<void> {
    return this.#death.promise
  }

  /** As long as it lives, an open store. */
  async open(path: string): Promise<Store> {
    const inner = await openSqliteStore({ path, clock: this.#storeClock, random: this.random })
    this.#inner = inner
    const { onApplied } = this.#around
    return {
      engine: inner.engine,
      apply: (change, ...args) =>
        this.#gated('change', async () => {
          const answer = await inner.apply(change, ...args)
          if (!this.#dead) onApplied(this, change, args, answer)
          return answer
        }),
      read: (look, ...args) => this.#gated('look', () => inner.read(look, ...args)),
      onChange: (listener) => inner.onChange((topics) => this.#fire(() => listener(topics))),
      check: () => inner.check(),
      warmUp: () => inner.warmUp(),
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
    this.wakesWhenLost = false
    this.#stopped = undefined
    this.#resume?.()
    for (const callback of this.#late.splice(0)) this.#fire(callback)
  }

  /** At this instant, wherever it is. */
  die(): void {
    if (this.#dead) return
    endProcess(this.identity)
    this.#end()
  }

  /** When the world is over. No time passes any more: what its store waits for comes at once, and finds that it is dead. */
  async close(): Promise<void> {
    this.#dead = true
    endProcess(this.identity)
    const closing = { isOver: this.#inner === undefined }
    void this.#inner
      ?.close()
      .catch(() => {})
      .finally(() => (closing.isOver = true))
    for (let rounds = 0; !closing.isOver && rounds < MOST_ROUNDS; rounds++) {
      await comeToRest()
      // What asks again is not asked in the same round.
      for (const callback of Array.from(this.#awaited)) callback()
    }
    if (!closing.isOver) throw new Error(`the store of ${this.name} cannot be closed`)
  }

  #end(): void {
    if (this.#dead) return
    this.#dead = true
    this.#resume?.()
    this.#death.resolve()
    this.#around.onEnd(this)
  }

  async #gated<T>(what: 'change' | 'look', work: () => Promise<T>): Promise<T> {
    await this.gate(`before ${what}`)
    try {
      return await work()
    } finally {
      // Committed or not: a dead process hears neither.
      await this.gate(`after ${what}`)
    }
  }

  #awaitIn(ms: number, callback: () => void): () => void {
    const once = () => {
      if (this.#awaited.delete(once)) callback()
    }
    this.#awaited.add(once)
    const cancel = this.clock.after(ms, once)
    return () => {
      this.#awaited.delete(once)
      cancel()
    }
  }

  #fire(callback: () => void): void {
    if (this.dead) return
    if (this.stopped) return void this.#late.push(callback)
    callback()
  }
}
