import { sql } from '../../src/store/sql.ts'
import { run } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'

/** The same transition some statements later: so it meets the others of its batch in another place. */
export function late<Args extends readonly unknown[], T>(statements: number, change: (...args: Args) => Transition<T>) {
  return function* (...args: Args): Transition<T> {
    for (let count = 0; count < statements; count += 1) {
      yield* run(sql`update capacity set used = used where scope = 'nobody'`)
    }
    return yield* change(...args)
  }
}
