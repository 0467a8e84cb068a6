import { DatabaseSync } from 'node:sqlite'
import type { SQLInputValue, StatementSync } from 'node:sqlite'

import type { Clock, Instant } from '../../base/clock.ts'
import { HoldfastError } from '../../base/errors.ts'
import { opened, sealed } from '../codec.ts'
import type { TextCodec } from '../codec.ts'
import { now, writesSomething } from '../sql.ts'
import type { Sql, SqlValue } from '../sql.ts'
import type { StoreProbe } from '../store.ts'
import type { Query } from '../transition.ts'

/**
 * Inside SQLite a lock is waited for this long and no longer, because that wait stops the whole process; the rest of
 * the waiting is asynchronous (group-commit.ts).
 */
const BLOCKING_WAIT_MS = 4

/** Statements without a template of their own (built from fragments) are cached by text, this many at most. */
const MOST_BUILT_STATEMENTS = 400

interface Prepared {
  readonly statement: StatementSync
  readonly text: string
  readonly writes: boolean
}

/** One SQLite connection: prepares each statement once and runs it synchronously. */
export class Connection {
  readonly #database: DatabaseSync
  readonly #clock: Clock
  readonly #probe: StoreProbe | undefined
  readonly #codec: TextCodec | undefined
  readonly #byTemplate = new WeakMap<readonly string[], Prepared>()
  readonly #byText = new Map<string, Prepared>()
  #changes = 0
  #topics = new Set<string>()

  constructor(path: string, clock: Clock, probe?: StoreProbe, codec?: TextCodec) {
    this.#database = new DatabaseSync(path, { timeout: BLOCKING_WAIT_MS, enableForeignKeyConstraints: true })
    this.#clock = clock
    this.#probe = probe
    this.#codec = codec
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction
  }

  /** The instant that `now` stands for in one transition. */
  instant(): Instant {
    return this.#clock.now()
  }

  begin(): void {
    this.#probe?.({ at: 'begin', when: 'before' })
    this.exec('begin immediate')
    this.#probe?.({ at: 'begin', when: 'after' })
  }

  commit(): void {
    this.#probe?.({ at: 'commit', when: 'before' })
    this.exec('commit')
    this.#probe?.({ at: 'commit', when: 'after' })
  }

  rollback(): void {
    if (this.inTransaction) this.exec('rollback')
  }

  /** A statement without values or answer; kept prepared, since a batch repeats the same few. */
  exec(text: string): void {
    this.#prepareText(text).statement.run()
  }

  script(text: string): void {
    this.#database.exec(text)
  }

  execute<T>(query: Query<T>, at: Instant): T {
    if (query.parts !== undefined) return query.parts.map((part) => this.execute(part, at)) as T
    const prepared = this.#prepare(query.sql)
    if (query.topic !== undefined) this.#topics.add(query.topic)
    this.#probe?.({ at: 'statement', when: 'before', text: prepared.text })
    const answer = runStatement(prepared.statement, query, at, this.#codec)
    // What a writing statement returns are the rows that it changed.
    if (prepared.writes) this.#changes += query.returnsRows ? answer.rows.length : answer.changes
    this.#probe?.({ at: 'statement', when: 'after', text: prepared.text })
    return query.read(answer)
  }

  look<T>(query: Query<T>, at: Instant): T {
    const prepared = this.#prepare(query.sql)
    if (prepared.writes) {
      throw new HoldfastError('store/read-only-look', `a read tried to write: ${prepared.text}`, {
        remedy: 'use apply for changes',
      })
    }
    return query.read(runStatement(prepared.statement, query, at, this.#codec))
  }

  /** Rows changed by this connection so far; counted here, because asking SQLite costs two statements a commit. */
  changes(): number {
    return this.#changes
  }

  /** What was recorded since they were last taken. */
  takeTopics(): ReadonlySet<string> {
    const topics = this.#topics
    this.#topics = new Set()
    return topics
  }

  /** For pragmas and other small questions: the first column of the first row. */
  ask(text: string): unknown {
    const row = this.#prepareText(text).statement.get()
    return row === undefined ? undefined : Object.values(row)[0]
  }

  /**
   * Writes the whole log back into the database, synced. False when a reader with an older view prevents it: SQLite
   * says that in its answer, not by an error.
   */
  checkpoint(): boolean {
    return this.ask('pragma wal_checkpoint(full)') === 0
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close()
  }

  #prepare(statement: Sql): Prepared {
    const known = this.#byTemplate.get(statement.strings)
    if (known !== undefined) return known
    const prepared = this.#prepareText(render(statement))
    this.#byTemplate.set(statement.strings, prepared)
    return prepared
  }

  #prepareText(text: string): Prepared {
    const known = this.#byText.get(text)
    if (known !== undefined) return known
    const prepared = { text, statement: this.#database.prepare(text), writes: writesSomething(text) }
    if (this.#byText.size >= MOST_BUILT_STATEMENTS) this.#byText.delete(this.#byText.keys().next().value ?? '')
    this.#byText.set(text, prepared)
    return prepared
  }
}

/** `?1, ?2`: numbered, since SQLite would take `$2, $1` for names in order of appearance. */
function render(statement: Sql): string {
  return statement.strings.reduce((text, part, index) => `${text}?${index}${part}`)
}

function runStatement<T>(statement: StatementSync, query: Query<T>, at: Instant, codec: TextCodec | undefined) {
  const values = bind(sealed(query.sql.values, codec), at)
  if (!query.returnsRows) return { rows: [], changes: Number(statement.run(...values).changes) }
  return { rows: opened(statement.all(...values), codec), changes: 0 }
}

function bind(values: readonly SqlValue[], at: Instant): SQLInputValue[] {
  const bound = values as SQLInputValue[]
  return values.includes(now) ? bound.map((value) => ((value as SqlValue) === now ? at : value)) : bound
}
