import { invariant } from '../base/errors.ts'
import type { Cell, Row } from './row.ts'
import { raw } from './sql.ts'
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
  /** What this process's listeners are told of the commit. */
  topic?: string
  /** Several that do not need each other's answers, asked in one go. */
  parts?: readonly Query<unknown>[]
  /** It is about one row, and has a form for many: an engine may put those that share a commit into one statement. */
  given?: Given

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

/** The rows of a joint statement, in its form for many. */
export const GIVEN: Sql = raw('/* given */')

/** A statement about one row that can be asked for many rows at once. */
export interface Joint {
  readonly columns: readonly (readonly [name: string, type: 'text' | 'bigint'])[]
  /** What tells its rows apart; the same columns are in what it returns. Without it nobody waits for an answer. */
  readonly key: readonly string[]
  /** Over the rows `given`; besides those it has no values but `now`. */
  readonly many: Sql
}

export interface Given {
  readonly joint: Joint
  /** In the order of the columns. */
  readonly values: readonly (string | number | null)[]
}

/** Makes a query joint: `query` is about the row of `values`, and what it returns has the columns of the key. */
export function jointly<T>(query: Query<T>, joint: Joint, values: Given['values']): Query<T> {
  query.given = { joint, values }
  return query
}

/** Asks for all of them in one round trip: none needs another's answer. They happen in this order. */
export function* together<const Parts extends readonly Query<unknown>[]>(
  parts: Parts,
): Transition<{ -readonly [Key in keyof Parts]: Parts[Key] extends Query<infer T> ? T : never }> {
  const [first] = parts
  if (first === undefined) return [] as never
  const all = new Query<unknown>(first.sql, true, () => undefined)
  all.parts = parts
  return (yield all) as never
}

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
