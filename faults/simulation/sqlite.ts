import type { DatabaseSync, StatementSync } from 'node:sqlite'

import type { StatementMoment } from './faults.ts'

/** What a database does, to whoever watches it; may throw instead of letting it. `undo` ends the transaction, as SQLite itself sometimes does. */
export type Watch = (moment: StatementMoment, undo: () => void) => void

const watches = new Map<string, Watch>()

/** By the very words in which the path is written: each process has its own. */
export const watchDatabase = (path: string, watch: Watch): void => void watches.set(path, watch)
export const forgetDatabases = (): void => watches.clear()

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
  const watched = { ...builtin, DatabaseSync: watchedDatabase(builtin.DatabaseSync) }
  const getBuiltinModule = process.getBuiltinModule.bind(process) as (name: string) => unknown
  const get = (name: string) => (name === 'node:sqlite' ? watched : getBuiltinModule(name))
  process.getBuiltinModule = get as typeof process.getBuiltinModule
}

function watchedDatabase(Database: typeof DatabaseSync): typeof DatabaseSync {
  return class extends Database {
    readonly #watch: Watch | undefined
    #isWriting = false

    constructor(path: string, options?: ConstructorParameters<typeof DatabaseSync>[1]) {
      const watch = watches.get(path)
      watch?.('open', () => {})
      super(path, options)
      this.#watch = watch
    }

    override prepare(text: string): StatementSync {
      const statement = super.prepare(text)
      const watch = this.#watch
      if (watch === undefined || UNWATCHED.test(text)) return statement
      const around = (work: () => unknown) => this.#around(watch, text, work)
      return new WatchedStatement(statement, around) as unknown as StatementSync
    }

    #around(watch: Watch, text: string, work: () => unknown): unknown {
      const undo = () => {
        if (this.isTransaction) this.exec('rollback')
      }
      const at = this.#kindOf(text)
      watch(`before ${at}`, undo)
      const answer = work()
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
}
