import type { RunId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, single } from '../store/transition.ts'
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
