import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'

import type { Clock, Instant } from '../../base/clock.ts'
import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { opened, sealed } from '../codec.ts'
import type { TextCodec } from '../codec.ts'
import { grouped, handedOut, rowsGiven } from '../joined.ts'
import type { Group } from '../joined.ts'
import type { Gathered } from '../rounds.ts'
import { now, writesSomething } from '../sql.ts'
import type { Sql, SqlValue } from '../sql.ts'
import type { StoreProbe } from '../store.ts'
import type { Answer, Joint, Query, Values } from '../transition.ts'
import { renderJoint } from './joint.ts'

/** Statements without a template of their own (built from fragments) are cached by text, this many at most. */
const MOST_BUILT_STATEMENTS = 400

const MARK = `insert into writers (id, batch, used_at) values (?1, ?2, ?3)
  on conflict (id) do update set batch = excluded.batch, used_at = excluded.used_at`

interface Prepared {
  readonly statement: StatementSync
  readonly text: string
  readonly writes: boolean
}

/** Rows in one joint statement: twice as many are hardly cheaper each, and every size is a statement of its own. */
const MOST_ROWS_LOG2 = 6

/** A likely statement did not change every row that it was given. */
export class Unlikely extends Error {}

/** One SQLite connection: prepares each statement once and runs it synchronously. */
export class Connection {
  readonly #database: DatabaseSync
  readonly #clock: Clock
  readonly #probe: StoreProbe | undefined
  readonly #codec: TextCodec | undefined
  readonly #byTemplate = new WeakMap<readonly string[], Prepared>()
  readonly #byText = new Map<string, Prepared>()
  /** By how many rows they take, one, two, four …, and whether they return them. */
  readonly #byJoint = new WeakMap<Joint, (StatementSync | undefined)[]>()
  #changes = 0
  #topics = new Set<string>()

