import type { Dice } from './seeded.ts'

export const FAULT_KINDS = [
  'crash',
  'busy',
  'disk error',
  'disk full',
  'committed but reported as failed',
  'serialization failure',
  'stopped beyond its lease',
  'stopped for a while',
  'delay',
  'duplicate delivery',
  'clock step',
] as const
export type FaultKind = (typeof FAULT_KINDS)[number]

/** Inside of a store: nothing else happens in this process meanwhile. */
export type StatementMoment = 'open' | `${'before' | 'after'} ${'begin' | 'statement' | 'commit' | 'read'}`
/** Between them: here a process can be stopped for a while. */
export type Gate = `${'before' | 'after'} ${'change' | 'look' | 'reply' | 'effect'}` | 'before probe'
export type Moment = StatementMoment | Gate

/** What is to go wrong, and how much of it: milliseconds, minutes, statements, by its kind. */
export interface Planned {
  readonly kind: FaultKind
  readonly amount: number
}

/** What went wrong where: the nth moment of a process that has this name. */
export interface Fault extends Planned {
  readonly process: string
  readonly nth: number
  readonly moment: Moment
  readonly atMs: number
}

/** Decides at each moment of each process whether something goes wrong. */
export interface Plan {
  at(place: Place): Planned | undefined
}

export interface Place {
  readonly process: string
  readonly nth: number
  /** Of all processes together. */
  readonly overall: number
  readonly moment: Moment
  /** Of this process, and asked by nobody else. */
  readonly dice: Dice
}

/** What may go wrong at each moment; the more often named, the likelier. */
export const POSSIBLE: Readonly<Record<Moment, readonly FaultKind[]>> = {
  open: [],
  'before begin': ['crash', 'busy', 'busy', 'disk error'],
  'after begin': ['crash', 'disk error'],
  'before statement': ['crash', 'disk error', 'disk full', 'serialization failure'],
  'after statement': ['crash', 'disk error', 'serialization failure'],
  'before commit': ['crash', 'disk error', 'disk full'],
  'after commit': ['crash', 'committed but reported as failed', 'committed but reported as failed'],
  'before read': ['crash', 'busy', 'disk error'],
  'after read': [],
  'before change': [
    'crash',
    'stopped beyond its lease',
    'stopped beyond its lease',
    'delay',
    'delay',
    'duplicate delivery',
    'clock step',
  ],
  'after change': ['crash', 'stopped beyond its lease', 'stopped beyond its lease', 'delay', 'duplicate delivery'],
  'before look': ['crash', 'stopped beyond its lease', 'delay'],
  'after look': ['stopped beyond its lease', 'delay', 'delay'],
  'before reply': ['crash', 'delay'],
  'after reply': ['crash', 'stopped beyond its lease', 'stopped beyond its lease', 'delay'],
  'before effect': ['crash', 'stopped beyond its lease', 'stopped beyond its lease', 'delay'],
  'after effect': ['crash', 'crash', 'stopped beyond its lease', 'delay'],
  'before probe': ['crash', 'stopped beyond its lease', 'delay'],
}

/** There are twenty statements to a commit, and few words of a model and few effects to a run: these matter most. */
const WEIGHT: Readonly<Record<Moment, number>> = {
  open: 0,
  'before begin': 1,
  'after begin': 1,
  'before statement': 1,
  'after statement': 1,
  'before commit': 5,
  'after commit': 5,
  'before read': 0.5,
  'after read': 0,
  'before change': 1.5,
  'after change': 1.5,
  'before look': 0.5,
  'after look': 0.5,
  'before reply': 10,
  'after reply': 20,
  'before effect': 20,
  'after effect': 20,
  'before probe': 20,
}

/** From a seed. */
export class RandomPlan implements Plan {
  readonly #probability: number

  /** At one statement. */
  constructor(probability: number) {
    this.#probability = probability
  }

  at({ moment, dice }: Place): Planned | undefined {
    if (!dice.chance(this.#probability * WEIGHT[moment])) return undefined
    const kind = dice.pick(POSSIBLE[moment])
    return { kind, amount: amountOf(kind, dice) }
  }
}

/** Workers are stopped where they are about to change or do something, or have done it; sometimes something else happens. */
const STOPS: ReadonlySet<Moment> = new Set(['before change', 'before effect', 'after effect'])

export class StoppingPlan implements Plan {
  readonly #probability: number
  readonly #others: RandomPlan

  constructor(probability: number) {
    this.#probability = probability
    this.#others = new RandomPlan(probability / 20)
  }

  at(place: Place): Planned | undefined {
    const { moment, process, dice } = place
    if (STOPS.has(moment) && process.startsWith('worker') && dice.chance(this.#probability)) {
      // Even: it comes back as soon as its work is another's.
      return { kind: 'stopped beyond its lease', amount: 2 * (LEASE_MS + dice.below(LEASE_MS)) }
    }
    return this.#others.at(place)
  }
}

/** Exactly these, each where it once happened. */
export class KnownPlan implements Plan {
  readonly #faults: ReadonlyMap<string, Planned>

  constructor(faults: readonly Fault[]) {
    this.#faults = new Map(faults.map((fault) => [`${fault.process} ${fault.nth}`, fault]))
  }

  at({ process, nth }: Place): Planned | undefined {
    return this.#faults.get(`${process} ${nth}`)
  }
}

export const LEASE_MS = 1_500

/** Half of those that are stopped come back when somebody has just taken over their work; the others when it is long done. */
export const wakesWhenLost = (amount: number): boolean => Math.floor(amount) % 2 === 0

function amountOf(kind: FaultKind, dice: Dice): number {
  if (kind === 'delay') return dice.pick([5, 20, 100, 300])
  if (kind === 'stopped beyond its lease') return LEASE_MS * dice.pick([0.9, 1.1, 1.4, 2, 4]) + dice.below(300)
  if (kind === 'clock step') return dice.pick([-10, -1, 1, 10, 24 * 60])
  // A disk that fails once often fails again when somebody looks what has become of it.
  if (kind === 'committed but reported as failed' || kind === 'disk error') return dice.pick([0, 0, 1, 2, 6])
  return dice.below(1_000)
}

/** Only who holds a lease can be stopped beyond it. */
export function asItIs({ kind, amount }: Planned, process: string): Planned {
  if (kind !== 'stopped beyond its lease' || (process.startsWith('worker') && amount > LEASE_MS))
    return { kind, amount }
  return { kind: 'stopped for a while', amount }
}

/** As somebody would tell it. */
export function inWords({ kind, amount, process, nth, moment, atMs }: Fault): string {
  const how = {
    delay: ` for ${amount} ms`,
    'stopped for a while': ` for ${amount} ms`,
    'stopped beyond its lease': ` for ${amount} ms${wakesWhenLost(amount) ? ', or until its work is another’s' : ''}`,
    'clock step': ` of ${amount} minutes`,
    'disk error': amount === 0 ? '' : `, and at the ${amount} statements that follow`,
    'committed but reported as failed': amount === 0 ? '' : `, and the ${amount} statements that follow fail too`,
  }[kind as string]
  return `at ${Math.round(atMs)} ms ${process}, ${moment} (its moment ${nth}): ${kind}${how ?? ''}`
}
