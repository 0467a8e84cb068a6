const A_JOB =
  'A job is a run: its row, an attempt with its fence and lease, and three events (queued, started, finished). The job of the peers is one row.'

const ENGINE =
  'the texts that are looked through for secrets, putting the statements of all callers into one, and collecting garbage'

const CALLERS = `callers that wait and are woken, ${ENGINE}`

const STALLS =
  'The disk of this machine stands still now and then: of 4 kB that another process wrote and synced 25 times a second meanwhile, 2 of 100 took over 25 ms, 1 of 100 over 60, one 1.6 s. What is due just then waits for it: in six runs it was 30 to 440 ms on SQLite, 39 to 1,634 on PostgreSQL. On a file system in memory, with every sync and all else the same, in three runs each: 28 ms on SQLite, 39, 40 and 52 on PostgreSQL.'

/** Something that is measured beside the others, by its name there, and the name of the figure. */
export interface Beside {
  readonly id: string
  readonly workload: string
  readonly name: string
  readonly what: string
}

/** A remark is a measurement, not an excuse: it names the cost and where it was seen. */
interface Remark {
  /** What is done for the figure. */
  readonly work: string
  /** What is between the statements and the product, where the limit is measured (bench/limits). */
  readonly between?: string
  /** Its rows without the product. */
  readonly byHand?: Beside
  /** The best peer, where what it tells is as much as the others tell. */
  readonly sameEnd?: Beside
  readonly note?: string
}

/** What stands in the way where a target is missed, by `workload, engine, what`: shown only where the figures say that it is missed. */
export const REMARKS: Readonly<Record<string, Remark>> = {
  'W1, SQLite, steps/s, 64 callers': {
    work: 'The raw row is one insert. A step is the outcome of the last one, the intent of the next, an event, and the check of its claim by fence, in the same commit.',
    between: `a function that waits for each of its steps, is woken and goes on, ${ENGINE}`,
    byHand: {
      id: 'holdfast-rows',
      workload: 'w1c64',
      name: 'stepsPerSec',
      what: 'a program for this workload alone, with one promise a step, of which nobody could cancel a run, take one over or keep a secret out',
    },
    note: 'The workload is over after 5,120 steps, a fifth of a second, in a process that has just begun. In trials at that size (medians of nine runs, one quiet quarter of an hour) 64 calls of ten steps took 18.2 ms: 5.2 in statements, 6.3 in commits, 6.7 in ours; 70,000 steps later ours took 3.5, so half of it is code that is not compiled yet, and the whole came to 48,700 steps a second where it began with 35,300. With a disk that costs nothing it would be a third more (42,600 instead of 32,659, on another day). A sync by another thread could come near that, and is not offered ([decisions](decisions/README.md)): others would see what is not on disk yet.',
  },
  'W1, PostgreSQL, steps/s, 64 callers': {
    work: 'As on SQLite: three rows and a check instead of one insert, and the lock under which events get their numbers in the order of the commits.',
  },
  'W1, PostgreSQL, a step, 1 caller': {
    work: 'Nobody shares the commit of a single caller: one round trip, with the lock that orders the events and the number of the batch in the same transaction. In a profile the processes of the server have 0.27 ms of processor time for each commit, a third of it the kernel’s; the rest is the setting up and ending of a plan of four changes, in which no place stands out (the most is 3 %, where the checks of the tables are read).',
    between: 'the texts of the statement and its packet, its answer, and waking the function',
  },
  'W2, PostgreSQL, submit to result, p50': {
    work: 'Two commits, one after the other, each synced and each one round trip: the call with its claim and the intent of its step, and the outcome with the end.',
    between:
      'making the call and its texts before the first packet, and waking the function between the commits (in a profile 0.5 ms each)',
    sameEnd: {
      id: 'graphile-worker-end',
      workload: 'w2',
      name: 'p50Ms',
      what: 'The peer (graphile-worker 0.18.0) tells that a job is complete when its body has returned, before the end of it is written: its figure has one commit less. Where that end is waited for',
    },
  },
  'W3, SQLite, enqueue, one a call': { work: A_JOB, between: CALLERS },
  'W3, SQLite, enqueue, in bulk': {
    work: `${A_JOB} Stored here are the row, in its 5 indexes, and the first event; one connection writes at a time.`,
    between: 'ids, and the texts that are looked through for secrets',
  },
  'W3, SQLite, drain': {
    work: `${A_JOB} The row of a run is written twice here, and is in 5 indexes; that of an attempt twice, in 5; one connection writes at a time.`,
    between: CALLERS,
  },
  'W3, PostgreSQL, enqueue, one a call': { work: A_JOB },
  'W3, PostgreSQL, enqueue, in bulk': {
    work: `${A_JOB} Stored here are the row and the first event, on several connections at once. In a profile the server took 18 µs for the row and 6 for its event, 5 of them for a foreign key that is gone since; the best peer takes 18 for all of its own, its program included.`,
    between: 'ids, and the texts that are looked through for secrets',
    note: 'By that profile, less the 5, a server with two cores to itself would come to 105,000 a second.',
  },
  'W3, PostgreSQL, drain': {
    work: `${A_JOB} Two claims are under way at once. A changed row is a new entry in each index of its table: in a profile the server takes 80 µs a job, the best peer 29 for all of its own.`,
    between: CALLERS,
    note: 'By that profile a server with two cores to itself would come to 25,000 a second.',
  },
  'W4, SQLite, lateness, p99': { work: STALLS },
  'W4, PostgreSQL, lateness, p99': { work: STALLS },
  'W4, SQLite, processor time, worker and server': {
    work: 'Each firing is a line in the ledger, a run that is claimed, carried out and ended, and an event for each of them; a peer with less keeps one row a job.',
    between: 'timers, looking for what is due, and functions that are woken',
    note: 'The peers with the least processor time look for what is due twice or ten times a second, and are late by as much.',
  },
  'W6, SQLite, cold start against node -e 0': {
    work: 'Of the processor time above that of Node 57% is loading our own code (120 kB in three files; what they do when they are loaded is a seventh of that, and without white space they load no faster), 36% opening (settings, secrets, SQLite and its reading of the schema), 7% reading and closing. The file of the hook, which does not open it, is within 1.6 times.',
  },
}
