import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { integer, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, one, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { NEWS, pendingMessages } from '../threads/message.ts'
import type { Message } from '../threads/message.ts'
import { holdThread } from '../threads/thread.ts'
import type { AttemptRef } from './attempt.ts'
import { CHILDREN, parkRun } from './park.ts'
import type { Parked } from './park.ts'
import { PARENT_MODES, RUN_STATES, findRun } from './run.ts'
import type { CommandRequest, ParentMode, Run } from './run.ts'
import { sendMessage } from './send.ts'
import { holdParent, isBacklogFull, submitRun } from './submit.ts'

const childRow = row({
  id: text<RunId>(),
  threadId: text<ThreadId>(),
  agent: text(),
  state: oneOf(RUN_STATES),
  mode: nullable(oneOf(PARENT_MODES)),
})
export type Child = Decoded<typeof childRow>

/** What a run started and what has not ended yet. */
export const openChildren = single((runId: RunId) =>
  all(
    childRow,
    sql`select id, thread_id, agent, state, parent_mode as mode from runs
      where parent_run_id = ${runId} and state in ('queued', 'running', 'parked') order by seq`,
  ),
)

const familyRow = row({ id: text<RunId>(), state: oneOf(RUN_STATES) })

/** A run and everything that was started from it, at any depth. */
export const familyOf = single((runId: RunId) =>
  all(
    familyRow,
    sql`with recursive family (id, state) as (
        select id, state from runs where id = ${runId}
        union select child.id, child.state from runs child join family on child.parent_run_id = family.id)
      select id, state from family`,
  ),
)

export interface Surroundings {
  readonly children: readonly Pick<Child, 'mode'>[]
  readonly pending: readonly Pick<Message, 'kind'>[]
  /** The model has been told something that it has not answered. */
  readonly owesReply: boolean
}

/** Whether a run has nothing to do but wait for its children. Anything but their completions is answered at once. */
export function mustWait({ children, pending, owesReply }: Surroundings): boolean {
  if (pending.some(({ kind }) => !NEWS.includes(kind))) return false
  if (children.some(({ mode }) => mode === 'wait')) return true
  return pending.length === 0 && !owesReply && children.some(({ mode }) => mode === 'background')
}

/** Parks a run until one of its children has ended or somebody writes; unless that has happened since it looked. */
export function* parkForChildren(attempt: AttemptRef, owesReply: boolean): Transition<Parked | { kind: 'changed' }> {
  const held = yield* findRun.single(attempt.runId)
  if (held === undefined) return { kind: 'refused', run: undefined }
  yield* holdThread(held.threadId)
  if (!(yield* stillWaits(held, owesReply))) return { kind: 'changed' }
  return yield* parkRun(attempt, CHILDREN)
}

function* stillWaits({ id, threadId }: Run, owesReply: boolean): Transition<boolean> {
  const pending = yield* pendingMessages.single(threadId, LIMITS.page)
  return mustWait({ children: yield* openChildren.single(id), pending, owesReply })
}

export interface ChildLimits {
  readonly depth: number
  readonly children: number
}

/** A child to be started: an agent with its task, or a command. All its ids come from the action that starts it. */
export interface NewChild {
  readonly parentRunId: RunId
  readonly mode: ParentMode
  readonly agent: string
  readonly key: string
  readonly threadId: ThreadId
  readonly runId: RunId
  readonly messageId: MessageId
  readonly work: { readonly task: string } | { readonly request: CommandRequest }
  /** The only machine that can carry it out. */
  readonly host?: string
  readonly limits: ChildLimits
  readonly backlogLimit: number
}

export type StartedChild =
  | { readonly kind: 'started'; readonly runId: RunId; readonly threadId: ThreadId }
  /** Its parent was cancelled or has ended. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'limit'; readonly limit: 'depth' | 'children'; readonly value: number }
  | { readonly kind: 'backlog-full'; readonly limit: number }

/**
 * Starts a child of a run, once by its key. It holds its parent's row: a cancel comes before it, and it is refused, or after
 * it, and finds it.
 */
export function* startChild(child: NewChild): Transition<StartedChild> {
  const parent = yield* holdParent(child.parentRunId)
  const known = yield* findRun.single(child.runId)
  if (known !== undefined) return { kind: 'started', runId: known.id, threadId: known.threadId }
  if (parent === undefined) return { kind: 'refused' }
  const reached = yield* limitReached(parent, child.limits)
  if (reached !== undefined) return reached
  const started = { parentRunId: parent.id, parentMode: child.mode }
  const { threadId, runId, key, agent, work } = child
  if ('request' in work) {
    const { request } = work
    const place = child.host === undefined ? {} : { host: child.host }
    const submission = {
      id: runId,
      threadId,
      agent,
      request,
      key,
      parentThreadId: parent.threadId,
      ...started,
      ...place,
    }
    const submitted = yield* submitRun({ ...submission, backlogLimit: child.backlogLimit })
    if (submitted.kind === 'backlog-full') return submitted
  } else {
    // Its message would wait and start a run that is nobody's child.
    const limit = Math.min(child.backlogLimit, LIMITS.backlog)
    if (yield* isBacklogFull(limit)) return { kind: 'backlog-full', limit }
    const words = { text: work.task, messageId: child.messageId, key, from: parent.threadId }
    yield* sendMessage({ ...words, threadId, agent, runId, parentThreadId: parent.threadId, started })
  }
  return { kind: 'started', runId, threadId }
}

const countRow = row({ count: integer })

/** How many threads a thread descends from. One more than `most` is enough to know, whatever circle somebody has made of parents. */
export function* depthOf(threadId: ThreadId, most: number): Transition<number> {
  const { count } = yield* one(
    countRow,
    sql`with recursive line (id, depth) as (
        select parent_id, 1 from threads where id = ${threadId} and parent_id is not null
        union all select t.parent_id, line.depth + 1 from threads t join line on t.id = line.id
          where t.parent_id is not null and line.depth <= ${most})
      select count(*) as count from line`,
  )
  return count
}

function* limitReached(parent: Run, limits: ChildLimits): Transition<StartedChild | undefined> {
  const depth = yield* depthOf(parent.threadId, limits.depth)
  if (depth >= limits.depth) return { kind: 'limit', limit: 'depth', value: limits.depth }
  const { count } = yield* one(
    countRow,
    sql`select count(*) as count from runs where parent_run_id = ${parent.id} and state in ('queued', 'running', 'parked')`,
  )
  return count >= limits.children ? { kind: 'limit', limit: 'children', value: limits.children } : undefined
}
