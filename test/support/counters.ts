import { integer, row } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import { one, run } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'

const counterRow = row({ count: integer })

/**
 * Not idempotent on purpose: done twice, it shows. Two statements, so that it is a transaction like most; in a table
 * whose content no invariant speaks of.
 */
export function* increment(name: string): Transition<number> {
  yield* run(
    sql`insert into breakers (agent, cause, failures) values (${name}, 'counter', 0) on conflict (agent, cause) do nothing`,
  )
  const counter = yield* one(
    counterRow,
    sql`update breakers set failures = failures + 1 where agent = ${name} and cause = 'counter' returning failures as count`,
  )
  return counter.count
}

/** Two rows, in the order that the caller wants: with another who wants them the other way round, a deadlock. */
export function* incrementBoth(left: string, right: string): Transition<[number, number]> {
  return [yield* increment(left), yield* increment(right)]
}

export function* counted(name: string): Transition<number> {
  const counter = yield* one(
    counterRow,
    sql`select coalesce(max(failures), 0) as count from breakers where agent = ${name} and cause = 'counter'`,
  )
  return counter.count
}
