/** Everything has a limit; this is where they are, each with its reason. */
export const LIMITS = {
  /** Transitions in one commit. Beyond this the sync's cost is spread thin enough, and latency starts to grow. */
  batchMembers: 256,
  /** On PostgreSQL: rows in one commit, about. Beyond this more of them are hardly cheaper, and another connection could be at work. */
  batchRows: 512,
  /** On SQLite: statements of those that run side by side, with one for all of a kind. About a millisecond of work. */
  sideBySide: 512,
  /** How long one commit may gather work while it holds the write lock that other processes wait for. */
  batchMs: 10,
  /** A process waits this long for another's write lock before it says `store/busy`. */
  lockWaitMs: 30_000,
  /** Inside of SQLite a lock is waited for so long and no longer: that wait stops the whole process. The rest of the waiting is asynchronous. */
  blockingWaitMs: 4,
  /** A new database is switched to its write-ahead log under a lock; of several processes that open it together each waits so long. */
  openWaitMs: 5_000,
  /** On SQLite: the log is written back into the database within a commit when it has so many pages (16 MB), and begins again at its start. */
  logPages: 4_000,
  /** It is written back earlier in a moment of rest: once it has so many pages, about, and nobody has committed anything for so long. */
  restLogPages: 1_000,
  restMs: 50,
  /** A process that died leaves its writer's row, which says what its last commit was. Nobody asks for it so long after that. */
  writersKeptMs: 7 * 86_400_000,
  /** Look for other processes' commits this often when no file notification came (network mounts, lost events). */
  changePollMs: 500,
  /** Pokes of other processes are gathered this long: a burst of commits wakes them once. */
  wakeGatherMs: 2,
  /** So long where nobody waits for what was committed, as for a step of a function: whoever follows events there has them this much later. */
  quietWakeGatherMs: 10,

  /** PostgreSQL: connections of one process, and how many of them write at once (the others wait and share a commit). */
  poolConnections: 10,
  writingConnections: 3,
  /** After a commit its connection is at hand for the next one so long, before the others get it. */
  keptConnectionMs: 100,
  /** A server that takes longer to accept a connection, or to say a word when its own time limit is over, counts as away. */
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

  /** A worker that is gone is noticed after this; taken over within 30 s is what scripts may rely on. */
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
  /** One argument of a command: the kernel's own limit is 128 KiB. */
  argumentBytes: 120 * 1024,
  /** Names chosen by people: agents, threads, keys. */
  nameLength: 200,

  /** How long a person has to answer; a weekend fits into it. */
  approvalMs: 7 * 86_400_000,
  // Schedules (src/schedule).
  /** More often than this is a loop, not a schedule. */
  everyLeastMs: 1_000,
  /** What is later than this was missed, unless a schedule says otherwise: a restart takes less. */
  misfireGraceMs: 60_000,
  /** A firing that failed for now: how often it is tried again, the first wait, and how the waits grow. */
  scheduleRetries: 3,
  scheduleRetryMs: 200,
  scheduleRetryFactor: 2,
  /** Failures in a row after which a schedule pauses by itself: by then somebody should look. */
  scheduleFailures: 5,
  /** Missed instants of a cron rule are counted up to here; beyond it the number says nothing more. */
  instantsCounted: 200,
  /** Missed instants that may fire one after the other. */
  catchUpMost: 100,
  /** Cron expressions that are kept parsed. */
  cronsParsed: 1_000,
  /** Firings that are begun together: they share a commit. */
  firingsTogether: 128,
  /** After a commit the next instant is looked up at once, and then again after this at the earliest. */
  scheduleLookMs: 10,
  /**
   * After a firing the next ones are gathered this long, to share their commits: with 200 a second it halves what they cost, and
   * none is later by more than this. One that comes after a pause is not gathered.
   */
  scheduleGatherMs: 25,
  /** The longest sleep of the timer: a wall clock that was set is noticed by then. */
  scheduleSleepMs: 15_000,
  /** Follow-ups of one thread: pending, and asked for within a day. More is a loop. */
  followupsPending: 25,
  followupsADay: 100,
  /** Bounds of the delay that an agent may ask for. */
  followupLeastMs: 60_000,
  followupMostMs: 86_400_000,
  /** An instant that is further ahead than a year is a typing mistake. */
  followupFarMs: 366 * 86_400_000,
  /** Jobs of one thread that are not over: as many as a person can look through; a model that makes more goes in circles. */
  jobsAThread: 20,
  /** An agent's job may come once a minute at most: each of its turns costs money. */
  jobEveryLeastMs: 60_000,
  /** What was settled is kept this long. */
  occurrencesKeptMs: 90 * 86_400_000,

  /** A notice to a person outside: how often it is tried, the first wait (each is twice the last), and what one may take. */
  noticeTries: 5,
  noticeFirstMs: 30_000,
  noticeMs: 10_000,
  /** What failed longer ago is no news: who turns notices on is not told of every firing that ever failed. */
  noticeNewsMs: 86_400_000,
  /** How often one call, failing each time, is performed in a run: after that the model is told to do something else. */
  sameFailures: 3,
  /** Model calls of one run: an agent that has not come to an end by then goes in circles. */
  turns: 200,
  /** Input and output of one run: 200 calls, each shown 50,000 tokens. */
  runTokens: 10_000_000,
  /** More than this, 10 USD, no single answer should cost without somebody having said so. */
  runCostMicrousd: 10_000_000,
  /** What has been at work for a day, waiting excluded, is stuck. */
  runMs: 86_400_000,
  /** Replies in a row that the model's own limit cut off: a text in four parts is long, one in five is a loop. */
  truncatedReplies: 4,
  /** Empty replies in a row: one happens, a second is how this model answers this conversation. */
  emptyReplies: 2,
  /** Arguments of one call: a file that is written is below this, a model that repeats itself is not. */
  argumentCharacters: 1_000_000,
  /** What is shown, for good, of arguments that cannot be used. */
  unusableCharacters: 500,

  /** The window of a model that nobody knows: most have more. */
  contextTokens: 150_000,
  /** A larger window is used up to here unless somebody says more: what is shown is paid for at every call. */
  contextTokensMost: 400_000,
  /** The share of the window that a request may fill; the rest is for the reply and for what an estimate misses. */
  contextShare: 0.8,
  /** The share of the window that stays word for word when the older part is summarised. */
  contextKeptShare: 0.25,
  /** A rule of thumb for English and for code; providers' own counts replace it where there are any. */
  charactersPerToken: 4,
  /** What a summary is made from: of each result in the older part so many characters. */
  summarisedResultCharacters: 4_000,
  /** An outline made without a model has so much of each message. */
  outlineCharacters: 400,
  /** Open matters of one kind that a model is told of; with more it would not see the others. */
  openMatters: 30,
  /** Reads of one reply that run at the same time. */
  readsTogether: 8,
  /** Messages that one turn takes from the inbox; the rest wait for the next. */
  messagesPerTurn: 20,
  /** Levels of delegation: each multiplies what the one above it costs, and a mistake with it. */
  delegationDepth: 4,
  /** Children of one run at the same time; more than anybody can follow, and each may have as many. */
  children: 20,
  /** What a model is shown of one tool's result. */
  resultCharacters: 60_000,

  /** Consecutive authentication failures that open an agent's breaker. */
  breakerFailures: 3,
  breakerFirstMs: 30_000,
  breakerLongestMs: 300_000,

  /** Text in a message; the whole of a longer one is attached, to be fetched by who wants it. */
  messageBytes: 32 * 1024,
  /** A hook's answer that has not arrived by then never will: it has a few seconds itself. */
  answerOnItsWayMs: 60_000,
  /** Ends of turns in a row that messages may turn into another one; after that a session comes to rest. */
  blocksInARow: 3,
  /** What one delivery puts in front of a model; the rest is announced and comes with the next. */
  deliveryBytes: 64 * 1024,
  /** How often the recipient of a message is looked for that is not known yet, and the first wait; each is twice the last. */
  heldAttempts: 5,
  heldFirstMs: 5_000,
  /** What a client's hook may say in one event. A tool's result is part of it, and it is kept in memory once. */
  hookBytes: 4 * 1024 * 1024,
  /** Of what a hook said and nobody understood, so much is kept: enough to see what it was. */
  misheardBytes: 500,
  /** The end of a client's transcript that is looked at for what a turn used; a turn that is longer has no numbers. */
  transcriptBytes: 2 * 1024 * 1024,
  /** Records in the spool: beyond that the store has been away for so long that somebody has to look. */
  spoolRecords: 10_000,
  /** Records that one hook takes from the spool besides its own: its client waits. */
  spoolTogether: 50,
  /** The notes of a session that has not been heard of for this long are removed. */
  sessionNotesKeptMs: 90 * 86_400_000,
  /** What somebody took by hand and did not acknowledge comes back after this. */
  deliveryByHandMs: 15 * 60_000,
  /** What was delivered or replaced is kept this long after that; what was given up, until somebody purges it. */
  messagesKeptMs: 30 * 86_400_000,
  /** What nobody has taken for this long will not be taken any more: a dead letter says so. */
  messagesWaitMs: 90 * 86_400_000,
  /** The longest whole text that is kept beside a message: a novel has 1 MB. */
  attachmentBytes: 4 * 1024 * 1024,
  /** Deliveries and sessions whose takers one heartbeat looks at: each costs a look at the process table. */
  lookedAfter: 10_000,
  /** After a commit, idle sessions with messages are looked for at once, and then again after this at the earliest. */
  wakeLookMs: 500,
  /** Waking one session: a command of the user's, and as a part of it the typing at a terminal's prompt. */
  wakeMs: 5_000,
  wakeTypingMs: 3_000,
  /** Who waits beside an idle session hears of commits; this often it looks whether its client still lives. */
  waiterLookMs: 10_000,
  /** So long an open dialog of a client can be answered from elsewhere. Its hook has to be allowed a little more. */
  permissionHeldMs: 10 * 60_000,
  permissionLookMs: 5_000,
  /** A session that was woken in vain is woken again after this; after twice, three times as much the next times, and never less often than once a day. */
  wakeAgainMs: 60_000,
  wakeAgainMostMs: 86_400_000,
  /** What a completion tells the parent of a run's output; the rest stays with the run. 32 KiB bounds a message. */
  summaryCharacters: 8_000,
  /** Replies of one turn of a command-line agent that are recorded as steps, the last ones: they are written with its end, in one transaction. */
  toldSteps: 200,
  /** What is kept of the input or the result of one of its tool calls: a file that it wrote is in the file, not in the ledger. */
  toldCharacters: 8_000,
  /** What the new session of a command-line agent is shown of the conversation, when the one before is gone: some 8,000 tokens. */
  retoldCharacters: 32_000,
  /** From TERM to KILL when a command is told to stop. */
  graceMs: 5_000,
  /** Calls of functions that one claim takes: a commit stays short, and other workers get theirs. */
  callsTogether: 256,
  /** Runs whose steps are read by one look: each may have many. */
  readTogether: 64,
  /** Whoever waits for a call that another process carries out looks for its end after a commit, this often at most. */
  callLookMs: 10,
  /** A step is known by its name, which is part of a key. */
  stepNameCharacters: 200,
  /** What a step or a function returned, as JSON: every step of a run is read again when it is taken over. */
  stepCharacters: 1_048_576,
  /** What a thread shows of a question that a loop of somebody else asks: documents that a program puts into a prompt are the program's. */
  askedCharacters: 32_000,
  /** Branches of a function that run side by side come to the steps that are recorded at once; this is for a slow machine. */
  recordedFirstMs: 2_000,
  /** Of a call's result, what is shown among a hundred others in a thread: a page or two, so that a whole answer stays below some megabytes. */
  resultShownBytes: 16 * 1024,
  /** Functions that are at work at once, unless somebody says otherwise: they cost memory and no process. */
  callsAtWork: 64,
  /** Runs that an embedded worker carries out at once: it shares its process with somebody else's program. */
  embeddedWorkers: 4,
  /** A draining daemon waits this long for its running commands before it hands them over. */
  drainMs: 10_000,
  // What is forgotten (src/runs/retention.ts and its neighbours).
  /** Runs that have ended, with all that is recorded of them, and the log: as long as the lines of the ledger that name them. */
  runsKeptMs: 90 * 86_400_000,
  /** A key under which something was submitted: who asks again after a week does not repeat, but means another. */
  keysKeptMs: 7 * 86_400_000,
  /** Who did what is asked for when a year is closed. */
  actsKeptMs: 400 * 86_400_000,
  /** Runs that are looked at together, and events that one transaction removes at most (or one run): some 20 ms. */
  forgetLooked: 500,
  forgetTogether: 500,
  /** The share of the time that forgetting takes, and how long it rests when there was nothing more. */
  forgetShare: 0.2,
  forgetRestMs: 10 * 60_000,
  /** Of several daemons one forgets; another takes it over when it has not been heard of for this long. */
  keeperMs: 60_000,
  /** A clock that is so far ahead of what was recorded last may be wrong: for a day nothing is removed on its word. */
  clockDoubtedMs: 30 * 86_400_000,
  clockDoubtMs: 86_400_000,
  /** What one file of the archive holds before it is packed: what is kept in memory until it is on disk. */
  archiveBytes: 8 * 1024 * 1024,
  /**
   * A worker that nobody can look at, as in a container that was killed, and of which no run is left: whatever it is, nobody lets a process
   * run for over a year without a restart. One that is up for longer would be taken for stopped.
   */
  workerUnseenMs: 400 * 86_400_000,
  /** Boots of a machine without an id that its home folder remembers: one a restart, and nothing is under way for as long as so many take. */
  bootsRemembered: 100,
  /** Large outputs and fences of paused workers are kept this long after the command. */
  remainsKeptMs: 14 * 86_400_000,
  // Workspaces (src/workers/workspace).
  /** A check that takes longer is stuck, unless somebody says otherwise. */
  checkMs: 10 * 60_000,
  /** Of what a check printed, its end: enough for the failing test and its trace. */
  checkOutputBytes: 16 * 1024,
  /** A check that is a file: a script, not a program image. */
  checkFileBytes: 16 * 1024 * 1024,
  /** How often a check is begun on one and the same work: its branch moved, or its supervisor was lost. */
  checkRounds: 5,
  /** Who waits to land hears of commits; this often it looks whether the one in front of it still lives. */
  landingPollMs: 1_000,
  /** Another git command that is at work in the user's tree is waited for so long, and looked at so often. */
  busyTreeMs: 10_000,
  busyTreePollMs: 100,
  /** What could not be settled is tried again after this. */
  settleAgainMs: 1_000,
  /** And ever more seldom, up to this. */
  settleSeldomMs: 5 * 60_000,
  /** What still says after this that trying again does not help is a person's: quarantine. */
  settleForMs: 10 * 60_000,
  /** Who asked for something that another process is at waits so long for it. */
  settleWaitMs: 30_000,
  /** Discarded work can be brought back for so long. */
  discardedKeptMs: 14 * 86_400_000,
  /** Rows in one page of a listing. */
  page: 100,
  /** Rows in the longest page that a reader may ask for. */
  longestPage: 1_000,
  /** Entries, messages and runs of one thread that are shown at once, the newest. */
  threadShown: 1_000,
  /** Characters of what a call was given, shown in its thread while it is under way; its run has all of it. */
  inputShown: 4_000,

  /** Events that one page of the log looks through for those that were asked for: some 20 ms. */
  eventsLooked: 20_000,
  /** Points in a chart; a screen has no more. */
  seriesBuckets: 1_000,
  /** Instants of a schedule that are still to come: what a calendar of four weeks has room for. */
  instantsShown: 100,

  // The window (src/server).
  /** Event streams that are open at the same time: each costs a socket, and 1 µs of the processor an event (bench/fanout). */
  eventStreams: 128,
  /** Events that are read and written in one go: what a slow reader can make us hold. */
  eventsTogether: 200,
  /** So often an idle stream says that it is there: proxies and readers give up after 30 to 60 s of silence. */
  heartbeatMs: 15_000,
  /** A reader that has taken nothing for this long is gone or asleep; it resumes from its last number. */
  readerStallMs: 60_000,
  /** Of a reply under way, what is kept for whoever begins to watch; the whole is recorded with the step. */
  liveCharacters: 64 * 1024,
  /** Replies under way that are kept so; the oldest goes first. 256 of them are 16 MB at most. */
  liveReplies: 256,
  /** Connections to the window at the same time. One more, and the oldest that has asked for nothing yet has to go. */
  connections: 512,
  /** Headers of a request, as bytes: a token and a cookie fit in a tenth of it. */
  headerBytes: 16 * 1024,
  /** From the first byte of a request to its last header, and to the end of its body. */
  headersMs: 10_000,
  requestMs: 30_000,
  /** How often that is looked at. */
  requestCheckMs: 2_000,
  /** A connection on which nothing has moved for this long; streams say something every 15 s. */
  silentConnectionMs: 120_000,
  /** Requests that are answered at the same time. Beyond that a caller is told to come back: waiting in our memory is no better. */
  requestsAtOnce: 128,
  /** A code that signs a browser in: long enough to walk to another screen. */
  signInCodeMs: 10 * 60_000,
  /** Codes that wait to be used, and tries with wrong ones in a minute: nobody types that many. */
  signInCodes: 20,
  signInTries: 20,
  signInTriesMs: 60_000,
  /** A browser stays signed in this long. */
  browserMs: 30 * 86_400_000,
  /** Requests under way get this long to end when the daemon stops. */
  windowCloseMs: 1_000,

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

  // Git (src/git).
  /** One git command: the checkout of a million files takes less; what takes longer hangs on a disk or a network mount. */
  gitMs: 30 * 60_000,
  /** What was written is on disk by then, or nobody vouches for it: an agent waits for this before it waits for a person. */
  writeOutMs: 60_000,
  /** What one git command may print into our memory: the names of a million files. */
  gitOutputBytes: 256 * 1024 * 1024,
  /** A diff that is shown; a person reads less, and the commit has the rest. */
  diffBytes: 1024 * 1024,
  /** Paths that are listed one by one; beyond that their number is told. */
  pathsListed: 500,
  /** A file of a run that is taken up into a commit. Git holds it for ever, and hosts refuse more than 100 MB; above this it is left out, and listed. */
  largestFileBytes: 2 * 1024 * 1024 * 1024,
  /** Commits of an agent that are kept one by one; more are squashed into one. */
  keptCommits: 1_000,
  /** Of one text that telemetry is given: common backends cut an attribute off, or drop its span, at 64 Ki. */
  telemetryCharacters: 60_000,
  /** Actions without an effect of which it is remembered that they were told: after more than that one may be told twice. */
  telemetryTold: 10_000,
  /** The last spans and figures are sent when a process ends; a collector that does not answer keeps nobody. */
  telemetryFlushMs: 5_000,

  /** Somebody's git command that holds the index is waited for: most take less than a tenth of a second. */
  indexLockWaitMs: 2_000,
} as const
