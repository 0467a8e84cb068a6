/**
 * What SQLite is to think of our indexes. Without numbers it takes every equality for equally good, and looks for the messages of a thread
 * among all that wait, or for what was settled long ago among all that was ever settled. `analyze` would find numbers, of the day
 * on which somebody runs it; these are those of a store that has been used for a while: all rows of the index, then how many there
 * are on average for one value of its first column, of its first two, and so on.
 */
const ROWS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  runs: {
    sqlite_autoindex_runs_1: '10000000 1',
    runs_by_submit_key: '3000000 1',
    runs_queued: '1000 1000 500 1',
    runs_called: '1000 1000 500 1',
    runs_cancelling: '5 5 1',
    runs_expiring: '100 1',
    runs_reserved: '10 1',
    runs_by_thread: '10000000 10 1',
    runs_one_active: '1000 1',
    runs_one_agent: '1000 1',
    runs_resuming: '1000 1',
    runs_by_parent_run: '1000000 5',
    runs_by_state: '10000000 2000000 1',
    runs_by_agent: '10000000 500000 1',
    runs_by_end: '10000000 2',
    runs_owing: '100 5',
  },
  attempts: {
    sqlite_autoindex_attempts_1: '10000000 1',
    sqlite_autoindex_attempts_2: '10000000 1 1',
    sqlite_autoindex_attempts_3: '10000000 1 1',
    attempts_one_live: '1000 1',
    attempts_by_lease: '1000 1',
    attempts_by_worker: '1000 50',
  },
  messages: {
    sqlite_autoindex_messages_1: '10000000 1',
    sqlite_autoindex_messages_2: '10000000 10 10 1',
    messages_pending: '1000 2 1',
    messages_leased: '100 3',
    messages_of_delivery: '5000000 3',
    messages_held: '10 1',
    messages_dead: '100 1',
    messages_settled: '9000000 2',
    messages_from: '100 2 1',
    messages_by_state: '10000000 2000000 1',
    messages_by_thread: '10000000 10 10 1',
  },
  actions: {
    sqlite_autoindex_actions_1: '10000000 1',
    sqlite_autoindex_actions_2: '10000000 2 1',
    actions_by_run: '10000000 5 2 1',
    actions_by_thread: '10000000 50 2 1',
    actions_by_signature: '10000000 5 1',
    actions_failed: '100000 2 1',
    actions_open: '100 2',
    actions_once: '5000000 4 1',
    actions_undecided: '100 50 1',
    actions_repeated: '10000 1',
  },
  approvals: {
    sqlite_autoindex_approvals_1: '1000000 1',
    sqlite_autoindex_approvals_2: '1000000 1',
    approvals_pending: '100 1',
    approvals_by_run: '1000000 2',
    approvals_by_state: '1000000 200000 1',
  },
}

const quoted = (word: string) => `'${word}'`

/** `analyze` of an empty schema table makes the table for them, and reads them in. */
export const SQLITE_STATISTICS: readonly string[] = [
  'analyze sqlite_schema',
  `delete from sqlite_stat1`,
  `insert into sqlite_stat1 (tbl, idx, stat) values ${Object.entries(ROWS)
    .flatMap(([table, rows]) =>
      Object.entries(rows).map(([index, stat]) => `(${[table, index, stat].map(quoted).join(', ')})`),
    )
    .join(', ')}`,
  'analyze sqlite_schema',
]
