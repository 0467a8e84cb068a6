const A_JOB =
  'A job is a run: its row, an attempt with its fence and lease, and three events (queued, started, finished). The job of the peers is one row.'

/**
 * What stands in the way where a target is missed, by `workload, engine, what`: shown only where the figures say that it is missed.
 * A remark is a measurement, not an excuse: it names the cost and where it was seen.
 */
export const REMARKS: Readonly<Record<string, string>> = {
  'W1, SQLite, steps/s, 64 callers':
    'The raw row is one insert. A step is the outcome of the last one, the intent of the next, an event, and the check of its claim by fence, each in the same commit; the statements are joined over all callers, and what is left is the work of the rows themselves.',
  'W1, PostgreSQL, steps/s, 64 callers':
    'As on SQLite: three rows and a check instead of one insert, and the lock under which events get their numbers in the order of the commits.',
  'W1, PostgreSQL, a step, 1 caller':
    'Nobody shares the commit of a single caller: one round trip, with the lock that orders the events and the number of the batch in the same transaction.',
  'W3, SQLite, enqueue, one a call': A_JOB,
  'W3, SQLite, enqueue, in bulk': A_JOB,
  'W3, SQLite, drain': A_JOB,
  'W3, PostgreSQL, enqueue, one a call': A_JOB,
  'W3, PostgreSQL, enqueue, in bulk': A_JOB,
  'W3, PostgreSQL, drain': A_JOB,
  'W4, SQLite, processor time, worker and server':
    'Each firing is a line in the ledger, a run that is claimed, carried out and ended, and an event for each of them; a peer with less keeps one row a job.',
  'W6, SQLite, cold start against node -e 0':
    'What is left above Node is loading our own code and opening the database; the file of the hook, which does not open it, is within 1.6 times.',
}
