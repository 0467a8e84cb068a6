import type { Dialect, Migration } from './migration.ts'

/**
 * Whoever records an event and has its run's number names the run by that. An id is 36 characters, twice: in the row and in the index; of
 * the pages that a commit of steps writes, that index was every third.
 */
export const eventsByNumber: Migration = {
  number: 18,
  name: 'events-by-number',
  statements: (d: Dialect) => [
    `alter table events add column run_seq ${d.integer}`,
    `create index events_by_run_seq on events (run_seq, seq) where run_seq is not null`,
  ],
}
