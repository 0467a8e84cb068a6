import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, one, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findThread } from './thread.ts'

/** accepted = pending + leased + consumed + replaced + dead, always. */
export const MESSAGE_MOVES = {
  pending: ['leased', 'replaced', 'dead'],
  leased: ['pending', 'consumed'],
  consumed: [],
  replaced: [],
  dead: ['pending'],
} as const satisfies Record<string, readonly string[]>
export type MessageState = keyof typeof MESSAGE_MOVES
export const MESSAGE_STATES = Object.keys(MESSAGE_MOVES) as MessageState[]

const messageRow = row({
  id: text(),
  threadId: text<ThreadId>(),
  generation: integer,
  fromThread: nullable(text<ThreadId>()),
  kind: text(),
  key: text(),
  state: oneOf(MESSAGE_STATES),
  reason: nullable(text()),
  attempts: integer,
  body: json<Record<string, unknown>>(),
  createdAt: integer,
  dueAt: nullable(integer),
  consumedByRun: nullable(text<RunId>()),
})
export type Message = Decoded<typeof messageRow>

export interface Completion {
  readonly from: ThreadId
  readonly to: ThreadId
  readonly runId: RunId
  readonly body: Readonly<Record<string, unknown>>
}

/**
 * Tells the parent that a child's run ended. Identity comes from the producer (the run), so a second delivery of the
 * same end is the same message. A parent that was removed gets a visible dead letter, not silence.
 */
export function* deliverCompletion(completion: Completion): Transition<void> {
  const parent = yield* findThread.single(completion.to)
  const reason = parent === undefined ? 'unknown recipient' : parent.state === 'removed' ? 'recipient removed' : null
  const accepted = yield* first(
    messageRow,
    sql`insert into messages (id, thread_id, generation, from_thread, kind, key, state, reason, body, created_at)
      values (${`msg_${completion.runId}`}, ${completion.to}, ${parent?.generation ?? 1}, ${completion.from}, 'completion',
        ${`run:${completion.runId}`}, ${reason === null ? 'pending' : 'dead'}, ${reason}, ${JSON.stringify(completion.body)}, ${now})
      on conflict do nothing returning *`,
  )
  if (accepted === undefined) return
  yield* record({
    type: reason === null ? 'message.accepted' : 'message.dead',
    threadId: completion.to,
    runId: completion.runId,
    data: { messageId: accepted.id, kind: 'completion', ...(reason === null ? {} : { reason }) },
  })
}

export const messagesOf = single((threadId: ThreadId) =>
  all(messageRow, sql`select * from messages where thread_id = ${threadId} order by created_at, id`),
)

export interface NewMessage {
  readonly id: MessageId
  readonly threadId: ThreadId
  readonly generation: number
  readonly from?: ThreadId
  readonly kind: string
  /** The producer's own name for it: the same key is the same message. */
  readonly key: string
  readonly body: Readonly<Record<string, unknown>>
}

/** Accepts a message, durably and once. A second one with its key is the first. */
export function* acceptMessage(
  message: NewMessage,
): Transition<{ readonly message: Message; readonly isNew: boolean }> {
  const accepted = yield* first(
    messageRow,
    sql`insert into messages (id, thread_id, generation, from_thread, kind, key, state, body, created_at)
      values (${message.id}, ${message.threadId}, ${message.generation}, ${message.from ?? null}, ${message.kind},
        ${message.key}, 'pending', ${JSON.stringify(message.body)}, ${now})
      on conflict do nothing returning *`,
  )
  if (accepted === undefined) return { message: yield* knownMessage(message), isNew: false }
  const data = { messageId: accepted.id, kind: accepted.kind }
  yield* record({ type: 'message.accepted', threadId: accepted.threadId, data })
  return { message: accepted, isNew: true }
}

function* knownMessage({ threadId, generation, key }: NewMessage): Transition<Message> {
  return yield* one(
    messageRow,
    sql`select * from messages where thread_id = ${threadId} and generation = ${generation} and key = ${key}`,
  )
}

export const findMessage = single((id: string) => first(messageRow, sql`select * from messages where id = ${id}`))

/** What waits in an inbox, oldest first. */
export const pendingMessages = single((threadId: ThreadId, limit: number) =>
  all(
    messageRow,
    sql`select * from messages where thread_id = ${threadId} and state = 'pending' order by created_at, id limit ${limit}`,
  ),
)

/** Shown to the model in the step that is being recorded: each takes effect in this one turn. */
export function* consumeMessages(ids: readonly string[], runId: RunId, threadId: ThreadId): Transition<void> {
  for (const id of ids) {
    const consumed = yield* run(sql`update messages set state = 'consumed', consumed_by_run = ${runId}
      where id = ${id} and state in ('pending', 'leased')`)
    if (consumed === 1) yield* record({ type: 'message.consumed', threadId, runId, data: { messageId: id } })
  }
}

const idleRow = row({ threadId: text<ThreadId>(), agent: text() })

/** Threads of agents with something in their inbox and nobody at work on it. */
export const idleThreads = single((limit: number) =>
  all(
    idleRow,
    sql`select t.id as thread_id, t.agent from threads t
      where t.state = 'open' and t.agent <> 'command'
        and exists (select 1 from messages m where m.thread_id = t.id and m.state = 'pending')
        and not exists (select 1 from runs r where r.thread_id = t.id and r.state in ('queued', 'running', 'parked'))
      limit ${limit}`,
  ),
)
