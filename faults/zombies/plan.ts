import { Dice } from '../simulation/seeded.ts'
import type { Boundary } from './gate.ts'
import type { WrongClock } from './host.ts'

export const WORK = ['clerk', 'careful', 'slow', 'payer', 'lead', 'steps', 'command', 'schedule', 'follow-up'] as const
/** A command that goes on until whoever is to come back has come back. */
export const ERRAND = 'errand'
export type Work = (typeof WORK)[number] | typeof ERRAND

interface Spot {
  /** What a worker is at there. */
  readonly place: string
  readonly at: Boundary['at']
  readonly work: readonly Work[]
  /** How often that work passes there at least. */
  readonly times: number
}

const spot = (place: string, at: Boundary['at'], times: number, ...work: readonly Work[]): Spot => ({
  place,
  at,
  times,
  work,
})

/** Where a worker is stopped, and the work that leads there. */
const SPOTS: readonly Spot[] = [
  spot('at its claim', 'claimRun', 1, 'clerk', 'careful', 'payer', 'lead', 'command'),
  spot('at its claim', 'claimCalls', 1, 'steps'),
  spot('at its intent', 'startAction', 2, 'clerk', 'careful', 'lead'),
  spot('at its intent', 'startAction', 1, 'payer'),
  spot('at its intent', 'advanceRun', 3, 'steps'),
  spot('at the start of a command', 'recordStarting', 1, 'command'),
  spot('at an effect', 'effect', 2, 'clerk', 'careful', 'steps'),
  spot('at an effect', 'effect', 2, 'clerk', 'careful', 'steps'),
  spot('at an effect', 'effect', 1, 'payer'),
  spot('at a record', 'settleAction', 2, 'clerk', 'careful'),
  spot('at a record', 'recordTurn', 3, 'clerk', 'careful', 'lead'),
  spot('at a question', 'model', 3, 'clerk', 'careful', 'lead'),
  spot('at an end', 'finishRun', 1, 'clerk', 'command', 'payer', 'lead'),
  spot('at an end', 'finishCall', 1, 'steps'),
  spot('at a wait', 'parkForDecision', 1, 'payer'),
  spot('at a wait', 'parkForChildren', 1, 'lead'),
  spot('at a heartbeat', 'renewLeases', 2, 'slow'),
  spot('at a heartbeat', 'expireApprovals', 1, 'slow'),
  spot('at a heartbeat', 'resumeDue', 1, 'slow'),
  spot('at a firing', 'fireSchedule', 1, 'schedule', 'follow-up'),
  spot('at a delivery', 'startChild', 2, 'lead'),
  spot('anywhere', 'anything', 12, ...WORK),
  spot('anywhere', 'anything', 12, ...WORK),
]

const TAKEOVER = spot('at a takeover', 'takeOverRun', 1, ...WORK)

export interface Zombie {
  readonly place: string
  readonly boundary: Boundary
  readonly kind: 'daemon' | 'command'
  /** It never comes back: it is killed where it stands. */
  readonly dies: boolean
}

export interface ClockFault {
  readonly name: string
  readonly clock: WrongClock
  /** Whose: the one that stops first, the one that carries on, or that of all. */
  readonly whose: 'the first' | 'the last' | 'all'
  /** From the beginning, or while the first one is stopped: it was asleep when the clock was set. */
  readonly when: 'from the beginning' | 'while one is stopped'
}

export interface Plan {
  readonly engine: 'sqlite' | 'postgres'
  readonly work: readonly Work[]
  /** At least; where everything takes longer a lease that short would never be renewed in time. */
  readonly leaseMs: number
  /** Each begins when the one before has stopped, and takes over from it. The one that carries on comes after the last. */
  readonly zombies: readonly Zombie[]
  /** The others are there from the beginning, and not only when the first has stopped. */
  readonly together: boolean
  /** When zombies come back. */
  readonly back: 'when all is done' | 'in the middle' | 'as soon as the lease is over' | 'when another has it'
  /** Those that come back cannot reach the database at first: they stop what they take for their own. */
  readonly cutOff: boolean
  readonly clock?: ClockFault
}

