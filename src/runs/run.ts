import type { RunId, ThreadId, WorkerId } from '../base/ids.ts'
import { flag, integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { among, literals, sql, unionAll } from '../store/sql.ts'
import { all, first, single } from '../store/transition.ts'
import { WORKSPACE_MODES } from '../workspace/workspace.ts'
import type { Client } from '../sessions/session.ts'
import type { WorkspaceRequest } from '../workspace/workspace.ts'

/**
 * One execution on a thread, from its request to one terminal state. `running → queued` only when it is proven that
 * the attempt never started its command, or that the client which it started found its session gone and did nothing;
 * `queued` and `parked` runs that are cancelled end at once.
 */
export const RUN_MOVES = {
  queued: ['running', 'cancelled', 'failed'],
  running: ['succeeded', 'failed', 'cancelled', 'parked', 'queued'],
  // Running at once: the turn of a session, whose client came back.
  parked: ['queued', 'running', 'cancelled', 'failed'],
  succeeded: [],
  failed: [],
  cancelled: [],
} as const satisfies Record<string, readonly string[]>
export type RunState = keyof typeof RUN_MOVES
export const RUN_STATES = Object.keys(RUN_MOVES) as RunState[]
const TERMINAL_STATES = RUN_STATES.filter((state) => RUN_MOVES[state].length === 0)
export type TerminalState = 'succeeded' | 'failed' | 'cancelled'

export const isTerminal = (state: RunState): state is TerminalState => RUN_MOVES[state].length === 0

/** Why a run failed. A closed list, because scripts and breakers decide on it. */
export const FAILURE_CODES = {
  exit: 'the command exited with a status other than 0',
  spawn: 'the command could not be started',
  timeout: 'it ran longer than it may',
  killed: 'its process was ended from outside',
  lost: 'its worker or supervisor was lost after the command had started, and left no result',
  expired: 'it waited in the queue longer than it may',
  circuit_open: 'its agent keeps failing for a reason that a new try does not mend',
  auth: 'the provider refused the credentials',
  budget: 'it spent what it may',
  model: 'the model call failed',
  tool: 'a tool failed',
  validation: 'its result did not pass the check',
  internal: 'a defect in Holdfast',
} as const
export type FailureCode = keyof typeof FAILURE_CODES

/** What a command run asks for; kept in canonical JSON, whose digest tells two requests with one key apart. */
export interface CommandRequest {
  readonly kind: 'command'
  readonly argv: readonly [string, ...string[]]
  readonly cwd: string
  /** The whole environment of a detached command; a foreground one inherits its caller's and stores none of it. */
  readonly env?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  /** What it can read on its standard input. */
  readonly input?: string
  /** It is the turn of an agent: what it prints is the reply. */
  readonly isTurn?: true
  /** It works in a git transaction, or is watched as if it did. */
  readonly workspace?: WorkspaceRequest
  /** It is a client whose output we can read. */
  readonly client?: ClientRequest
}

/** The turn of a command-line agent, in a session of its own that outlives the turn. */
export interface ClientRequest {
  readonly name: Client
  /** The session; undefined: a new one, which the client names. */
  readonly session?: string
  /** It begins that session. */
  readonly isNew?: true
  /** It goes on with that session. If that is gone, this is the command that begins a new one. */
  readonly orElse?: { readonly argv: readonly [string, ...string[]]; readonly session?: string }
  /** The session that was gone. */
  readonly insteadOf?: string
  /** The maker of its models, and what a million tokens of the one that was configured cost. */
  readonly vendor: string
  readonly price?: ClientPrice
}

export interface ClientPrice {
  readonly input: number
  readonly output: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
}
/** What is in its thread's inbox, for the agent of that name. */
export interface AgentRequest {
  readonly kind: 'agent'
  readonly timeoutMs?: number
  /** What it may spend, if that is less than its agent's own limit. */
  readonly maxCostMicrousd?: number
  /** A schedule led to it, and waits for what becomes of it. */
  readonly scheduled?: true
  /** It works in a git transaction, or is watched as if it did; otherwise as its agent says. */
  readonly workspace?: WorkspaceRequest
}

/** A turn of a session of a command-line agent, which carries it out itself; we see it through its hooks. */
export interface ObservedRequest {
  readonly kind: 'observed'
  readonly client: string
  readonly sessionId: string
  readonly generation: number
  /** The client's own name of the turn, and its number in the session. */
  readonly turn: string
  readonly part: number
  readonly timeoutMs?: undefined
  readonly workspace?: undefined
}

export type RunRequest = CommandRequest | AgentRequest | ObservedRequest

/**
 * How far a run waits for one that it started. `wait`: it takes no turn before that has ended. `background`: it goes on, but
 * does not end before it. `detached`: it may end; the completion then starts a new run.
 */
export const PARENT_MODES = ['wait', 'background', 'detached'] as const
export type ParentMode = (typeof PARENT_MODES)[number]

export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costMicrousd: number
}

