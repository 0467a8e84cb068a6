import type { StorePoint, StoreProbe } from '../../src/store/store.ts'
import { sqliteError } from '../../src/testing/faults.ts'
import type { TestEngine } from '../support/engines.ts'

const [BUSY, IOERR, FULL] = [5, 10, 13]

/** One way in which the disk or a neighbour may fail the store, and what the caller must be told. */
export interface StoreFault {
  readonly title: string
  readonly matches: (point: StorePoint) => boolean
  readonly errcode: number
  /** At every such point until it is over, not at one of them. */
  readonly lasting: boolean
  /** `done`: it is on disk and acknowledged with its right answer; otherwise the code of the error, and nothing on disk. */
  readonly answer: string
}

const at = (place: StorePoint['at'], when: StorePoint['when']) => (point: StorePoint) =>
  point.at === place && point.when === when

const SQLITE_FAULTS: readonly StoreFault[] = [
  {
    title: 'a lock that is taken for a moment',
    matches: at('begin', 'before'),
    errcode: BUSY,
    lasting: false,
    answer: 'done',
  },
  {
    title: 'a lock that never comes free',
    matches: at('begin', 'before'),
    errcode: BUSY,
    lasting: true,
    answer: 'store/busy',
  },
  {
    title: 'a disk failure at begin',
    matches: at('begin', 'before'),
    errcode: IOERR,
    lasting: false,
    answer: 'store/io',
  },
  {
    title: 'a disk failure right after begin',
    matches: at('begin', 'after'),
    errcode: IOERR,
    lasting: false,
    answer: 'store/io',
  },
  {
    title: 'a full disk at a statement',
    matches: at('statement', 'before'),
    errcode: FULL,
    lasting: false,
    answer: 'store/full',
  },
  {
    title: 'a disk failure at a statement',
    matches: at('statement', 'before'),
    errcode: IOERR,
    lasting: false,
    answer: 'store/io',
  },
  {
    title: 'a disk failure after a statement',
    matches: at('statement', 'after'),
    errcode: IOERR,
    lasting: false,
    answer: 'store/io',
  },
  {
    title: 'a full disk at commit, once',
    matches: at('commit', 'before'),
    errcode: FULL,
    lasting: false,
    answer: 'done',
  },
  {
    title: 'a full disk at every commit',
    matches: at('commit', 'before'),
    errcode: FULL,
    lasting: true,
    answer: 'store/full',
  },
  {
    title: 'a commit that failed, once',
    matches: at('commit', 'before'),
    errcode: IOERR,
    lasting: false,
    answer: 'done',
  },
  {
    title: 'a commit that fails again and again',
    matches: at('commit', 'before'),
    errcode: IOERR,
    lasting: true,
    answer: 'store/unknown-commit',
  },
  {
    title: 'a commit that is reported as failed',
    matches: at('commit', 'after'),
    errcode: IOERR,
    lasting: false,
    answer: 'done',
  },
  {
    title: 'a commit that is reported as failed for want of space',
    matches: at('commit', 'after'),
    errcode: FULL,
    lasting: true,
    answer: 'done',
  },
]

/** The table is in SQLite's codes; what another engine's wire can do to it belongs in a table of its own. */
export const FAULTS: Readonly<Record<TestEngine['name'], readonly StoreFault[]>> = {
  sqlite: SQLITE_FAULTS,
  postgres: [],
}

export interface Sickness {
  readonly probe: StoreProbe
  begin(): void
  end(): void
}

/** Fails the nth matching point between `begin` and `end`, or all of them. */
export function probeOf(fault: StoreFault, nth: number): Sickness {
  let sick = false
  let seen = 0
  return {
    probe(point) {
      if (!sick || !fault.matches(point)) return
      seen += 1
      if (fault.lasting || seen === nth) throw sqliteError(fault.errcode)
    },
    begin: () => void (sick = true),
    end: () => void (sick = false),
  }
}
