import type { StorePoint, StoreProbe } from '../store/store.ts'

/** Thrown where a simulated process dies; from then on every further step of it throws too. */
export class SimulatedDeath extends Error {
  constructor() {
    super('simulated death')
    this.name = 'SimulatedDeath'
  }
}

/** An error with SQLite's own result code, as a sick disk would cause it. */
export function sqliteError(errcode: number, message = `simulated SQLite error ${errcode}`): Error {
  return Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR', errcode, errstr: message })
}

export interface Fault {
  /** Which of the points that match, counted from 1. */
  readonly nth: number
  readonly matches: (point: StorePoint) => boolean
  readonly act: (point: StorePoint) => void
}

/** Acts once, at the nth matching point; counts how many there were. */
export function onceAt(fault: Fault): StoreProbe & { readonly seen: () => number } {
  let seen = 0
  const probe = (point: StorePoint) => {
    if (!fault.matches(point)) return
    seen += 1
    if (seen === fault.nth) fault.act(point)
  }
  return Object.assign(probe, { seen: () => seen })
}

export interface Mortal {
  readonly probe: StoreProbe
  /** Lets it die at the nth point from now, counted from 1. */
  arm(nth: number): void
  disarm(): void
  readonly died: () => boolean
  /** How many points there were since it was armed. */
  readonly points: () => number
}

/**
 * A process that dies at the nth point, before or after it, and does nothing any more. Unarmed until `arm`. `atDeath`
 * is called at that very instant, to take away what the disk holds then.
 */
export function mortal(atDeath: (point: StorePoint) => void = () => {}): Mortal {
  let countdown = Number.POSITIVE_INFINITY
  let points = 0
  let dead = false
  return {
    probe(point) {
      points += 1
      if (dead) throw new SimulatedDeath()
      if (--countdown > 0) return
      dead = true
      atDeath(point)
      throw new SimulatedDeath()
    },
    arm(nth) {
      points = 0
      countdown = nth
    },
    disarm() {
      countdown = Number.POSITIVE_INFINITY
    },
    died: () => dead,
    points: () => points,
  }
}
