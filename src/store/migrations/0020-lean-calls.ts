import { asComparisons } from './0019-checks-by-comparison.ts'
import { POSTGRES, SQLITE } from './migration.ts'
import type { Dialect, Migration } from './migration.ts'

/**
 * What a call writes and looks at besides its own rows.
 *
 * Attempts: who looks for what is under way reads all of it, so nothing has to lie in the order of its lease, and renewing one changes no
 * index at all. And what is under way is told from what ever was: an attempt that ends leaves two small indexes, and moves in none.
 *
 * Runs, on PostgreSQL: that their thread is there was looked at by a foreign key, which locks its row, and all the calls of a function have
 * the same one. Who stores a run holds the thread where it could be forgotten (`kept`).
 */
export const leanCalls: Migration = {
  number: 20,
  name: 'lean-calls',
  statements: (d: Dialect) => [
    // All that it needs at once: one after the other, it would wait for who has the next and waits for these.
    ...(d === POSTGRES ? [`lock table threads, runs, attempts in access exclusive mode`] : []),
    `drop index attempts_by_lease`,
    `drop index attempts_by_worker`,
    ...(d === SQLITE ? ANEW : []),
    `create index attempts_by_worker on attempts (worker_id)`,
    `create index attempts_live on attempts (worker_id) where ended_at is null`,
    ...(d === SQLITE ? NUMBERS : []),
    ...(d === POSTGRES ? [`alter table runs drop constraint runs_thread_id_fkey`] : []),
  ],
}

const OUTCOMES = ['succeeded', 'failed', 'cancelled', 'parked', 'requeued', 'superseded']

const COLUMNS = `id, run_id, number, fence, worker_id, mark, slots, claimed_at, lease_until, starting_at, released_at, ended_at, outcome`

/**
 * The number of an attempt goes up with its fence, in the same statement, and that one is unique: an index less, as PostgreSQL has it
 * since `hot-tables`. SQLite cannot let go of what a table was made with, so the table is made anew, and the one that names its rows.
 */
const ANEW = [
  `create table late_results_before as select attempt_id, run_id, outcome, arrived_at from late_results`,
  `drop table late_results`,
  `create table attempts_anew (
    id text primary key,
    run_id text not null references runs (id),
    number integer not null,
    fence integer not null,
    worker_id text not null references workers (id),
    mark text not null,
    slots text not null,
    claimed_at integer not null,
    lease_until integer not null,
    starting_at integer,
    released_at integer,
    ended_at integer,
    outcome text check (${asComparisons('outcome', OUTCOMES)}),
    unique (run_id, fence),
    check ((ended_at is null) = (outcome is null))
  ) strict`,
  `insert into attempts_anew (${COLUMNS}) select ${COLUMNS} from attempts order by rowid`,
  `drop table attempts`,
  `alter table attempts_anew rename to attempts`,
  `create unique index attempts_one_live on attempts (run_id) where ended_at is null`,
  `create table late_results (
    attempt_id text primary key references attempts (id),
    run_id text not null references runs (id),
    outcome text not null,
    arrived_at integer not null
  ) strict`,
  `insert into late_results (attempt_id, run_id, outcome, arrived_at)
    select attempt_id, run_id, outcome, arrived_at from late_results_before order by rowid`,
  `drop table late_results_before`,
  `create index late_results_by_run on late_results (run_id)`,
]

/** As in sqlite-statistics.ts. */
const NUMBERS = [
  `delete from sqlite_stat1 where tbl = 'attempts'`,
  `insert into sqlite_stat1 (tbl, idx, stat) values
    ('attempts', 'sqlite_autoindex_attempts_1', '10000000 1'), ('attempts', 'sqlite_autoindex_attempts_2', '10000000 1 1'),
    ('attempts', 'attempts_one_live', '1000 1'), ('attempts', 'attempts_live', '1000 50'),
    ('attempts', 'attempts_by_worker', '10000000 100000')`,
  'analyze sqlite_schema',
]
