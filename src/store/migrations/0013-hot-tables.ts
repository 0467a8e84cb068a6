import { POSTGRES } from './migration.ts'
import type { Dialect, Migration } from './migration.ts'

/**
 * What PostgreSQL does for every step and every attempt besides writing it. Checking that its run is there takes a lock on that
 * run's row, a quarter of the whole cost of a step; each of them is written only where its run is found under way, in the same
 * statement, and what is forgotten has ended (test/support/invariants.ts). SQLite looks at a row that it has at hand.
 */
export const hotTables: Migration = {
  number: 13,
  name: 'hot-tables',
  statements: (d: Dialect) =>
    d === POSTGRES
      ? [
          `alter table steps drop constraint steps_run_seq_fkey`,
          // Room beside a step for its outcome: written to the same page, it needs no new entry in the index.
          `alter table steps set (fillfactor = 70)`,
          `alter table attempts drop constraint attempts_run_id_fkey`,
          // The number goes up with the fence, in the same statement, and that one is unique.
          `alter table attempts drop constraint attempts_run_id_number_key`,
        ]
      : [],
}
