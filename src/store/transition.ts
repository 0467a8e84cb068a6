import { invariant } from '../base/errors.ts'
import type { Cell, Row } from './row.ts'
import type { Sql } from './sql.ts'

export interface Answer {
  readonly rows: readonly Record<string, Cell>[]
  /** How many rows the statement changed. */
  readonly changes: number
}

/** One statement and how to read its answer. `yield*` it inside a transition to get that answer. */
export class Query<T> {
  readonly sql: Sql
  /** Nothing in the transition depends on it, so an engine may keep it for the moment of the commit. */
  readonly deferred: boolean
  /** Whether rows come back; an engine may take a shorter way when none do. */
  readonly returnsRows: boolean
  readonly read: (answer: Answer) => T
  /** It locks a row: who shares its commit and asks for the same waits until this transition is over, as others wait for the commit. */
  lock?: string

  constructor(sql: Sql, returnsRows: boolean, read: (answer: Answer) => T, deferred = false) {
    this.sql = sql
    this.deferred = deferred
    this.returnsRows = returnsRows
    this.read = read
  }

  *[Symbol.iterator](): Transition<T> {
    return (yield this) as T
  }
}

/**
 * A durable change: a generator that yields statements and returns what happened. All of it is one transaction; it
 * composes with `yield*`. An engine may start it more than once (a serialization failure, a batch that was lost), so
 * nothing from the world happens inside and every id and random value comes in as an argument.
 */
export type Transition<T> = Generator<Query<unknown>, T, unknown>

/**
 * A change of exactly one statement, declared as such so that it can go in one round trip. Its answer comes with the
 * commit, so when the connection breaks both are lost, and it is run again: write it so that a second run does no harm
 * and its answer is still true, as `update … where …` does and a bare `insert` does not.
 */
export interface Single<Args extends readonly unknown[], T> {
  readonly single: (...args: Args) => Query<T>
}

export type Change<Args extends readonly unknown[], T> = ((...args: Args) => Transition<T>) | Single<Args, T>

export const single = <Args extends readonly unknown[], T>(build: (...args: Args) => Query<T>): Single<Args, T> => ({
  single: build,
})

export const first = <T>(shape: Row<T>, statement: Sql): Query<T | undefined> =>
  new Query(statement, true, ({ rows }) => (rows[0] === undefined ? undefined : shape.decode(rows[0])))

export const one = <T>(shape: Row<T>, statement: Sql): Query<T> =>
  new Query(statement, true, ({ rows }) => {
    invariant(rows[0] !== undefined, `a row was expected from: ${statement.strings.join('?')}`)
    return shape.decode(rows[0])
  })

export const all = <T>(shape: Row<T>, statement: Sql): Query<T[]> =>
  new Query(statement, true, ({ rows }) => rows.map((record) => shape.decode(record)))

/** Runs a statement for its effect and says how many rows it changed. */
export const run = (statement: Sql): Query<number> => new Query(statement, false, ({ changes }) => changes)

/** A statement whose row lock holds against everybody, also against members of the same batch. */
export function holding<T>(lock: string, query: Query<T>): Query<T> {
  query.lock = lock
  return query
}

/** A statement for the moment of the commit: its place among the transition's other statements does not matter. */
export const atCommit = (statement: Sql): Query<void> => new Query(statement, false, () => undefined, true)
