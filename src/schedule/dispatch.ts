import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import type { AgentRequest } from '../runs/run.ts'
import { wakeThread } from '../runs/send.ts'
import { submitRun } from '../runs/submit.ts'
import { liveWorkers } from '../runs/worker.ts'
import { row, text } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { acceptMessage } from '../threads/accept.ts'
import { reopenThread } from '../threads/remove.ts'
import { findThread, openThread } from '../threads/thread.ts'
import type { Thread } from '../threads/thread.ts'
import type { Occurrence } from './occurrence.ts'
import type { Schedule, Target } from './schedule.ts'

/** Ids for whatever a dispatch may begin. */
export interface FiringIds {
  readonly threadId: ThreadId
  readonly runId: RunId
  readonly messageId: MessageId
}

export type Dispatched =
  | { readonly kind: 'dispatched'; readonly threadId: ThreadId; readonly messageId?: MessageId; readonly runId?: RunId }
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
      return yield* toNewThread(schedule, target.agent, target.text, occurrence, ids)
    case 'webhook':
      return yield* toNewThread(schedule, WEBHOOK_AGENT, target.url, occurrence, ids)
    case 'command':
      return yield* toCommand(schedule, target, ids)
    default:
      return dropped(`"${(target as { kind: string }).kind}" is no kind of target`)
  }
}

const dropped = (error: string): Dispatched => ({ kind: 'failed', error, transient: false })

function* toThread(
  schedule: Schedule,
  target: TargetOf<'message'>,
  occurrence: Occurrence,
  ids: FiringIds,
): Transition<Dispatched> {
  const thread = yield* findThread.single(target.threadId)
  if (thread === undefined) return dropped(`there is no thread ${target.threadId}`)
  if (thread.state === 'removed' || thread.generation !== target.generation)
    return dropped(`the thread ${target.threadId} was removed`)
  if (thread.state === 'stopped' && schedule.options.stopped === 'hold') return { kind: 'held', threadId: thread.id }
  if (thread.state === 'stopped' && schedule.options.stopped === 'drop')
    return dropped(`the thread ${target.threadId} is stopped`)
  const isSession = yield* hasSession(thread.id)
  if (!isSession && !(yield* isKnownAgent(thread.agent))) return dropped(`no daemon has the agent ${thread.agent}`)
  if (thread.state === 'stopped') yield* reopenThread(thread.id)
  return yield* say(schedule, thread, target.text, occurrence, ids, isSession)
}

/** A thread of its own for each firing; what becomes of it is told to the schedule's owner, as of a child. */
function* toNewThread(
  schedule: Schedule,
  agent: string,
  words: string,
  occurrence: Occurrence,
  ids: FiringIds,
): Transition<Dispatched> {
  if (!(yield* isKnownAgent(agent))) return dropped(`no daemon has the agent ${agent}`)
  const thread = yield* openThread(ids.threadId, agent, yield* presentOwner(schedule))
  return yield* say(schedule, thread, words, occurrence, ids, false)
}

function* say(
  schedule: Schedule,
  thread: Thread,
  words: string,
  occurrence: Occurrence,
  { messageId, runId }: FiringIds,
  isSession: boolean,
): Transition<Dispatched> {
  const { message } = yield* acceptMessage({
    id: messageId,
    threadId: thread.id,
    kind: 'followup',
    key: `occurrence:${occurrence.id}:${occurrence.attempts + 1}`,
    body: { text: words, ...headerOf(schedule, occurrence) },
  })
  if (message.state === 'dead') return dropped(`its message was not delivered: ${message.reason ?? 'dead'}`)
  // A session takes its turns elsewhere; with a full backlog the message waits, and its thread is woken when there is room.
  if (!isSession) yield* wakeThread(thread.id, thread.agent, runId, { request: requestOf(schedule) })
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

function requestOf({ options }: Schedule): AgentRequest {
  return { kind: 'agent', ...(options.firingMicrousd === undefined ? {} : { maxCostMicrousd: options.firingMicrousd }) }
}

function* toCommand(schedule: Schedule, target: TargetOf<'command'>, ids: FiringIds): Transition<Dispatched> {
  const { kind, argv, cwd, env, timeoutMs } = target
  const owner = yield* presentOwner(schedule)
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

function* presentOwner({ ownerThread }: Schedule): Transition<ThreadId | null> {
  if (ownerThread === null) return null
  const owner = yield* findThread.single(ownerThread)
  return owner === undefined || owner.state === 'removed' ? null : owner.id
}

const idRow = row({ id: text() })

function* hasSession(threadId: ThreadId): Transition<boolean> {
  return (yield* first(idRow, sql`select id from sessions where thread_id = ${threadId} limit 1`)) !== undefined
}

/** By what workers say of themselves: one that is down for a moment has not said that it stopped, or comes back. */
function* isKnownAgent(agent: string): Transition<boolean> {
  return (yield* liveWorkers.single()).some(({ agents }) => agents?.includes(agent) === true)
}