const HOUR = 3_600_000
const DAY = 24 * HOUR
const CLOCKS: readonly (readonly [name: string, clock: WrongClock])[] = [
  ['clock an hour ahead', { offsetMs: HOUR, drift: 0 }],
  ['clock an hour behind', { offsetMs: -HOUR, drift: 0 }],
  ['clock 400 days ahead', { offsetMs: 400 * DAY, drift: 0 }],
  ['clock 400 days behind', { offsetMs: -400 * DAY, drift: 0 }],
  ['clock set back by 3 s', { offsetMs: -3_000, drift: 0 }],
  ['clock that runs fast', { offsetMs: 0, drift: 0.5 }],
  ['clock that runs slowly', { offsetMs: 0, drift: -0.5 }],
]

/** Where the one that carries out an errand is stopped: beside its command, which goes on. */
const BESIDE = spot('beside its command', 'renewLeases', 2, ERRAND)

/** So many cases are of one that comes back to a command which another has taken over, and cannot ask whose it is. */
const CUT_OFF_EVERY = 8

export function planOf(seed: number, engines: readonly Plan['engine'][]): Plan {
  const plan = drawn(seed, engines)
  if (seed % CUT_OFF_EVERY !== 0) return plan
  const dice = new Dice(Math.imul(seed, 0x85ebca6b))
  dice.fraction()
  const { clock: _, ...rest } = plan
  return {
    ...rest,
    engine: engines.includes('postgres') ? 'postgres' : 'sqlite',
    work: [ERRAND, ...plan.work.slice(1)],
    zombies: [{ ...zombieOf(dice, BESIDE), dies: false }, ...plan.zombies.slice(1)],
    // So it is the first that has the errand.
    together: false,
    back: 'when another has it',
    cutOff: true,
  }
}

function drawn(seed: number, engines: readonly Plan['engine'][]): Plan {
  // Neighbouring seeds begin alike.
  const dice = new Dice(Math.imul(seed, 0x9e3779b1))
  dice.fraction()
  const spots = [dice.pick(SPOTS), ...(dice.chance(0.25) ? [dice.chance(0.6) ? TAKEOVER : dice.pick(SPOTS)] : [])]
  const leads = spots[0]!.work
  const clock = dice.chance(0.4) ? clockOf(dice) : undefined
  return {
    engine: dice.pick(engines),
    work: [dice.pick(leads), ...Array.from({ length: dice.below(3) }, () => dice.pick(WORK))],
    leaseMs: dice.pick([1_200, 1_600]),
    zombies: spots.map((each) => zombieOf(dice, each)),
    together: dice.chance(0.3),
    back: dice.pick(['when all is done', 'when all is done', 'in the middle', 'as soon as the lease is over'] as const),
    cutOff: false,
    ...(clock === undefined ? {} : { clock }),
  }
}

function zombieOf(dice: Dice, { place, at, times }: Spot): Zombie {
  return {
    place,
    boundary: { at, when: dice.pick(['before', 'after']), nth: 1 + dice.below(times) },
    kind: dice.chance(0.7) ? 'daemon' : 'command',
    dies: dice.chance(0.1),
  }
}

function clockOf(dice: Dice): ClockFault {
  const [name, clock] = dice.pick(CLOCKS)
  return {
    name,
    clock,
    whose: dice.pick(['the first', 'the last', 'all']),
    when: dice.pick(['from the beginning', 'while one is stopped']),
  }
}

/** With less in it. Who is cut off needs his errand, and the first zombie is what the case is about. */
export function* shorterThan(plan: Plan): Generator<Plan> {
  const { clock, ...rest } = plan
  if (clock !== undefined) yield rest
  if (plan.zombies.length > 1) yield { ...plan, zombies: plan.zombies.slice(0, 1) }
  if (plan.work.length > 1) yield { ...plan, work: plan.work.slice(0, -1) }
  if (plan.together) yield { ...plan, together: false }
}
