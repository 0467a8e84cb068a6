/** What holds for our own MCP server, each with its reason. */
export const SERVER_LIMITS = {
  /** One round of a wait: clients give up on a request after 60 s of silence, proxies between them sooner. */
  roundMs: 20_000,
  /** The first round: until its client has something to come back with, a wait ends with the server. */
  firstRoundMs: 1_000,
  /** A shorter round than this would be a busy loop. */
  roundLeastMs: 250,
  /** A wait is spread over so many more rounds: clients give up after ten of them. */
  rounds: 8,
  /** How long is waited if nothing is said: eight rounds of the longest kind. */
  waitSeconds: 150,
  /** As long as an approval may be open. */
  waitMostSeconds: 7 * 86_400,
  /** A client without rounds holds its request open: less than the 60 s after which it would give up. */
  heldMs: 45_000,
  /** How long a wait may be taken up again: an approval's time, and a day for whoever was away. */
  stateSeconds: 8 * 86_400,
  /** The signing key of what a client keeps for us. */
  keyBytes: 32,
  /** Names of requests, chosen by callers. */
  keyLength: 200,
} as const