export const runRow = row({
  seq: integer,
  id: text<RunId>(),
  threadId: text<ThreadId>(),
  agent: text(),
  state: oneOf(RUN_STATES),
  priority: integer,
  request: json<RunRequest>(),
  requestDigest: text(),
  /** What it was called with, as JSON; such a run needs no message. */
  input: nullable(text()),
  submitKey: nullable(text()),
  parentThreadId: nullable(text<ThreadId>()),
  /** The run that started it: cancelling that one cancels this one. */
  parentRunId: nullable(text<RunId>()),
  parentMode: nullable(oneOf(PARENT_MODES)),
  notify: flag,
  /** Kept for this worker: a foreground command runs in its caller's terminal and environment, or not at all. */
  forWorker: nullable(text<WorkerId>()),
  fence: integer,
  attempt: integer,
  cancelRequestedAt: nullable(integer),
  cancelBy: nullable(text()),
  cancelReason: nullable(text()),
  code: nullable(text<FailureCode>()),
  error: nullable(text()),
  result: nullable(json<unknown>()),
  inputTokens: integer,
  outputTokens: integer,
  costMicrousd: integer,
  createdAt: integer,
  expiresAt: nullable(integer),
  startedAt: nullable(integer),
  parkedAt: nullable(integer),
  parkedFor: nullable(text()),
  parkedMs: integer,
  /** When a parked run goes on by itself. */
  resumeAt: nullable(integer),
  endedAt: nullable(integer),
  /** It has a workspace, whose end is decided with its own. */
  workspace: nullable(oneOf(WORKSPACE_MODES)),
  /** The only machine on which it can be carried out: its workspace is there. */
  host: nullable(text()),
})
export type Run = Decoded<typeof runRow>

/** The run of a thread that nobody has taken up yet. */
export const queuedRunOf = single((threadId: ThreadId) =>
  first(runRow, sql`select * from runs where thread_id = ${threadId} and state = 'queued' order by seq limit 1`),
)

export const findRun = single((id: RunId) => first(runRow, sql`select * from runs where id = ${id}`))

const endRow = row({
  id: text<RunId>(),
  state: oneOf(TERMINAL_STATES as TerminalState[]),
  code: nullable(text<FailureCode>()),
  error: nullable(text()),
  result: nullable(json<unknown>()),
})
export type RunEnd = Decoded<typeof endRow>

/** Those of them that have ended. */
export const endedRuns = single((ids: readonly RunId[]) =>
  all(endRow, sql`select id, state, code, error, result from runs where id in ${among(ids)} and ended_at is not null`),
)

/** Runs whose id starts with `prefix`, two at most: enough to know whether it is unique. */
export const runsByPrefix = single((prefix: string) =>
  all(runRow, sql`select * from runs where id >= ${prefix} and id < ${`${prefix}\u{10ffff}`} order by id limit 2`),
)

export interface RunFilter {
  readonly states?: readonly RunState[]
  readonly threadId?: ThreadId
  readonly agent?: string
  /** Only those older than this run: the last one of the page before. */
  readonly after?: RunId
  readonly limit: number
}

/** Newest first. Of each state so many at most, and then the newest of those: every part is the end of an index. */
export const listRuns = single((filter: RunFilter) => {
  const { states, limit } = filter
  if (states === undefined || filter.threadId !== undefined) return all(runRow, runsWith(filter, states))
  const parts = states.map((state) => sql`select * from (${runsWith(filter, [state])}) as part`)
  return all(runRow, sql`${unionAll(parts)} order by seq desc limit ${limit}`)
})

const runsWith = ({ threadId, agent, after, limit }: RunFilter, states?: readonly RunState[]) =>
  sql`select * from runs where ${states === undefined ? sql`1 = 1` : sql`state in (${literals(states)})`}
      and ${threadId === undefined ? sql`1 = 1` : sql`thread_id = ${threadId}`}
      and ${agent === undefined ? sql`1 = 1` : sql`agent = ${agent}`}
      and ${after === undefined ? sql`1 = 1` : sql`seq < (select seq from runs where id = ${after})`}
      order by seq desc limit ${limit}`

/** The runs of a thread's children that have not ended. */
export const childrenAtWork = single((parent: ThreadId, limit: number) =>
  all(
    runRow,
    sql`select r.* from threads t join runs r on r.thread_id = t.id
      where t.parent_id = ${parent} and t.state <> 'removed' and r.state in ('queued', 'running', 'parked')
      order by r.seq limit ${limit}`,
  ),
)

const countRow = row({ state: oneOf(RUN_STATES), count: integer })
export const countRuns = single(() => all(countRow, sql`select state, count(*) as count from runs group by state`))

const lateRow = row({ runId: text<RunId>(), outcome: json<Record<string, unknown>>(), arrivedAt: integer })
export type LateResult = Decoded<typeof lateRow>
export const lateResultsOf = single((runId: RunId) =>
  all(lateRow, sql`select run_id, outcome, arrived_at from late_results where run_id = ${runId} order by arrived_at`),
)
