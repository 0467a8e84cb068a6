/** What a tool may take, and why. */
export const TOOL_LIMITS = {
  /** Canonical bytes of one call's arguments: they are stored in a row and shown to a person who approves them. */
  inputBytes: 256 * 1024,
  /** A command that never returns ends after this, whatever else is configured (claim R1). */
  backstopMs: 30 * 60_000,
  /** Starting a child is one transaction; what takes longer is a store that is stuck. */
  delegateMs: 60_000,
  /** So is what is asked of schedules. */
  scheduleMs: 60_000,
  /** A stop command that hangs must not keep a cancel waiting for longer (claim R4). */
  stopCommandMs: 10_000,
  /** A probe asks; what takes longer than this has no answer. */
  probeMs: 30_000,
  /** What is kept of what a function returned: four times what a model is shown, and far from what a row can bear. */
  resultCharacters: 256 * 1024,
  /** Of the end of standard error, in the sentence that says why a tool failed. */
  errorCharacters: 2_000,
  /** Of each end of what a command printed before it was stopped, in the sentence that says so. */
  printedCharacters: 4_000,

  /** Commands of one `parallel_shell` call, and how many of them run at once. */
  parallelCommands: 16,
  parallelAtOnce: 4,

  /** A file is read or searched up to here; 256 KiB is more than a model can use of one. */
  readBytes: 256 * 1024,
  searchedFileBytes: 4 * 1024 * 1024,
  writeBytes: 200 * 1024,
  /** Entries of one listing, matches of one search, files that one search opens. */
  listed: 1_000,
  matches: 200,
  searchedFiles: 10_000,
  /** Folders below each other; a deeper tree is a mistake or a trap. */
  depth: 40,
  lineCharacters: 500,

  /** Requests of one `http_get` call. */
  requests: 10,
  redirects: 5,
  requestMs: 30_000,
  responseBytes: 256 * 1024,
} as const
