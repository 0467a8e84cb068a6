import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import { callHere, callOne, openCalls, threadOfCalls } from '../runs/call.ts'
import type { CallPlace, ClaimedCall } from '../runs/call.ts'
import { wakeThread } from '../runs/send.ts'
import { submitRun } from '../runs/submit.ts'
import { knownAgents } from '../runs/worker.ts'
import { row, text } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { first, run, together } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { acceptMessage } from '../threads/accept.ts'
import { reopenThread } from '../threads/remove.ts'
import { findThread, holdThread, openThread } from '../threads/thread.ts'
import type { Thread } from '../threads/thread.ts'
import type { Occurrence } from './occurrence.ts'
import type { Schedule, Target } from './schedule.ts'

/** Ids for whatever a dispatch may begin. */
export interface FiringIds {
  readonly threadId: ThreadId
  readonly runId: RunId
  readonly messageId: MessageId
  /** Whoever fires has a place for the call that it leads to, and begins it at once. */
  readonly place?: CallPlace
}

export type Dispatched =
  | {
      readonly kind: 'dispatched'
      readonly threadId: ThreadId
      readonly messageId?: MessageId
      readonly runId?: RunId
      /** It took the place. */
      readonly call?: ClaimedCall
    }
  /** Its thread is stopped: it waits until somebody opens that again. */
  | { readonly kind: 'held'; readonly threadId: ThreadId }
  | { readonly kind: 'failed'; readonly error: string; readonly transient: boolean }

/** The agent that carries out webhooks: one call, no model. */
export const WEBHOOK_AGENT = 'holdfast:webhook'

type TargetOf<Kind extends Target['kind']> = Extract<Target, { kind: Kind }>

/** Begins what an occurrence is for. Part of the transaction that claims it: a crash leaves both or neither. */
export function* dispatch(schedule: Schedule, occurrence: Occurrence, ids: FiringIds): Transition<Dispatched> {
  const { target } = schedule
  switch (target.kind) {
    case 'message':
      return yield* toThread(schedule, target, occurrence, ids)
    case 'agent':
      return yield* toNewThread(schedule, target.agent, { text: target.text }, occurrence, ids)
    case 'call':
      return yield* toFunction(target, occurrence, ids)
    case 'webhook':
      return yield* toNewThread(schedule, WEBHOOK_AGENT, webhookOf(schedule, target, occurrence), occurrence, ids)
    case 'command':
      return yield* toCommand(schedule, target, occurrence, ids)
    default:
      return dropped(`"${(target as { kind: string }).kind}" is no kind of target`)
  }
}

/**
 * Whose it is stands there before the message or the run does: whoever takes that at the same moment, as another member of
 * this batch can, finds it.
 */
function* lead(
  { id, attempts }: Occurrence,
  threadId: ThreadId,
  to: { readonly messageId?: MessageId; readonly runId?: RunId },
): Transition<void> {
  yield* run(sql`update occurrences set state = 'dispatched', attempts = ${attempts + 1}, fired_at = coalesce(fired_at, ${now}), waits = null,
      next_attempt_at = null, wait_ms = null, reason = null, thread_id = ${threadId}, message_id = ${to.messageId ?? null}, run_id = ${to.runId ?? null}
    where id = ${id} and state = 'due'`)
}

const dropped = (error: string): Dispatched => ({ kind: 'failed', error, transient: false })

function* toThread(
  schedule: Schedule,
  target: TargetOf<'message'>,
  occurrence: Occurrence,
  ids: FiringIds,
): Transition<Dispatched> {
  // Held: whoever opens it again comes before, and it is open, or after, and finds what waits for it.
  const thread = yield* holdThread(target.threadId)
  if (thread === undefined) return dropped(`there is no thread ${target.threadId}`)
  if (thread.state === 'removed' || thread.generation !== target.generation)
    return dropped(`the thread ${target.threadId} was removed`)
  if (thread.state === 'stopped' && schedule.options.stopped === 'hold') return { kind: 'held', threadId: thread.id }
  if (thread.state === 'stopped' && schedule.options.stopped === 'drop')
    return dropped(`the thread ${target.threadId} is stopped`)
  // That of a command, too, is only an inbox: whoever is there drains it.
  const isSession = thread.agent === 'command' || (yield* hasSession(thread.id))
  if (!isSession && !(yield* isKnownAgent(thread.agent))) return dropped(`no daemon has the agent ${thread.agent}`)
  if (thread.state === 'stopped') yield* reopenThread(thread.id)
  return yield* say(schedule, thread, { text: target.text }, occurrence, ids, isSession)
}

/** A thread of its own for each firing; what becomes of it is told to the schedule's owner, as of a child. */
function* toNewThread(
  schedule: Schedule,
  agent: string,
  said: Said,
  occurrence: Occurrence,
  ids: FiringIds,
): Transition<Dispatched> {
  if (!(yield* isKnownAgent(agent))) return dropped(`no daemon has the agent ${agent}`)
  const thread = yield* openThread(ids.threadId, agent, yield* presentOwner(schedule))
  return yield* say(schedule, thread, said, occurrence, ids, false)
}

