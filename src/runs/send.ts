import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { row, text } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { acceptMessage } from '../threads/accept.ts'
import { pendingMessages } from '../threads/message.ts'
import type { Message } from '../threads/message.ts'
import { reopenThread } from '../threads/remove.ts'
import { findOrOpen, findThread } from '../threads/thread.ts'
import { resumeWaiting } from './park.ts'
import { submitRun } from './submit.ts'
import type { AgentRequest } from './run.ts'
import type { Submission } from './submit.ts'

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
  /** How long the run that it starts may take; one that is under way already keeps its own. */
  readonly timeoutMs?: number
  /** Whether an idle thread gets a run from here; by default it does. */
  readonly wakes?: boolean
  /** By which run it is sent, if it starts a child of it. */
  readonly started?: Started
}

/** What a run that another one starts knows of it. */
export type Started = Pick<Submission, 'parentRunId' | 'parentMode'>

export interface Sent {
  readonly message: Message
  /** The run that will take it: the one it started, or the one that waits or works on the thread already. */
  readonly runId: RunId | undefined
  /** The thread of that name had been removed, and begins anew with this. */
  readonly anew: boolean
}

/** Puts a message into a thread's inbox. An idle thread gets a run in the same transaction; a busy one takes it at its next turn. */
export function* sendMessage(sending: Sending): Transition<Sent> {
  const { messageId: id, threadId, agent, from, text: words, key, runId, parentThreadId, started, timeoutMs } = sending
  const { thread, anew } = yield* findOrOpen(threadId, agent, parentThreadId ?? null)
  // A person who writes to a stopped thread wants it to go on; what others send waits there.
  if (thread.state === 'stopped' && from === undefined) yield* reopenThread(threadId)
  const { message } = yield* acceptMessage({
    id,
    threadId,
    kind: from === undefined || from === thread.parentId ? 'prompt' : 'note',
    key,
    body: { text: words },
    ...(from === undefined ? {} : { from }),
  })
  if (message.state !== 'pending') return { message, anew, runId: message.consumedByRun ?? undefined }
  if (thread.state === 'stopped' && from !== undefined) return { message, anew, runId: undefined }
  // A session takes its turns elsewhere: it finds the message at the end of one, or is woken.
  if ((yield* first(activeRow, sql`select id from sessions where thread_id = ${threadId} limit 1`)) !== undefined) {
    return { message, anew, runId: undefined }
  }
  if (sending.wakes === false) {
    yield* resumeWaiting(threadId)
    return { message, anew, runId: undefined }
  }
  const request = timeoutMs === undefined ? {} : { request: { kind: 'agent', timeoutMs } as const }
  return { message, anew, runId: yield* wakeThread(threadId, thread.agent, runId, { ...started, ...request }) }
}

const activeRow = row({ id: text<RunId>() })

/** A run that only has to do what was scheduled may cost what that may; what a person asks has no such limit. */
function requestFor(pending: readonly Message[]): AgentRequest {
  const ceilings = pending.map(({ body }) => body['maxCostMicrousd'])
  const isLimited = ceilings.every((ceiling) => typeof ceiling === 'number')
  if (!isLimited) return { kind: 'agent' }
  return { kind: 'agent', maxCostMicrousd: ceilings.reduce((sum, ceiling) => sum + ceiling, 0) }
}

/**
 * Queues a run for a thread that has messages and nobody at work. Returns the run that will see to them. One that waits for
 * its children goes on: it may have to answer.
 */
export function* wakeThread(
  threadId: ThreadId,
  agent: string,
  runId: RunId,
  started?: Started & Partial<Pick<Submission, 'request'>>,
): Transition<RunId | undefined> {
  yield* resumeWaiting(threadId)
  const active = yield* first(
    activeRow,
    sql`select id from runs where thread_id = ${threadId} and state in ('queued', 'running', 'parked') order by seq limit 1`,
  )
  if (active !== undefined) return active.id
  // Whoever saw the thread idle may be late: a run for what was answered meanwhile would give that answer again.
  const pending = yield* pendingMessages.single(threadId, LIMITS.messagesPerTurn)
  if (pending.length === 0) return undefined
  const parentThreadId = (yield* findThread.single(threadId))?.parentId ?? undefined
  const parent = parentThreadId === undefined ? {} : { parentThreadId }
  const submitted = yield* submitRun({
    id: runId,
    threadId,
    agent,
    request: requestFor(pending),
    ...parent,
    ...started,
  })
  // With a full backlog the message waits: whoever tends the store wakes its thread when there is room.
  return 'run' in submitted ? submitted.run.id : undefined
}
