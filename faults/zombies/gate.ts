import { renewLeases } from '../../src/runs/attempt.ts'
import { stopWorker } from '../../src/runs/worker.ts'
import type { Change } from '../../src/store/transition.ts'
import type { Store } from '../../src/store/store.ts'

/** A place between two transactions: around a change of the store, a question to a model, an effect. */
export interface Boundary {
  /** The name of the transition, `model`, or `effect`. */
  readonly at: string
  readonly when: 'before' | 'after'
  /** Which of them, counted from 1. */
  readonly nth: number
}

/** Those that are declared as one statement have no name of their own. */
const SINGLES = new Map<unknown, string>([
  [renewLeases, 'renewLeases'],
  [stopWorker, 'stopWorker'],
])

const nameOf = <Args extends readonly unknown[], T>(change: Change<Args, T>): string =>
  typeof change === 'function' ? change.name : (SINGLES.get(change) ?? 'single')

/**
 * What a process passes on its way. At its boundary it lets what is under way in the store come to its end, lets nothing new
 * begin, and stops: a process that stops inside of a transaction would hold its locks.
 */
export class Gate {
  readonly #boundary: Boundary | undefined
  readonly #stop: (boundary: Boundary) => void
  #seen = 0
  #underWay = 0
  #closed: Promise<void> | undefined
  #onQuiet: (() => void) | undefined
  readonly #cutOffMs: number
  #cutOffUntil = 0

  /** `cutOffMs`: so long after it goes on it reaches no store. */
  constructor(boundary: Boundary | undefined, stop: (boundary: Boundary) => void, cutOffMs = 0) {
    this.#boundary = boundary
    this.#stop = stop
    this.#cutOffMs = cutOffMs
  }

  /** The store can be reached again. */
  reconnect(): void {
    this.#cutOffUntil = 0
  }

  async at(name: string, when: Boundary['when']): Promise<void> {
    const boundary = this.#boundary
    if (boundary === undefined || (boundary.at !== name && boundary.at !== 'anything') || boundary.when !== when) return
    this.#seen += 1
    if (this.#seen !== boundary.nth) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#closed = promise
    await this.#quiet()
    this.#stop(boundary)
    this.#cutOffUntil = performance.now() + this.#cutOffMs
    this.#closed = undefined
    resolve()
  }

  async through<T>(work: () => Promise<T>): Promise<T> {
    while (this.#closed !== undefined) await this.#closed
    if (performance.now() < this.#cutOffUntil) throw new Error('the network is gone')
    this.#underWay += 1
    try {
      return await work()
    } finally {
      this.#underWay -= 1
      if (this.#underWay === 0) this.#onQuiet?.()
    }
  }

  #quiet(): Promise<void> {
    return this.#underWay === 0 ? Promise.resolve() : new Promise((resolve) => (this.#onQuiet = resolve))
  }
}

/** The same store, behind the gate. */
export const gated = (inner: Store, gate: Gate): Store => ({
  engine: inner.engine,
  async apply(change, ...args) {
    const name = nameOf(change)
    await gate.at(name, 'before')
    const answer = await gate.through(() => inner.apply(change, ...args))
    await gate.at(name, 'after')
    return answer
  },
  read: (look, ...args) => gate.through(() => inner.read(look, ...args)),
  onChange: (listener) => inner.onChange(listener),
  check: () => inner.check(),
  warmUp: () => inner.warmUp(),
  copyTo: (path) => inner.copyTo(path),
  close: () => inner.close(),
})
