import type { StorePoint, StoreProbe } from '../../src/store/store.ts'
import { sqliteError } from '../../src/testing/faults.ts'
import type { TestEngine } from '../support/engines.ts'

const [BUSY, IOERR, FULL] = [5, 10, 13]

/** One way in which the disk or a neighbour may fail the store, and what the caller must be told. */
export interface StoreFault {
  readonly title: string
  readonly matches: (point: StorePoint) => boolean
  readonly atCommit: boolean
  readonly error: () => Error
  /** At every such point until it is over, not at one of them. */
  readonly lasting: boolean
  /** `done`: it is on disk and acknowledged with its right answer; otherwise the code of the error, and nothing on disk. */
  readonly answer: string
}

type Place = `${'before' | 'after'} ${StorePoint['at']}`

/** A number is SQLite's result code; letters are PostgreSQL's SQLSTATE, or the name of what befell the connection. */
function fault(
  title: string,
  place: Place,
  code: number | string,
  frequency: 'once' | 'always',
  answer: string,
): StoreFault {
  const matches = ({ at, when }: StorePoint) => `${when} ${at}` === place
  const error = () =>
    typeof code === 'number' ? sqliteError(code) : Object.assign(new Error(`simulated ${code}`), { code })
  return { title, matches, error, answer, lasting: frequency === 'always', atCommit: place.endsWith('commit') }
}

const SQLITE_FAULTS: readonly StoreFault[] = [
  fault('a lock that is taken for a moment', 'before begin', BUSY, 'once', 'done'),
  fault('a lock that never comes free', 'before begin', BUSY, 'always', 'store/busy'),
  fault('a disk failure at begin', 'before begin', IOERR, 'once', 'store/io'),
  fault('a disk failure right after begin', 'after begin', IOERR, 'once', 'store/io'),
  fault('a full disk at a statement', 'before statement', FULL, 'once', 'store/full'),
  fault('a disk failure at a statement', 'before statement', IOERR, 'once', 'store/io'),
  fault('a disk failure after a statement', 'after statement', IOERR, 'once', 'store/io'),
  fault('a full disk at commit, once', 'before commit', FULL, 'once', 'done'),
  fault('a full disk at every commit', 'before commit', FULL, 'always', 'store/full'),
  fault('a commit that failed, once', 'before commit', IOERR, 'once', 'done'),
  fault('a commit that fails again and again', 'before commit', IOERR, 'always', 'store/unknown-commit'),
  fault('a commit that is reported as failed', 'after commit', IOERR, 'once', 'done'),
  fault('a commit reported as failed for want of space', 'after commit', FULL, 'always', 'done'),
]

const [RESET, DISK_FULL, SERIALIZATION] = ['ECONNRESET', '53100', '40001']

/** What lasts is not here: the engine waits half a minute for it to end (test/postgres has a clock for that). */
const POSTGRES_FAULTS: readonly StoreFault[] = [
  fault('a connection that breaks before begin', 'before begin', RESET, 'once', 'done'),
  fault('a connection that breaks before the commit', 'before commit', RESET, 'once', 'done'),
  fault('a connection that breaks after the commit', 'after commit', RESET, 'once', 'done'),
  fault('a full disk at commit', 'before commit', DISK_FULL, 'once', 'store/full'),
]

/** At each statement of each transition: minutes. */
const POSTGRES_STATEMENT_FAULTS: readonly StoreFault[] = [
  fault('a connection that breaks before a statement', 'before statement', RESET, 'once', 'done'),
  fault('a race lost at a statement', 'after statement', SERIALIZATION, 'once', 'done'),
  fault('a full disk at a statement', 'before statement', DISK_FULL, 'once', 'store/full'),
]

export const FAULTS: Readonly<Record<TestEngine['name'], readonly StoreFault[]>> = {
  sqlite: SQLITE_FAULTS,
  postgres: process.env.HOLDFAST_DEEP === '1' ? [...POSTGRES_FAULTS, ...POSTGRES_STATEMENT_FAULTS] : POSTGRES_FAULTS,
}

export interface Sickness {
  readonly probe: StoreProbe
  begin(): void
  end(): void
}

/** Fails the nth matching point between `begin` and `end`, or all of them. */
export function probeOf({ matches, lasting, error }: StoreFault, nth: number): Sickness {
  let sick = false
  let seen = 0
  return {
    probe(point) {
      if (!sick || !matches(point)) return
      seen += 1
      if (lasting || seen === nth) throw error()
    },
    begin: () => void (sick = true),
    end: () => void (sick = false),
  }
}
