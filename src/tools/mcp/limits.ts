/** What an MCP server may take, and why. */
export const MCP_LIMITS = {
  /** From the start of a server to its first list of tools: `npx` may have to fetch a package first. */
  handshakeMs: 60_000,
  /** The newer handshake is tried first; a server of the older kind may not answer it at all. */
  probeMs: 10_000,
  /** A server that was told to cancel may still say how the call ended; then it is ended with its processes. */
  cancelMs: 2_000,
  /** From TERM to KILL for a server's processes. */
  graceMs: 2_000,
  /** Nobody used it: long enough for the next turn of a conversation, short enough not to collect servers. */
  idleMs: 5 * 60_000,
  /** One message of a server. Its result is cut to what a row can bear; what is larger than this is not even read. */
  messageBytes: 10 * 1024 * 1024,
  /** Kept of a server's standard error, from its end: it is shown when the server fails. */
  errorBytes: 8 * 1024,
  /** A server that ends again and again is started at these distances, doubling from the first to the last. */
  firstWaitMs: 1_000,
  longestWaitMs: 60_000,
  /** Tools of one server: each costs the model tokens in every call. */
  tools: 200,
  /** One tool's definition, which is stored and shown to the person who accepts it. */
  definitionBytes: 64 * 1024,
} as const
