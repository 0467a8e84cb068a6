import { row, text } from './row.ts'
import { now, sql } from './sql.ts'
import { first, one, run, single } from './transition.ts'
import type { Transition } from './transition.ts'

const identityRow = row({ id: text() })

/** Which database this is, however it was copied or moved; undefined before its first use. */
export const findStoreIdentity = single(() => first(identityRow, sql`select id from store_identity`))

/** Gives the database its name, once; of several that try, the first one's stays. */
export function* nameStore(id: string): Transition<string> {
  yield* run(
    sql`insert into store_identity (singleton, id, created_at) values (1, ${id}, ${now}) on conflict do nothing`,
  )
  return (yield* one(identityRow, sql`select id from store_identity`)).id
}
