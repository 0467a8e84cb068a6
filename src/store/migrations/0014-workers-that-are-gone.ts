import { SQLITE } from './migration.ts'
import type { Dialect, Migration } from './migration.ts'

/** What finds workers that stopped long ago, and whether anything is left that they did. */
export const workersThatAreGone: Migration = {
  number: 14,
  name: 'workers-that-are-gone',
  statements: (d: Dialect) => [
    `create index workers_stopped on workers (stopped_at) where stopped_at is not null`,
    `create index workers_not_stopped on workers (host, started_at) where stopped_at is null`,
    // Of every attempt, not only of those under way: removing a worker looks for all that refer to it.
    `drop index attempts_by_worker`,
    `create index attempts_by_worker on attempts (worker_id, ended_at)`,
    ...(d === SQLITE
      ? [
          `insert into sqlite_stat1 (tbl, idx, stat) values
            ('attempts', 'attempts_by_worker', '10000000 100000 50'), ('workers', 'workers_stopped', '10000 1'),
            ('workers', 'workers_not_stopped', '10 3 1')`,
          'analyze sqlite_schema',
        ]
      : []),
  ],
}
