import { sleep, systemClock } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { systemRandomness } from '../../base/ids.ts'
import type { Randomness } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import type { TextCodec } from '../codec.ts'
import type { ChangeListener, Store, StoreProbe } from '../store.ts'
import { oneByOne } from '../transition.ts'
import type { Change } from '../transition.ts'
import type { Connection } from './connection.ts'
import { explain, isBusy } from './errors.ts'
import { GroupCommit, drive } from './group-commit.ts'
import { isUpToDate, openConnection } from './open.ts'
import { Wake } from './wake.ts'

export interface SqliteOptions {
  /** A file, or `:memory:`. */
  readonly path: string
  readonly clock?: Clock
  readonly random?: Randomness
  readonly probe?: StoreProbe
  readonly codec?: TextCodec
}

/** Embedded SQLite: WAL, every commit synced, several processes on one file. */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { path, clock = systemClock, random = systemRandomness, probe, codec } = options
  const open = () => openConnection(path, clock, probe, codec)
  const connection = await openMigrated(path, clock, open)
  const wake = new Wake(path === ':memory:' ? undefined : `${path}-wake`, clock, () =>
    dataVersion(commits.connection()),
  )
  const commits = new GroupCommit(connection, {
    path,
    clock,
    random,
    open,
    onCommit: (topics) => wake.announce(topics),
  })
  return new SqliteStore(path, commits, wake)
}

class SqliteStore implements Store {
  readonly engine = 'sqlite'
  readonly #path: string
  readonly #commits: GroupCommit
  readonly #wake: Wake

  constructor(path: string, commits: GroupCommit, wake: Wake) {
    this.#path = path
    this.#commits = commits
    this.#wake = wake
  }

  apply<Args extends readonly unknown[], T>(change: Change<Args, T>, ...args: Args): Promise<T> {
    return this.#commits.submit(change, args)
  }

  async read<Args extends readonly unknown[], T>(look: Change<Args, T>, ...args: Args): Promise<T> {
    try {
      return readOn(this.#commits.connection(), look, args)
    } catch (error) {
      throw explain(error, this.#path)
    }
  }

  onChange(listener: ChangeListener): () => void {
    return this.#wake.listen(listener)
  }

  async warmUp(): Promise<void> {
    const { growLog } = await import('./log.ts')
    growLog(this.#commits.connection(), this.#path)
  }

  async check(): Promise<string[]> {
    try {
      const answer = this.#commits.connection().ask('pragma quick_check')
      return answer === 'ok' ? [] : [String(answer)]
    } catch (error) {
      throw explain(error, this.#path)
    }
  }

  /** One read transaction, so a snapshot; writers of other processes are not held up. */
  async copyTo(path: string): Promise<void> {
    try {
      this.#commits.connection().script(`vacuum into '${path.replaceAll("'", "''")}'`)
    } catch (error) {
      throw explain(error, path)
    }
  }

  async close(): Promise<void> {
    await this.#commits.close()
    this.#wake.flush()
    this.#wake.close()
  }
}

/** One statement is its own snapshot; several get a read transaction. Synchronous, so no batch runs in between. */
function readOn<Args extends readonly unknown[], T>(connection: Connection, look: Change<Args, T>, args: Args): T {
  const at = connection.instant()
  if (typeof look !== 'function') return connection.look(look.single(...args), at)
  const nested = connection.inTransaction
  if (!nested) connection.exec('begin')
  try {
    return drive(oneByOne(look(...args)), (query) => connection.look(query, at))
  } finally {
    if (!nested) connection.exec('rollback')
  }
}

async function openMigrated(path: string, clock: Clock, open: () => Connection): Promise<Connection> {
  const deadline = clock.monotonicMs() + LIMITS.lockWaitMs
  for (;;) {
    let connection: Connection | undefined
    try {
      connection = open()
      if (!isUpToDate(connection)) (await import('./migrate.ts')).migrate(connection)
      return connection
    } catch (error) {
      connection?.close()
      if (!isBusy(error) || clock.monotonicMs() > deadline) throw explain(error, path)
      await sleep(clock, 10)
    }
  }
}

const dataVersion = (connection: Connection) => connection.ask('pragma data_version')
