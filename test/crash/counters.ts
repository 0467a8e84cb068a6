import { integer, row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import { all, one, run, single } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'

/** The smallest transitions that show what was kept: counters by name, in a table that happens to fit. */
const counterRow = row({ scope: text(), used: integer })

export function* put(scope: string, used = 1): Transition<string> {
  yield* run(sql`insert into capacity (scope, used) values (${scope}, ${used})`)
  return scope
}

export function* increment(scope: string): Transition<number> {
  const counter = yield* one(
    counterRow,
    sql`insert into capacity (scope, used) values (${scope}, 1)
      on conflict (scope) do update set used = capacity.used + 1 returning *`,
  )
  return counter.used
}

export function* putAndThrow(scope: string): Transition<never> {
  yield* put(scope)
  throw new Error('on purpose')
}

/** SQLite's own way to lose everything: the conflict ends the whole transaction, not only the statement. */
export function* putAndEndTransaction(scope: string): Transition<void> {
  yield* put(scope)
  yield* run(sql`insert or rollback into capacity (scope, used) values (${scope}, 2)`)
}

export const counters = single(() => all(counterRow, sql`select * from capacity order by scope`))

const countRow = row({ count: integer })
export const countWriters = single(() => one(countRow, sql`select count(*) as count from writers`))
