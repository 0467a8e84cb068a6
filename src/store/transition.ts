import { invariant } from '../base/errors.ts'
import type { Cell, Row } from './row.ts'
import { raw } from './sql.ts'
import type { Sql } from './sql.ts'

export interface Answer {
  readonly rows: readonly Record<string, Cell>[]
  /** How many rows the statement changed. */
  readonly changes: number
}

/**
 * One statement and how to read its answer. `yield*` it inside a transition to get that answer. `yield` alone says the same without its
 * type, and without a generator for it: for the few transitions that there are tens of thousands of in a second.
 */
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
  /** It is about one row of a joint statement: an engine may put those that share a commit into one. */
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

/** A row of a joint statement: its values, in the order of the columns; or several, one after the other. */
export type Values = (string | number | null)[]

/** A joint statement, and how one more row for it is put behind those that are there. */
export interface Giving<From extends readonly unknown[]> {
  readonly joint: Joint
  readonly put: (rows: Values, ...from: From) => void
}

/** Asks statements whose answers nobody waits for. */
export interface Ask {
  /** To put one more row to: of what is likely, and returns nothing, or is for the moment of the commit. */
  readonly rows: (joint: Joint) => Values
  /** For what is likely and returns its row: an object that becomes that row. */
  readonly row: <T extends object>(query: Query<T | undefined>) => T
  /** This process's listeners are told of it. */
  readonly tell: (topic: string) => void
}

/**
 * A change of any number of statements. Where all of them are known before the first is asked, and nobody waits for an answer, `foresee` is
 * the same in short, for an engine that hopes: it asks them in their order and returns what the change comes to if each does what it is
 * likely to do, or asks nothing and returns undefined. Where they do not, nothing of that happened, and the transition runs.
 */
export interface Course<Args extends readonly unknown[], T> {
  (...args: Args): Transition<T>
  readonly foresee?: (ask: Ask, ...args: Args) => T | undefined
}

export type Change<Args extends readonly unknown[], T> = Course<Args, T> | Single<Args, T>

export const isSingle = <Args extends readonly unknown[], T>(change: Change<Args, T>): change is Single<Args, T> =>
  typeof change !== 'function'

export const begun = <Args extends readonly unknown[], T>(change: Change<Args, T>, args: Args): Transition<T> =>
  isSingle(change) ? change.single(...args)[Symbol.iterator]() : change(...args)

/** Says what a change is likely to be. */
export const foreseen = <Args extends readonly unknown[], T>(
  course: (...args: Args) => Transition<T>,
  foresee: NonNullable<Course<NoInfer<Args>, NoInfer<T>>['foresee']>,
): Course<Args, T> => Object.assign(course, { foresee })

export const single = <Args extends readonly unknown[], T>(build: (...args: Args) => Query<T>): Single<Args, T> => ({
  single: build,
})

/** The rows that a joint statement is about. */
export const GIVEN: Sql = raw('/* given */')

/**
 * A statement about rows that are given, one or many at once: what a statement costs (the way there, parsing, planning, looking
 * for its place) is then paid once for all that share a commit.
 */
export interface Joint {
  /** What it changes. */
  readonly table: string
  /** A `word` is text of our own, a state or an id: nobody looks for secrets in it. */
  readonly columns: readonly (readonly [name: string, type: 'text' | 'word' | 'bigint'])[]
  /** What tells its rows apart, in what is given and in the table. Without it nobody waits for an answer. */
  readonly key: readonly string[]
  /** What comes back of a row besides its key. */
  readonly returns?: readonly string[]
  /**
   * Nearly always every row that was given is changed. So an engine goes on before it has the answer, as if it were so, and
   * checks it in the same transaction: if it was not, nothing of that happened, and everything is done again one by one. A row
   * that it returns is filled in when it comes: until the commit there is an object to pass on, and nothing in it.
   */
  readonly likely?: boolean
  /** Asked at the moment of the commit: nothing in the transaction depends on it, and nobody waits for it. */
  readonly atCommit?: boolean
  /**
   * From `GIVEN`, its columns called `given.…`, with its guards in `where`; besides what is given it has no values but `now`. A guard on another row is a
   * `select` of its own, or a database begins with all the rows for which it might hold and looks through what is given for each.
   */
  readonly many: Sql
}

export interface Given {
  readonly joint: Joint
  /** In the order of the columns. */
  readonly values: Readonly<Values>
}

function about<T>(query: Query<T>, joint: Joint, values: Given['values']): Query<T> {
  query.given = { joint, values }
  return query
}

/** Asks a joint statement for one row: how many it changed. */
export const change = (joint: Joint, values: Given['values']): Query<number> =>
  about(new Query(joint.many, false, changesOf), joint, values)

/** The same by what its row is made of. */
export function giving<From extends readonly unknown[]>({ joint, put }: Giving<From>, ...from: From): Query<number> {
  const row: Values = []
  put(row, ...from)
  return change(joint, row)
}

/** The same for what it returned. */
export const changed = <T>(shape: Row<T>, joint: Joint, values: Given['values']): Query<T | undefined> =>
  about(first(shape, joint.many), joint, values)

/** The same for one that is asked at the moment of the commit: its place among the transition's other statements does not matter. */
export const append = (joint: Joint, values: Given['values']): Query<void> =>
  about(new Query(joint.many, false, () => undefined, joint.atCommit === true), joint, values)

const changesOf = ({ changes }: Answer): number => changes

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

/** The same transition, each statement by itself: for whoever has no round trip to save. */
export function* oneByOne<T>(transition: Transition<T>): Transition<T> {
  let step = transition.next()
  while (step.done !== true) {
    const { parts } = step.value
    if (parts === undefined) {
      step = transition.next(yield step.value)
      continue
    }
    const answers: unknown[] = []
    for (const part of parts) answers.push(yield part)
    step = transition.next(answers)
  }
  return step.value
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
export const run = (statement: Sql): Query<number> => new Query(statement, false, changesOf)

/** A statement whose row lock holds against everybody, also against members of the same batch. */
export function holding<T>(lock: string, query: Query<T>): Query<T> {
  query.lock = lock
  return query
}
