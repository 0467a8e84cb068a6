import type { StorePoint } from '../../src/store/store.ts'
import { SimulatedDeath, sqliteError } from '../../src/testing/faults.ts'
import type { SimProcess } from './sim-process.ts'

const [BUSY, IOERR, FULL] = [5, 10, 13]

export const FAULT_KINDS = [
  'crash',
  'busy',
  'disk error',
  'disk full',
  'committed but reported as failed',
  'stopped beyond its lease',
  'delay',
  'clock step',
  'killed in a tool',
] as const
export type FaultKind = (typeof FAULT_KINDS)[number]

/** What may go wrong at each place, and how often in a thousand. */
const AT: Readonly<Record<`${StorePoint['when']} ${StorePoint['at']}`, readonly FaultKind[]>> = {
  'before begin': ['crash', 'busy', 'busy', 'disk error'],
  'after begin': ['crash', 'disk error'],
  'before statement': ['crash', 'disk error', 'disk full'],
  'after statement': ['crash', 'disk error'],
  'before commit': ['crash', 'disk error', 'disk full'],
  'after commit': ['crash', 'committed but reported as failed', 'committed but reported as failed'],
}

const ERRORS: Partial<Record<FaultKind, number>> = {
  busy: BUSY,
  'disk error': IOERR,
  'disk full': FULL,
  'committed but reported as failed': IOERR,
}

export interface InjectorOptions {
  /** At one point. */
  readonly probability: number
  readonly onFault: (kind: FaultKind, process: SimProcess) => void
}

/** Decides at every point of every store whether something goes wrong there. */
export class Injector {
  readonly #options: InjectorOptions
  on = true

  constructor(options: InjectorOptions) {
    this.#options = options
  }

  at(process: SimProcess, { when, at }: StorePoint): void {
    const { probability, onFault } = this.#options
    // There are twenty statements to a commit, and it is the moment that matters most.
    const here = at === 'commit' ? probability * 5 : probability
    if (!this.on || !process.dice.chance(here)) return
    const kind = process.dice.pick(AT[`${when} ${at}`])
    onFault(kind, process)
    if (kind === 'crash') throw new SimulatedDeath()
    throw sqliteError(ERRORS[kind] ?? IOERR)
  }

  /** Somewhere between two statements. */
  happens(kind: FaultKind, probability: number, process: SimProcess): boolean {
    if (!this.on || !process.dice.chance(probability)) return false
    this.#options.onFault(kind, process)
    return true
  }
}