function* say(
  schedule: Schedule,
  thread: Thread,
  said: Said,
  occurrence: Occurrence,
  { messageId, runId }: FiringIds,
  isSession: boolean,
): Transition<Dispatched> {
  yield* lead(occurrence, thread.id, { messageId })
  const { message } = yield* acceptMessage({
    id: messageId,
    threadId: thread.id,
    kind: 'followup',
    key: `occurrence:${occurrence.id}:${occurrence.attempts + 1}`,
    body: { ...said, ...headerOf(schedule, occurrence), ...ceilingOf(schedule, occurrence) },
  })
  if (message.state === 'dead') return dropped(`its message was not delivered: ${message.reason ?? 'dead'}`)
  // A session takes its turns elsewhere; with a full backlog the message waits, and its thread is woken when there is room.
  if (!isSession) yield* wakeThread(thread.id, thread.agent, runId)
  return { kind: 'dispatched', threadId: thread.id, messageId }
}

/** What whoever gets it is told besides the text: which one, since when, how late and why. */
const headerOf = ({ name, kind, createdAt, options }: Schedule, { dueAt, lateMs, attempts, origin }: Occurrence) => ({
  schedule: name,
  scheduleKind: kind,
  askedAt: new Date(createdAt).toISOString(),
  dueAt: new Date(dueAt).toISOString(),
  lateMs,
  ...(origin === 'run_now' ? { byHand: true } : {}),
  ...(attempts > 0 ? { attempt: attempts + 1 } : {}),
  ...(options.why === undefined ? {} : { why: options.why }),
})

type Said = { readonly text: string } & Readonly<Record<string, unknown>>

/** What the webhook's agent is to send. In the message, so that an edit of the schedule does not change what is under way. */
export interface WebhookOrder {
  readonly url: string
  readonly method: string
  readonly body?: unknown
  readonly occurrence: string
  readonly madeBy: string
  /** A run asked for it, and no person: it may reach no more than that run's own tools. */
  readonly fromRun: boolean
}

function webhookOf({ madeBy, ownerRun }: Schedule, target: TargetOf<'webhook'>, { id }: Occurrence): Said {
  const { url, method = 'POST', body } = target
  const order: WebhookOrder = {
    url,
    method,
    ...(body === undefined ? {} : { body }),
    occurrence: id,
    madeBy,
    fromRun: ownerRun !== null,
  }
  return { text: `${method} ${url}`, webhook: order }
}

/** What is left of what a firing may cost, for whichever run takes it. */
function ceilingOf({ options }: Schedule, { costMicrousd }: Occurrence) {
  if (options.firingMicrousd === undefined) return {}
  return { maxCostMicrousd: Math.max(options.firingMicrousd - costMicrousd, 0) }
}

function* toCommand(
  schedule: Schedule,
  target: TargetOf<'command'>,
  occurrence: Occurrence,
  ids: FiringIds,
): Transition<Dispatched> {
  const { kind, argv, cwd, env, timeoutMs } = target
  const owner = yield* presentOwner(schedule)
  yield* lead(occurrence, ids.threadId, { runId: ids.runId })
  const submitted = yield* submitRun({
    id: ids.runId,
    threadId: ids.threadId,
    agent: 'command',
    request: {
      kind,
      argv,
      cwd,
      ...(env === undefined ? {} : { env }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    },
    ...(owner === null ? {} : { parentThreadId: owner }),
  })
  if (submitted.kind === 'submitted' || submitted.kind === 'existing')
    return { kind: 'dispatched', threadId: submitted.run.threadId, runId: submitted.run.id }
  if (submitted.kind === 'backlog-full')
    return { kind: 'failed', error: `${submitted.limit} runs are waiting already`, transient: true }
  return dropped(`the run was refused: ${submitted.kind}`)
}

function* toFunction(target: TargetOf<'call'>, occurrence: Occurrence, ids: FiringIds): Transition<Dispatched> {
  const { runId, place } = ids
  const threadId = threadOfCalls(target.function)
  const [known, thread] = yield* together([knownAgents.single(target.function), findThread.single(threadId)])
  if (known.length === 0) return dropped(`no worker has the function ${target.function}`)
  if (thread === undefined || thread.state === 'removed') yield* openCalls(target.function)
  yield* lead(occurrence, threadId, { runId })
  const call = { id: runId, agent: target.function, input: JSON.stringify(target.input ?? null), scheduled: true }
  if (place === undefined) return { kind: 'dispatched', threadId, runId: (yield* callOne(call)).runId }
  const called = yield* callHere(call, place)
  return { kind: 'dispatched', threadId, runId, ...(called.kind === 'claimed' ? { call: called.call } : {}) }
}

function* presentOwner({ ownerThread }: Schedule): Transition<ThreadId | null> {
  if (ownerThread === null) return null
  const owner = yield* findThread.single(ownerThread)
  return owner === undefined || owner.state === 'removed' ? null : owner.id
}

const idRow = row({ id: text() })

function* hasSession(threadId: ThreadId): Transition<boolean> {
  return (yield* first(idRow, sql`select id from sessions where thread_id = ${threadId} limit 1`)) !== undefined
}

/** By what workers say of themselves, those too that are down and come back. */
function* isKnownAgent(agent: string): Transition<boolean> {
  return (yield* knownAgents.single(agent)).length > 0
}
