import type { RunId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { now, sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
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

/** Cancel is a durable request first: from here on, whoever dies, only `cancelled` can win. */
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
  if (found.state === 'running') return { kind: 'requested', run: found }
  const { run } = yield* finishUnclaimed(runId, { state: 'cancelled' })
  return { kind: 'cancelled', run }
}

function* requestCancel(runId: RunId, request: CancelRequest): Transition<Run | undefined> {
  return yield* first(
    runRow,
    sql`update runs set cancel_requested_at = ${now}, cancel_by = ${request.by}, cancel_reason = ${request.reason ?? null}
      where id = ${runId} and cancel_requested_at is null and state in ('queued', 'running', 'parked') returning *`,
  )
}
