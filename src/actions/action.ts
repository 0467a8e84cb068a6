import type { ActionId, RunId, ThreadId } from '../base/ids.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { literals, sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { all, first, single } from '../store/transition.ts'

/**
 * One tool call. `failed` means that it certainly did not happen; what was cut off after its start is `in_doubt` until
 * evidence or a person settles it. Skipped, denied and expired are three different things, and the agent is told which.
 */
export const ACTION_MOVES = {
  proposed: ['waiting', 'approved', 'skipped', 'denied', 'failed', 'done', 'withdrawn'],
  // In doubt: it was to be done again, and its run ended first. Done, failed: an identical one was.
  waiting: ['approved', 'skipped', 'denied', 'expired', 'withdrawn', 'in_doubt', 'done', 'failed'],
  // Waiting again: it was done before, and is asked for afresh. In doubt again: who had begun it may still do it.
  approved: ['started', 'waiting', 'in_doubt', 'done', 'failed', 'denied', 'expired', 'withdrawn'],
  started: ['done', 'failed', 'in_doubt'],
  // Back to approved when a person says that it did not happen and is to be done.
  in_doubt: ['done', 'failed', 'approved'],
  done: [],
  // Who had begun it says, when its run is over, that it was done: whoever said otherwise could not know.
  failed: ['done'],
  skipped: [],
  denied: [],
  expired: [],
  withdrawn: [],
} as const satisfies Record<string, readonly string[]>
export type ActionState = keyof typeof ACTION_MOVES
const ACTION_STATES = Object.keys(ACTION_MOVES) as ActionState[]

/** Nothing more will happen to it in this run; an action in doubt is listed, and the run goes on. */
export const isSettled = (state: ActionState): boolean => SETTLED.has(state)

const SETTLED: ReadonlySet<ActionState> = new Set([
  'done',
  'failed',
  'skipped',
  'denied',
  'expired',
  'withdrawn',
  'in_doubt',
])

/** Who says what became of it: of one in doubt, nobody yet. */
export const settlerOf = ({ state, settledBy }: Pick<Action, 'state' | 'settledBy'>): { settledBy?: string } =>
  settledBy === null || state === 'in_doubt' ? {} : { settledBy }

export interface Decision {
  readonly kind: 'allow' | 'deny'
  readonly by: string
  readonly via: string
}

export const actionRow = row({
  id: text<ActionId>(),
  runId: text<RunId>(),
  threadId: text<ThreadId>(),
  entrySeq: integer,
  ordinal: integer,
  callId: text(),
  tool: text(),
  effect: oneOf(['read', 'write']),
  repeats: oneOf(['once', 'each']),
  input: json<unknown>(),
  signature: text(),
  state: oneOf(ACTION_STATES),
  mark: text(),
  tries: integer,
  /** The home folder of the worker that began the last try: what the try leaves behind is there, whoever looks for it. */
  home: nullable(text()),
  decision: nullable(json<Decision>()),
  repeatOf: nullable(text<ActionId>()),
  /** Of the exact bytes that a decision is bound to: the tool as it was, and its arguments. */
  digest: nullable(text()),
  version: nullable(text()),
  /** A person changed this call; that one happens instead. */
  replacedBy: nullable(text<ActionId>()),
  /** Who said to go on although nobody knows. */
  givenUp: nullable(text()),
  /** Who said that it may be done once more: an identical call is not answered from this one any longer. */
  again: nullable(text()),
  result: nullable(json<unknown>()),
  error: nullable(text()),
  settledBy: nullable(text()),
  createdAt: integer,
  startedAt: nullable(integer),
  settledAt: nullable(integer),
})
export type Action = Decoded<typeof actionRow>

/** The condition of `actions_undecided`, in the same words: SQLite does not conclude it from one of the two. */
export const UNDECIDED: Sql = sql`state in ('waiting', 'in_doubt')`

export const findAction = single((id: ActionId) => first(actionRow, sql`select * from actions where id = ${id}`))

export const actionsOfRun = single((runId: RunId) =>
  all(actionRow, sql`select * from actions where run_id = ${runId} order by entry_seq, ordinal`),
)

export const actionsOfThread = single((threadId: ThreadId) =>
  all(actionRow, sql`select * from actions where thread_id = ${threadId} order by entry_seq, ordinal`),
)

/** Those that an entry of the conversation, or a later one, asked for. */
export const actionsSince = single((threadId: ThreadId, entrySeq: number) =>
  all(
    actionRow,
    sql`select * from actions where thread_id = ${threadId} and entry_seq >= ${entrySeq} order by entry_seq, ordinal`,
  ),
)

/** Those that the entries from one to another asked for. */
export const actionsBetween = single((threadId: ThreadId, from: number, to: number) =>
  all(
    actionRow,
    sql`select * from actions where thread_id = ${threadId} and entry_seq >= ${from} and entry_seq <= ${to}
      order by entry_seq, ordinal`,
  ),
)

export interface ActionFilter {
  readonly limit: number
  readonly runId?: RunId
  readonly threadId?: ThreadId
  readonly tool?: string
  readonly states?: readonly ActionState[]
  /** Only those older than this one. */
  readonly after?: string
}

/** The newest first, as their ids say. */
export const listActions = single(({ limit, runId, threadId, tool, states, after }: ActionFilter) =>
  all(
    actionRow,
    sql`select * from actions where ${runId === undefined ? sql`1 = 1` : sql`run_id = ${runId}`}
      and ${threadId === undefined ? sql`1 = 1` : sql`thread_id = ${threadId}`}
      and ${tool === undefined ? sql`1 = 1` : sql`tool = ${tool}`}
      and ${states === undefined ? sql`1 = 1` : sql`state in (${literals(states)})`}
      and ${after === undefined ? sql`1 = 1` : sql`id < ${after}`}
      order by id desc limit ${limit}`,
  ),
)

/** Those of one reply of the model, in its order. */
export const actionsOfEntry = single((entrySeq: number) =>
  all(actionRow, sql`select * from actions where entry_seq = ${entrySeq} order by ordinal`),
)

/** Those of the replies after an entry, in order. */
export const actionsAfter = single((threadId: ThreadId, entrySeq: number) =>
  all(
    actionRow,
    sql`select * from actions where thread_id = ${threadId} and entry_seq > ${entrySeq} order by entry_seq, ordinal`,
  ),
)

/** Those that wait for a person, or of which nobody knows whether they happened. */
export const openActionsOf = single((threadId: ThreadId, generation: number, limit: number) =>
  all(
    actionRow,
    sql`select a.* from actions a join entries e on e.seq = a.entry_seq
      where a.thread_id = ${threadId} and a.state in ('waiting', 'in_doubt') and e.generation = ${generation}
      order by a.entry_seq, a.ordinal limit ${limit}`,
  ),
)

/** Those whose id starts so, two at most: enough to know whether it is unique. */
export const actionsByPrefix = single((prefix: string) =>
  all(
    actionRow,
    sql`select * from actions where id >= ${prefix} and id < ${`${prefix}\u{10ffff}`} order by id limit 2`,
  ),
)