  constructor(path: string, clock: Clock, probe?: StoreProbe, codec?: TextCodec) {
    const { DatabaseSync: Database } = process.getBuiltinModule('node:sqlite')
    this.#database = new Database(path, { timeout: LIMITS.blockingWaitMs, enableForeignKeyConstraints: true })
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

  /** A migration may say anew what a table's checks are; nobody else may. */
  openSchema(): void {
    this.#database.enableDefensive(false)
  }

  sealSchema(): void {
    if (this.#database.isOpen) this.#database.enableDefensive(true)
  }

  /** Whether every statement is a moment of its own, at which a test may stop. */
  get isProbed(): boolean {
    return this.#probe !== undefined
  }

  execute<T>(query: Query<T>, at: Instant): T {
    if (query.parts !== undefined) return query.parts.map((part) => this.execute(part, at)) as T
    if (query.topic !== undefined) this.#topics.add(query.topic)
    return query.read(query.given === undefined ? this.#executePlain(query, at) : this.#executeOne(query, at))
  }

  /** A statement of every commit, by a short way; a writer's id is nobody's secret. */
  mark(writer: string, batch: number, at: Instant): void {
    const { statement, text } = this.#prepareText(MARK)
    this.#probe?.({ at: 'statement', when: 'before', text })
    statement.run(writer, batch, at)
    this.#changes += 1
    this.#probe?.({ at: 'statement', when: 'after', text })
  }

  /** Statements that do not need each other's answers, those of a kind as one. */
  executeTogether(queries: readonly Query<unknown>[], at: Instant): readonly Answer[] {
    if (queries.every(isPlain)) return queries.map((query) => this.#executePlain(query, at))
    const groups = grouped(queries, true)
    return handedOut(
      groups,
      groups.map((group) => this.#executeGroup(group, at)),
      queries.length,
    )
  }

  /** The same of what is likely to return a row, and has to. */
  executeTelling(queries: readonly Query<unknown>[], at: Instant): readonly Answer[] {
    const answers = this.executeTogether(queries, at)
    if (answers.some(({ rows }) => rows.length === 0)) throw new Unlikely()
    return answers
  }

  /** The same where nobody waits for an answer; what is likely has to be so. */
  executeLikely(gathered: Gathered, at: Instant): void {
    for (const [joint, rows] of gathered) {
      const count = countOf(joint, rows)
      const { changes } = this.#executeRows(joint, rows, at, false)
      if (joint.likely === true && changes !== count) throw new Unlikely()
    }
  }

  /** Of what listeners are told at the commit. */
  tell(topics: ReadonlySet<string>): void {
    for (const topic of topics) this.#topics.add(topic)
  }

  #executeGroup({ joint, queries, keys }: Group, at: Instant): Answer {
    if (joint === undefined) return this.#executePlain(queries[0]!, at)
    return this.#executeRows(joint, rowsGiven(queries), at, keys !== undefined)
  }

  /** As many at once as there are statements for. They are not the caller's any more. */
  #executeRows(joint: Joint, rows: Values, at: Instant, isReturning: boolean): Answer {
    const [count, width] = [countOf(joint, rows), joint.columns.length]
    const log2 = Math.min(MOST_ROWS_LOG2, 31 - Math.clz32(count))
    if (count === 1 << log2) return this.#runJoint(joint, rows, log2, at, isReturning)
    const head = this.#runJoint(joint, rows.slice(0, width << log2), log2, at, isReturning)
    const tail = this.#executeRows(joint, rows.slice(width << log2), at, isReturning)
    return { rows: [...head.rows, ...tail.rows], changes: head.changes + tail.changes }
  }

  #executePlain(query: Query<unknown>, at: Instant): Answer {
    const { statement, text, writes } = this.#prepare(query.sql)
    this.#probe?.({ at: 'statement', when: 'before', text })
    const answer = runStatement(statement, query, at, this.#codec)
    // What a writing statement returns are the rows that it changed.
    if (writes) this.#changes += query.returnsRows ? answer.rows.length : answer.changes
    this.#probe?.({ at: 'statement', when: 'after', text })
    return answer
  }

  #executeOne(query: Query<unknown>, at: Instant): Answer {
    const { joint } = query.given!
    const text = this.#probe === undefined ? '' : renderJoint(joint, 1, query.returnsRows)
    this.#probe?.({ at: 'statement', when: 'before', text })
    const answer = this.#runJoint(joint, [...query.given!.values], 0, at, query.returnsRows)
    this.#probe?.({ at: 'statement', when: 'after', text })
    return answer
  }

  #runJoint(joint: Joint, values: Values, log2: number, at: Instant, isReturning: boolean): Answer {
    if (this.#codec !== undefined) sealRows(joint, values, this.#codec)
    if (joint.many.values.includes(now)) values.push(at)
    const statement = this.#jointStatement(joint, log2, isReturning)
    const rows = isReturning ? opened(statement.all(...values), this.#codec) : []
    const changes = isReturning ? rows.length : Number(statement.run(...values).changes)
    this.#changes += changes
    return { rows, changes }
  }

  #jointStatement(joint: Joint, log2: number, isReturning: boolean): StatementSync {
    let sizes = this.#byJoint.get(joint)
    if (sizes === undefined) this.#byJoint.set(joint, (sizes = []))
    const place = log2 * 2 + (isReturning ? 1 : 0)
    return (sizes[place] ??= this.#database.prepare(renderJoint(joint, 1 << log2, isReturning)))
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

  /** As much of the log as nobody reads there any more. */
  writeBack(): void {
    this.ask('pragma wal_checkpoint(passive)')
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

const countOf = ({ columns }: Joint, rows: Values): number => rows.length / columns.length

/** As they are stored, in place. What is the same as in the row before is not looked at again. */
function sealRows({ columns }: Joint, rows: Values, codec: TextCodec): void {
  for (let column = 0; column < columns.length; column += 1) {
    if (columns[column]![1] !== 'text') continue
    let last = ''
    let kept = ''
    for (let place = column; place < rows.length; place += columns.length) {
      const value = rows[place]
      if (typeof value !== 'string') continue
      if (value !== last) kept = codec.seal((last = value))
      rows[place] = kept
    }
  }
}

const isPlain = ({ given }: Query<unknown>): boolean => given === undefined

/**
 * `?1, ?2`: numbered, since SQLite would take `$2, $1` for names in order of appearance. A limit that is plainly given is read
 * by its planner, which then plans anew at each use: 13 of the 17 µs that a short list takes (test/scale/planned-once.test.ts).
 */
function render(statement: Sql): string {
  return statement.strings.reduce((text, part, index) => {
    const given = text.endsWith('limit ') ? `?${index} + 0` : `?${index}`
    return text + given + part
  })
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
