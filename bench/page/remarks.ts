const A_JOB =
  'A job is a run: its row, an attempt with its fence and lease, and three events (queued, started, finished). The job of the peers is one row.'

const A_DRAIN = `${A_JOB} Its statements alone, 64 jobs in each, on a file in memory: claim 7.0 µs, attempt 6.8, its end 2.9, the end of the run 5.7, two events 3.9, the commit 4.2: 30 µs of processor time a job, as long as the best peer takes for all of its own. What each keeps: the row of a run is written twice, and is in 5 indexes; that of an attempt in 6. Of the indexes by which people look at runs (by state, by agent) each is 2.5 µs. One connection writes at a time: with nothing but these statements it would be 33,000 jobs a second, so twice the best peer is out of reach with these rows.`

const IN_BULK_ON_POSTGRES = `${A_JOB} The server's time, 512 in each statement: 18 µs for the row of a run and 6 for its event. Of those 18 the check that its thread is there is 5; with no index but its keys the row takes 11. The best peer takes 18 for all of its own, its program included. Several connections are at it at once, so that one statement is prepared while another is carried out. The best to be had: 41,000 a second for each core that the server has to itself, and the program needs the other one.`

const A_DRAIN_ON_POSTGRES = `${A_JOB} The server's time a job, 64 in each statement: claim 22 µs, attempt 19, its end 10, the end of the run 19, two events 9: 80 µs and 3.5 kB of its log. Two claims are under way at once, each for half of the places and in two round trips, so that the worker and the server are both busy. A changed row is a new entry in each index of its table; without those by which people look at runs (by state, by agent) it would be 71 µs. The best peer takes 29 µs for all of its own. The best to be had: 12,500 a second for each core that the server has to itself, with the worker on another.`

const STALLS =
  'The disk of this machine stands still now and then: of 4 kB that another process wrote and synced 25 times a second meanwhile, 2 of 100 took over 25 ms, 1 of 100 over 60, one 1.6 s. What is due just then waits for it: in six runs it was 30 to 440 ms on SQLite, 39 to 1,634 on PostgreSQL. On a file system in memory, with every sync and all else the same, in three runs each: 28 ms on SQLite, 39, 40 and 52 on PostgreSQL.'

/**
 * What stands in the way where a target is missed, by `workload, engine, what`: shown only where the figures say that it is missed.
 * A remark is a measurement, not an excuse: it names the cost and where it was seen.
 */
export const REMARKS: Readonly<Record<string, string>> = {
  'W1, SQLite, steps/s, 64 callers':
    'The raw row is one insert. A step is the outcome of the last one, the intent of the next, an event, and the check of its claim by fence, each in the same commit; the statements are joined over all callers. In a run of 60,000 steps under the profiler a step takes 27 µs: 9.5 are its statements, 9.7 its share of the commits (3 of them the sync, the others writing pages to the log and back from it), 1.4 collecting garbage, and 6.4 a function that waits, is woken and goes on. So two thirds of it are SQLite with three rows and their indexes instead of one. Tried without any sync, which is not offered, the same work came to 42,000 steps a second, a third of raw: cheaper commits do not reach the target, only fewer rows a step would. The best to be had with these rows and a sync is between the two.',
  'W1, PostgreSQL, steps/s, 64 callers':
    'As on SQLite: three rows and a check instead of one insert, and the lock under which events get their numbers in the order of the commits. The server takes 18 µs a step in one statement for 64 of them; looking for the run of each by a foreign key was 6 more.',
  'W1, PostgreSQL, a step, 1 caller':
    'Nobody shares the commit of a single caller: one round trip, with the lock that orders the events and the number of the batch in the same transaction.',
  'W2, PostgreSQL, submit to result, p50':
    'Two commits, one after the other, each synced and each one round trip: the call with its claim and the intent of its step, and the outcome with the end. Of a call on an idle machine, 0.5 ms are before the first packet, 1.5 until the intent is on disk, 0.5 around the step, 0.9 until the end is. The peer (graphile-worker 0.18.0) tells that a job is complete when its body has returned, before the end of it is written: its figure has one commit less. Beside those whose result is on disk when it is seen, ours is the first. With neither side synced, 0.35 ms of processor time are between them: a run has rows in three tables, with their indexes, where the peer inserts one row and deletes it. The best to be had with an intent on disk before the step is what two synced round trips take here, 2.4 ms, and the 0.5 ms on either side.',
  'W3, SQLite, enqueue, one a call': `${A_JOB} In bulk, where nobody waits for a single one, the same rows come to the figure below: that is the best to be had one a call.`,
  'W3, SQLite, enqueue, in bulk': `${A_JOB} One connection writes at a time, 14 µs for a row of a run in its 5 indexes and an event; the raw row, in one index, takes 2.6.`,
  'W3, SQLite, drain': A_DRAIN,
  'W3, PostgreSQL, enqueue, one a call': A_JOB,
  'W3, PostgreSQL, enqueue, in bulk': IN_BULK_ON_POSTGRES,
  'W3, PostgreSQL, drain': A_DRAIN_ON_POSTGRES,
  'W4, SQLite, lateness, p99': STALLS,
  'W4, PostgreSQL, lateness, p99': STALLS,
  'W4, SQLite, processor time, worker and server':
    'Each firing is a line in the ledger, a run that is claimed, carried out and ended, and an event for each of them; a peer with less keeps one row a job. Its statements are nearly half of it: of these the line (stored, dispatched, settled) is 26%, the schedule (moved on, ended) 11%, the run with its attempt and events 21%, the commits 19%. The peers with the least processor time look for what is due twice or ten times a second, and are late by as much. With the statements alone it would be about 1 s, still twice the lowest.',
  'W6, SQLite, cold start against node -e 0':
    'Of the processor time above that of Node 57% is loading our own code (120 kB in three files; what they do when they are loaded is a seventh of that, and without white space they load no faster), 36% opening (settings, secrets, SQLite and its reading of the schema), 7% reading and closing. The file of the hook, which does not open it, is within 1.6 times.',
}
