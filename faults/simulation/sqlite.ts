import { DatabaseSync } from 'node:sqlite'
import type { StatementSync } from 'node:sqlite'

import type { StatementMoment } from './faults.ts'
import type { Kept, SharedFile } from './shared-file.ts'

/** What a database does, to whoever watches it; may throw instead of letting it. `undo` ends the transaction, as SQLite itself sometimes does. */
export type Watch = (moment: StatementMoment, undo: () => void) => void

interface Known {
  readonly file: SharedFile
  /** Without one nobody is told. */
  readonly watch?: Watch | undefined
}

const known = new Map<string, Known>()

/** By the very words in which the path is written: each process has its own. */
export const knowDatabase = (path: string, file: SharedFile, watch?: Watch): void =>
  void known.set(path, { file, watch })
export const forgetDatabases = (): void => known.clear()

type Run = 'run' | 'all' | 'get'

/** A statement of which somebody is told before and after each time that it runs. */
class WatchedStatement {
  readonly #statement: StatementSync
  readonly #around: (work: () => unknown) => unknown

  constructor(statement: StatementSync, around: (work: () => unknown) => unknown) {
    this.#statement = statement
    this.#around = around
  }

  run(...values: unknown[]) {
    return this.#go('run', values)
  }

  all(...values: unknown[]) {
    return this.#go('all', values)
  }

  get(...values: unknown[]) {
    return this.#go('get', values)
  }

  #go(how: Run, values: unknown[]): unknown {
    return this.#around(() => (this.#statement[how] as (...given: unknown[]) => unknown).apply(this.#statement, values))
  }
}

/** These leave a transaction as it was, or end it as the death of its process would: nothing goes wrong with them. */
const UNWATCHED = /^(rollback|savepoint|release|begin$)/

/**
 * From now on, in this whole process, each statement of a database that somebody watches is a moment at which something may go
 * wrong. The store above is the one that production has, with the statements of a commit put together.
 */
export function watchSqlite(): void {
  const builtin = process.getBuiltinModule('node:sqlite')
  const watched = { ...builtin, DatabaseSync: WatchedDatabase }
  const getBuiltinModule = process.getBuiltinModule.bind(process) as (name: string) => unknown
  const get = (name: string) => (name === 'node:sqlite' ? watched : getBuiltinModule(name))
  process.getBuiltinModule = get as typeof process.getBuiltinModule
}

/** What the store asks of a database; of one that nobody knows it is the real one. */
class WatchedDatabase {
  readonly #known!: Known
  #kept: Kept | undefined
  #isWriting = false

  constructor(path: string, options?: ConstructorParameters<typeof DatabaseSync>[1]) {
    const mine = known.get(path)
    if (mine === undefined) return new DatabaseSync(path, options) as unknown as WatchedDatabase
    mine.watch?.('open', () => {})
    this.#known = mine
    this.#kept = mine.file.take(options)
  }

  get isOpen(): boolean {
    return this.#kept !== undefined
  }

  get isTransaction(): boolean {
    return this.#open().database.isTransaction
  }

  exec(text: string): void {
    this.#open().database.exec(text)
  }

  close(): void {
    this.#known.file.giveBack(this.#open())
    this.#kept = undefined
  }

  prepare(text: string): StatementSync {
    const statement = this.#prepare(text)
    const { watch } = this.#known
    const isWatched = watch !== undefined && !UNWATCHED.test(text)
    const around = isWatched ? (work: () => unknown) => this.#around(watch, text, work) : this.#whileOpen
    return new WatchedStatement(statement, around) as unknown as StatementSync
  }

  #prepare(text: string): StatementSync {
    const { database, statements } = this.#open()
    const prepared = statements.get(text) ?? database.prepare(text)
    statements.set(text, prepared)
    return prepared
  }

  readonly #whileOpen = (work: () => unknown): unknown => {
    this.#open()
    return work()
  }

  #open(): Kept {
    if (this.#kept === undefined) throw new Error('database is not open')
    return this.#kept
  }

  #around(watch: Watch, text: string, work: () => unknown): unknown {
    const undo = () => {
      if (this.isTransaction) this.exec('rollback')
    }
    const at = this.#kindOf(text)
    watch(`before ${at}`, undo)
    const answer = this.#whileOpen(work)
    this.#isWriting = at === 'begin' || (this.#isWriting && at !== 'commit')
    watch(`after ${at}`, undo)
    return answer
  }

  #kindOf(text: string): 'begin' | 'statement' | 'commit' | 'read' {
    if (text === 'begin immediate') return 'begin'
    if (text === 'commit') return 'commit'
    return this.#isWriting && this.isTransaction ? 'statement' : 'read'
  }
}
