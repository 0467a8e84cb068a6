import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import { row, text } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { first, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { acceptMessage } from '../threads/message.ts'
import type { Message } from '../threads/message.ts'
import { openThread } from '../threads/thread.ts'
import { submitRun } from './submit.ts'

export interface Sending {
  readonly messageId: MessageId
  readonly threadId: ThreadId
  readonly agent: string
  readonly from?: ThreadId
  readonly text: string
  readonly key: string
  /** The id of the run that it starts, if its thread is idle. */
  readonly runId: RunId
  readonly parentThreadId?: ThreadId
}

export interface Sent {
  readonly message: Message
  /** The run that will take it: the one it started, or the one that waits or works on the thread already. */
  readonly runId: RunId | undefined
}

/** Puts a message into a thread's inbox. An idle thread gets a run in the same transaction; a busy one takes it at its next turn. */
export function* sendMessage(sending: Sending): Transition<Sent> {
  const { messageId: id, threadId, agent, from, text: words, key, runId, parentThreadId } = sending
  const thread = yield* openThread(threadId, agent, parentThreadId ?? null)
  const { message } = yield* acceptMessage({
    id,
    threadId,
    generation: thread.generation,
    kind: 'prompt',
    key,
    body: { text: words },
    ...(from === undefined ? {} : { from }),
  })
  if (message.state !== 'pending') return { message, runId: message.consumedByRun ?? undefined }
  return { message, runId: yield* wakeThread(threadId, thread.agent, runId) }
}

const activeRow = row({ id: text<RunId>() })

/** Queues a run for a thread that has messages and nobody at work. Returns the run that will see to them. */
export function* wakeThread(threadId: ThreadId, agent: string, runId: RunId): Transition<RunId> {
  // Who wakes a thread holds its row: two at once make one run, also where writers run side by side.
  yield* run(sql`update threads set agent = agent where id = ${threadId}`)
  const active = yield* first(
    activeRow,
    sql`select id from runs where thread_id = ${threadId} and state in ('queued', 'running', 'parked') order by seq limit 1`,
  )
  if (active !== undefined) return active.id
  yield* submitRun({ id: runId, threadId, agent, request: { kind: 'agent' } })
  return runId
}
