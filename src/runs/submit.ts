import { canonicalJson, digestOf } from '../base/canonical-json.ts'
import { HoldfastError } from '../base/errors.ts'
import type { RunId, ThreadId, WorkerId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { record } from '../events/event.ts'
import { integer, row } from '../store/row.ts'
import { kept, now, sql } from '../store/sql.ts'
import { first, holding, one } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { openThread } from '../threads/thread.ts'
import { findRun, runRow } from './run.ts'
import type { ParentMode, Run, RunRequest } from './run.ts'

export interface Submission {
  readonly id: RunId
  readonly threadId: ThreadId
  readonly agent: string
  readonly request: RunRequest
  /** Submissions with the same key are the same run. */
  readonly key?: string
  readonly parentThreadId?: ThreadId
  /** The run from which this one is started, and how far it waits for it. */
  readonly parentRunId?: RunId
  readonly parentMode?: ParentMode
  readonly notify?: boolean
  readonly priority?: number
  /** How long it may wait in the queue. */
  readonly expiresInMs?: number
  readonly backlogLimit?: number
  /** Only this worker may claim it. */
  readonly forWorker?: WorkerId
  /** Only workers of this machine may claim it: its workspace is there. */
  readonly host?: string
}

export type Submitted =
  | { readonly kind: 'submitted'; readonly run: Run }
  | { readonly kind: 'existing'; readonly run: Run }
  /** The key belongs to a different request. */
  | { readonly kind: 'conflict'; readonly run: Run }
  | { readonly kind: 'backlog-full'; readonly limit: number }
  /** The run from which it is started is being cancelled, and so would this one be. */
  | { readonly kind: 'parent-cancelled'; readonly parentRunId: RunId }

/**
 * Stores a run to be executed. With a key, the unique index decides which of several submissions made the run; the
 * others get that run, or a conflict if they asked for something else.
 */
export function* submitRun(submission: Submission): Transition<Submitted> {
  const digest = submissionDigest(submission)
  const known = submission.key === undefined ? undefined : yield* findByKey(submission.key)
  if (known !== undefined) return { kind: known.requestDigest === digest ? 'existing' : 'conflict', run: known }
  const limit = submission.backlogLimit ?? LIMITS.backlog
  if (yield* isBacklogFull(limit)) return { kind: 'backlog-full', limit }
  if (submission.parentRunId !== undefined && (yield* isBeingCancelled(submission.parentRunId)))
    return { kind: 'parent-cancelled', parentRunId: submission.parentRunId }
  yield* openThread(submission.threadId, submission.agent, submission.parentThreadId ?? null)
  const stored = yield* insertRun(submission, digest)
  if (stored === undefined) {
    // By its key somebody else's; by its id our own, whose first answer was lost.
    const winner = (yield* findRun.single(submission.id)) ?? (yield* findByKey(submission.key ?? ''))
    if (winner === undefined) return { kind: 'existing', run: yield* agentRunOf(submission) }
    return { kind: winner.requestDigest === digest ? 'existing' : 'conflict', run: winner }
  }
  yield* record({
    type: 'run.queued',
    threadId: stored.threadId,
    runId: stored.id,
    data: { agent: stored.agent, priority: stored.priority },
  })
  return { kind: 'submitted', run: stored }
}

/** Who shares its commit may forget the thread that was just looked up: no lock is between the two. Then nothing of it is stored. */
function* insertRun(submission: Submission, digest: string): Transition<Run | undefined> {
  const { id, threadId, agent, key, parentThreadId, priority = 0, notify = true, expiresInMs } = submission
  return yield* first(
    runRow,
    sql`insert into runs (id, thread_id, agent, state, priority, request, request_digest, submit_key,
        parent_thread_id, parent_run_id, parent_mode, notify, for_worker, kind, created_at, expires_at, workspace, host)
      values (${id}, (select id from threads where id = ${threadId} ${kept}), ${agent}, 'queued', ${priority}, ${requestText(submission.request)}, ${digest},
        ${key ?? null}, ${parentThreadId ?? null}, ${submission.parentRunId ?? null}, ${submission.parentMode ?? null},
        ${notify ? 1 : 0},
        ${submission.forWorker ?? null}, ${submission.request.kind}, ${now},
        ${expiresInMs === undefined ? sql`null` : sql`${now} + ${expiresInMs}`},
        ${submission.request.workspace?.mode ?? null}, ${submission.host ?? null})
      on conflict do nothing
      returning *`,
  )
}

/** The run from which something is started, held until that is stored; undefined if it may start nothing any more. */
export function* holdParent(runId: RunId): Transition<Run | undefined> {
  const statement = first(
    runRow,
    sql`update runs set fence = fence where id = ${runId} and state = 'running' and cancel_requested_at is null returning *`,
  )
  return yield* holding(`run:${runId}`, statement)
}

/** One that has ended by itself does not mind: what its processes start then is nobody's. */
function* isBeingCancelled(runId: RunId): Transition<boolean> {
  if ((yield* holdParent(runId)) !== undefined) return false
  return (yield* findRun.single(runId))?.cancelRequestedAt != null
}

/** Of several that wake an agent's thread at once, one run comes. */
function* agentRunOf({ threadId }: Submission): Transition<Run> {
  return yield* one(
    runRow,
    sql`select * from runs where thread_id = ${threadId} and kind = 'agent' and state in ('queued', 'running', 'parked') and input is null`,
  )
}

function* findByKey(key: string): Transition<Run | undefined> {
  return yield* first(runRow, sql`select * from runs where submit_key = ${key}`)
}

const countRow = row({ count: integer })

export function* isBacklogFull(limit: number): Transition<boolean> {
  const { count } = yield* one(
    countRow,
    sql`select count(*) as count from (select 1 from runs where state = 'queued' and input is null limit ${limit}) as waiting`,
  )
  return count >= limit
}

/** What two submissions with one key must agree on: what was asked for, not from which shell or in whose name. */
function submissionDigest({ agent, request, parentThreadId, notify = true, priority = 0 }: Submission): string {
  const asked = request.kind === 'command' ? { ...request, env: undefined } : request
  return digestOf({ agent, request: asked, parent: parentThreadId ?? null, notify, priority })
}

function requestText(request: RunRequest): string {
  const text = canonicalJson(request)
  if (Buffer.byteLength(text) > LIMITS.requestBytes) {
    throw new HoldfastError(
      'usage/request-too-large',
      `the request has ${Buffer.byteLength(text)} bytes, ${LIMITS.requestBytes} at most`,
      {
        remedy: 'put large input into a file and pass its name',
      },
    )
  }
  return text
}
