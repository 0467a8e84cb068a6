/** Everything has a limit; this is where they are, each with its reason. */
export const LIMITS = {
  /** Transitions in one commit. Beyond this the sync's cost is spread thin enough, and latency starts to grow. */
  batchMembers: 256,
  /** How long one commit may gather work while it holds the write lock that other processes wait for. */
  batchMs: 10,
  /** A process waits this long for another's write lock before it says `store/busy`. */
  lockWaitMs: 30_000,
  /** Look for other processes' commits this often when no file notification came (network mounts, lost events). */
  changePollMs: 500,
  /** Pokes of other processes are gathered this long: a burst of commits wakes them once. */
  wakeGatherMs: 2,

  /** PostgreSQL: connections of one process, and how many of them write at once (the others wait and share a commit). */
  poolConnections: 10,
  writingConnections: 3,
  connectMs: 5_000,
  /** A listening connection can die without a word (a router that forgot it); this often it is asked. */
  earCheckMs: 5_000,
  /** No statement of ours is long; one that is has met a sick server. */
  statementMs: 30_000,
  /** A row lock that is not to be had for this long is given up and the transition started again. */
  rowLockMs: 5_000,
  /** A worker that stops in the middle of a transaction loses it, and its locks, after this. */
  idleTransactionMs: 10_000,
  /** How often a transition that lost against another is started again. */
  restarts: 8,

  /** A worker that is gone is noticed after this; CONTRACT promises takeover within 30 s. */
  leaseMs: 15_000,
  /** Renewals a lease: two may fail before the third must succeed. */
  renewalsPerLease: 3,
  /** The share of a lease after which a worker that could not renew stops its own processes. */
  selfFenceShare: 0.7,
  /** The share of a lease that they then get to end by themselves; what is left is for killing them. */
  lostGraceShare: 0.15,
  /** A run whose attempts end without ever having started its command is given up after this many. */
  attempts: 5,
  /** A run that could not be carried out this often, by whichever worker, has met a defect of ours. */
  recoveries: 20,
  /** Runs that one claim may end because a breaker is open, so that a claim stays a short transaction. */
  refusalsPerClaim: 50,
  /** Queued runs; a caller that gets `capacity/backlog-full` can slow down, a full disk cannot be undone. */
  backlog: 10_000,
  /** Bytes of one submitted request, so that a row stays a row. */
  requestBytes: 256 * 1024,
  /** Names chosen by people: agents, threads, keys. */
  nameLength: 200,

  /** How often one call, failing each time, is performed in a run: after that the model is told to do something else. */
  sameFailures: 3,
  /** Model calls of one run: an agent that has not come to an end by then goes in circles. */
  turns: 200,
  /** Reads of one reply that run at the same time. */
  readsTogether: 8,
  /** Messages that one turn takes from the inbox; the rest wait for the next. */
  messagesPerTurn: 20,
  /** What a model is shown of one tool's result. */
  resultCharacters: 60_000,

  /** Consecutive authentication failures that open an agent's breaker. */
  breakerFailures: 3,
  breakerFirstMs: 30_000,
  breakerLongestMs: 300_000,

  /** What a completion tells the parent of a run's output; the rest stays with the run. 32 KiB bounds a message. */
  summaryCharacters: 8_000,
  /** From TERM to KILL when a command is told to stop. */
  graceMs: 5_000,
  /** A draining daemon waits this long for its running commands before it hands them over. */
  drainMs: 10_000,
  /** Large outputs and fences of paused workers are kept this long after the command. */
  remainsKeptMs: 14 * 86_400_000,
  /** Rows in one page of a listing. */
  page: 100,

  // Model calls (src/model).
  /** The first try and this many more. */
  modelRetries: 3,
  /** The first wait before another try; each further one is twice as long. */
  modelFirstWaitMs: 1_000,
  /** What chance may add to a wait, as a share of it, so that calls that failed together do not return together. */
  modelJitter: 0.25,
  /** The longest wait that holds a worker; for a longer one the run is parked. */
  modelWaitMs: 60_000,
  /** All waits of one call together, for a quota that is blocked again and again. */
  modelWaitsMs: 300_000,
  /** One try: no answer is that long, so what hangs is a connection that died without a word. */
  modelTryMs: 600_000,
  /** A cancelled call may still say what it cost; then it is left behind. */
  modelLastWordsMs: 100,
  /** Beyond this a Retry-After is not believed: the longest windows that providers have are weeks. */
  retryAfterMs: 8 * 86_400_000,
  /** After a rate limit the calls that waited follow each other at this distance: a provider says no faster than that. */
  quotaSpacingMs: 500,
  /** And for at least this long, though the first one succeeded: runs that were parked are woken a little later. */
  quotaRecoveryMs: 10_000,
} as const
