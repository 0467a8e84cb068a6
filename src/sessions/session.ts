import type { RunId, ThreadId } from '../base/ids.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, first, holding, single } from '../store/transition.ts'

/** The command-line agents whose sessions we see through their hooks. */
export const CLIENTS = ['claude', 'codex', 'gemini'] as const
export type Client = (typeof CLIENTS)[number]

/**
 * A session takes its turns elsewhere. `busy`: in a turn. `idle`: its turn has ended, and it can be woken. `waiting`: for a
 * person, or for something of its own in the background. `ended`: nobody is there; it may be resumed.
 */
const SESSION_MOVES = {
  idle: ['busy', 'waiting', 'ended'],
  busy: ['idle', 'waiting', 'ended'],
  waiting: ['busy', 'idle', 'ended'],
  ended: ['idle', 'busy'],
} as const satisfies Record<string, readonly string[]>
export type SessionState = keyof typeof SESSION_MOVES
export const SESSION_STATES = Object.keys(SESSION_MOVES) as SessionState[]

/** How to tell an idle session that something is in its inbox. */
export type Wake =
  | { readonly kind: 'tmux'; readonly socket: string; readonly pane: string }
  | { readonly kind: 'command'; readonly argv: readonly [string, ...string[]] }

export const sessionRow = row({
  /** `CLIENT:SESSION`. */
  id: text(),
  client: oneOf(CLIENTS),
  sessionId: text(),
  threadId: text<ThreadId>(),
  generation: integer,
  state: oneOf(SESSION_STATES),
  /** The client's own name for the turn under way, or for the last one. */
  turn: nullable(text()),
  /** The highest number that an event of it had: one with a lower number comes late. */
  stops: integer,
  /** Turns so far: the name of one that the client does not name. */
  turns: integer,
  /** The observed run of the turn under way. */
  runId: nullable(text<RunId>()),
  /** Blocks in a row. */
  blocks: integer,
  /** What was put in front of its model and is not acknowledged yet. */
  deliveryId: nullable(text()),
  /** The client's process, as far as it could be identified. */
  process: nullable(json<unknown>()),
  wake: nullable(json<Wake>()),
  /** Since when a wake has brought nothing yet. */
  wokenAt: nullable(integer),
  wakes: integer,
  /** Wakes after which there was nothing to deliver, or nobody stirred. */
  vainWakes: integer,
  /** Those of them since the last one that brought something: the next one waits the longer for it. */
  missedWakes: integer,
  transcript: nullable(text()),
  cwd: nullable(text()),
  startedAt: integer,
  updatedAt: integer,
  endedAt: nullable(integer),
})
export type Session = Decoded<typeof sessionRow>

export const sessionKey = (client: Client, sessionId: string): string => `${client}:${sessionId}`

export const findSession = single((id: string) => first(sessionRow, sql`select * from sessions where id = ${id}`))

/** What an event of it does depends on what the one before it did: they come one after the other. */
export const holdSession = (id: string) =>
  holding(
    `session:${id}`,
    first(sessionRow, sql`update sessions set updated_at = updated_at where id = ${id} returning *`),
  )

export const sessionsOfThread = single((threadId: ThreadId) =>
  all(sessionRow, sql`select * from sessions where thread_id = ${threadId} order by updated_at desc`),
)

/** Sessions that somebody may still sit at. */
export const liveSessions = single((limit: number) =>
  all(sessionRow, sql`select * from sessions where ended_at is null order by updated_at limit ${limit}`),
)

/** The same, those first that something was last heard of. */
export const latestSessions = single((limit: number) =>
  all(sessionRow, sql`select * from sessions where ended_at is null order by updated_at desc limit ${limit}`),
)
