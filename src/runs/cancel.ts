import type { RunId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { now, sql } from '../store/sql.ts'
import { all, first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { finishUnclaimed } from './finish.ts'
import { findRun, isTerminal, runRow } from './run.ts'
import type { Run } from './run.ts'

export interface CancelRequest {
  readonly by: string
  readonly reason?: string
}

export type Cancelled =
  /** Nobody held it; it has ended. */
  | { readonly kind: 'cancelled'; readonly run: Run }
  /** Its worker will stop the processes; from this instant the run can only end cancelled. */
  | { readonly kind: 'requested'; readonly run: Run }
  | { readonly kind: 'already-terminal'; readonly run: Run }
  | { readonly kind: 'unknown-run' }

/**
 * Cancel is a durable request first: from here on, whoever dies, only `cancelled` can win. What the run started is
 * cancelled with it, and does not report to it any more.
 */
export function* cancelRun(runId: RunId, request: CancelRequest): Transition<Cancelled> {
  let requested = yield* requestCancel(runId, request)
  let found = requested ?? (yield* findRun.single(runId))
  if (found === undefined) return { kind: 'unknown-run' }
  if (requested === undefined && found.cancelRequestedAt === null && !isTerminal(found.state)) {
    // It was submitted between the two statements, as another member of this batch can: what is answered must be stored.
    requested = yield* requestCancel(runId, request)
    found = requested ?? found
  }
  if (requested === undefined) return { kind: isTerminal(found.state) ? 'already-terminal' : 'requested', run: found }
  yield* record({
    type: 'run.cancel_requested',
    threadId: found.threadId,
    runId,
    data: { by: request.by, ...(request.reason === undefined ? {} : { reason: request.reason }) },
  })
  yield* cancelChildren(runId, request)
  if (found.state === 'running') return { kind: 'requested', run: found }
  const ended = yield* finishUnclaimed(runId, { state: 'cancelled' })
  return { kind: 'cancelled', run: ended.run }
}

/** The children's children follow by themselves. A child that is being started holds its parent's row until it is stored. */
function* cancelChildren(runId: RunId, { by }: CancelRequest): Transition<void> {
  const children = yield* all(
    runRow,
    sql`select * from runs where parent_run_id = ${runId} and state in ('queued', 'running', 'parked') order by seq`,
  )
  for (const child of children) {
    const silent = yield* first(
      runRow,
      sql`update runs set notify = 0 where id = ${child.id} and state in ('queued', 'running', 'parked') returning *`,
    )
    if (silent === undefined) continue
    yield* cancelRun(child.id, { by, reason: `${runId}, which started it, was cancelled` })
  }
}

function* requestCancel(runId: RunId, request: CancelRequest): Transition<Run | undefined> {
  return yield* first(
    runRow,
    sql`update runs set cancel_requested_at = ${now}, cancel_by = ${request.by}, cancel_reason = ${request.reason ?? null}
      where id = ${runId} and cancel_requested_at is null and state in ('queued', 'running', 'parked') returning *`,
  )
}
