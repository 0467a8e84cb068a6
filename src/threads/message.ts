import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { literals, now, raw, sql, unionAll } from '../store/sql.ts'
import { all, first, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'

/** accepted = pending + leased + consumed + replaced + dead, always. */
export const MESSAGE_MOVES = {
  pending: ['leased', 'consumed', 'replaced', 'dead'],
  leased: ['pending', 'consumed'],
  consumed: [],
  replaced: [],
  dead: ['pending'],
} as const satisfies Record<string, readonly string[]>
export type MessageState = keyof typeof MESSAGE_MOVES
export const MESSAGE_STATES = Object.keys(MESSAGE_MOVES) as MessageState[]

/**
 * `prompt` asks for something, as a person or the thread's own parent may; `note` is what any other thread says. `completion`,
 * `waiting` and `error` tell of a child; `notice` is from us.
 */
export const MESSAGE_KINDS = ['prompt', 'note', 'completion', 'waiting', 'error', 'followup', 'notice'] as const
export type MessageKind = (typeof MESSAGE_KINDS)[number]
/** News of children: they ask for nothing. */
export const NEWS: readonly MessageKind[] = ['completion', 'error', 'waiting']

export const messageRow = row({
  id: text(),
  threadId: text<ThreadId>(),
  generation: integer,
  fromThread: nullable(text<ThreadId>()),
  kind: oneOf(MESSAGE_KINDS),
  key: text(),
  state: oneOf(MESSAGE_STATES),
  reason: nullable(text()),
  attempts: integer,
  body: json<Record<string, unknown>>(),
  createdAt: integer,
  dueAt: nullable(integer),
  consumedByRun: nullable(text<RunId>()),
  deliveryId: nullable(text()),
  settledAt: nullable(integer),
  nextAttemptAt: nullable(integer),
})
export type Message = Decoded<typeof messageRow>

export const messagesOf = single((threadId: ThreadId) =>
  all(messageRow, sql`select * from messages where thread_id = ${threadId} order by seq`),
)

/** The newest of an inbox, whatever became of them, at most so many, oldest first. */
export const latestMessages = single((threadId: ThreadId, generation: number, limit: number) =>
  all(
    messageRow,
    sql`select * from (select * from messages where thread_id = ${threadId} and generation = ${generation}
        order by seq desc limit ${limit}) as latest order by seq`,
  ),
)

export const findMessage = single((id: string) => first(messageRow, sql`select * from messages where id = ${id}`))

/** What waits in an inbox, oldest first. */
export const pendingMessages = single((threadId: ThreadId, limit: number) =>
  all(
    messageRow,
    sql`select * from messages where thread_id = ${threadId} and state = 'pending' order by seq limit ${limit}`,
  ),
)

const idRow = row({ id: text<MessageId>() })

/** What waits for a run that has taken nothing so far. */
export const untakenMessages = single((runId: RunId, threadId: ThreadId, promptsOnly: boolean) =>
  all(
    idRow,
    sql`select id from messages where thread_id = ${threadId} and state = 'pending'
      and ${promptsOnly ? sql`kind in ('prompt', 'followup')` : sql`1 = 1`}
      and not exists (select 1 from messages taken
        where taken.thread_id = ${threadId} and taken.consumed_by_run = ${runId}) order by seq`,
  ),
)

/** Held until the commit, so that nobody takes one of them in between. */
export function* areStillPending(ids: readonly string[]): Transition<boolean> {
  if (ids.length === 0) return true
  const held = yield* run(sql`update messages set state = state where id in (${literals(ids)}) and state = 'pending'`)
  return held === ids.length
}

/** Whether this run has consumed one of them. */
export function* wereTakenBy(ids: readonly string[], runId: RunId): Transition<boolean> {
  const taken = yield* first(
    idRow,
    sql`select id from messages where id in (${literals(ids)}) and consumed_by_run = ${runId} limit 1`,
  )
  return taken !== undefined
}

/**
 * At most one "waiting" of a child waits, the newest: also after one that was taken comes back. Whoever tells of a wait
 * holds the thread's row too.
 */
export function* keepNewestWaiting({ kind, threadId, fromThread }: Message): Transition<void> {
  if (kind !== 'waiting') return
  yield* run(sql`update threads set agent = agent where id = ${threadId}`)
  const waiting = yield* all(
    messageRow,
    sql`select * from messages where thread_id = ${threadId} and from_thread = ${fromThread} and kind = 'waiting'
      and state = 'pending' order by seq desc`,
  )
  const [newest, ...older] = waiting
  for (const { id } of older) {
    const replaced =
      yield* run(sql`update messages set state = 'replaced', reason = ${newest?.id ?? ''}, settled_at = ${now}
      where id = ${id} and state = 'pending'`)
    if (replaced === 1)
      yield* record({ type: 'message.replaced', threadId, data: { messageId: id, by: newest?.id ?? '' } })
  }
}

/** What an inbox holds, or held, in these states; the newest so many, oldest first. Without a thread, everybody's. */
export const messagesIn = single((states: readonly MessageState[], limit: number, threadId?: ThreadId) =>
  all(
    messageRow,
    sql`select * from (select * from messages where state in (${literals(states)})
        and ${threadId === undefined ? sql`1 = 1` : sql`thread_id = ${threadId}`}
        order by seq desc limit ${limit}) as latest order by seq`,
  ),
)

export interface MessageFilter {
  readonly states: readonly MessageState[]
  readonly limit: number
  readonly threadId?: ThreadId
  /** Only those older than this one. */
  readonly after?: string
}

/** The newest first. Of each state so many at most, and then the newest of those: every part is the end of an index. */
export const messagePage = single((filter: MessageFilter) => {
  const part = (state: MessageState) => sql`select * from (select * from messages where state = ${raw(`'${state}'`)}
      and ${filter.threadId === undefined ? sql`1 = 1` : sql`thread_id = ${filter.threadId}`}
      and ${filter.after === undefined ? sql`1 = 1` : sql`seq < (select seq from messages where id = ${filter.after})`}
      order by seq desc limit ${filter.limit}) as part`
  return all(messageRow, sql`${unionAll(filter.states.map(part))} order by seq desc limit ${filter.limit}`)
})

/** Messages whose id starts with `prefix`, two at most: enough to know whether it is unique. */
export const messagesByPrefix = single((prefix: string) =>
  all(
    messageRow,
    sql`select * from messages where id >= ${prefix} and id < ${`${prefix}\u{10ffff}`} order by id limit 2`,
  ),
)

const stateCountRow = row({ state: oneOf(MESSAGE_STATES), count: integer })

export const countMessages = single(() =>
  all(stateCountRow, sql`select state, count(*) as count from messages group by state order by state`),
)

const idleRow = row({ threadId: text<ThreadId>(), agent: text() })

/**
 * Threads of these agents with something in their inbox and nobody at work on it. News of children that was there when its
 * thread's last run was cancelled starts no new turn: whoever cancelled did not ask for one. It is shown with the next message.
 * What a person has put back since does.
 */
export const idleThreads = single((agents: readonly string[], limit: number, only?: ThreadId) =>
  all(
    idleRow,
    sql`select t.id as thread_id, t.agent from threads t
      where t.id in (select thread_id from messages where state = 'pending') and t.state = 'open' and t.agent in (${literals(agents)}) and ${only === undefined ? sql`1 = 1` : sql`t.id = ${only}`}
        and exists (select 1 from messages m where m.thread_id = t.id and m.state = 'pending'
          and (m.kind not in (${literals(NEWS)}) or coalesce(m.due_at, m.created_at) > coalesce((select case when last.state = 'cancelled' then last.ended_at end
            from runs last where last.thread_id = t.id order by last.seq desc limit 1), -1)))
        and not exists (select 1 from runs r where r.thread_id = t.id and r.state in ('queued', 'running', 'parked'))
        and not exists (select 1 from sessions s where s.thread_id = t.id)
        and not exists (select 1 from breakers b where b.agent = t.agent and b.open_until > ${now})
      limit ${limit}`,
  ),
)
