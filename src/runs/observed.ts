import { canonicalJson, digestOf } from '../base/canonical-json.ts'
import type { RunId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { kept, now, sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { DECISION, ITS_CLIENT, holdRun, parkedJustNow } from './park.ts'
import { findRun, runRow } from './run.ts'
import type { ObservedRequest, Run } from './run.ts'

/** One name for one turn, whoever tells of it and however often. */
const observedRunId = (request: ObservedRequest): RunId => `run_${digestOf(request).slice(0, 32)}` as RunId

export interface ObservedTurn {
  readonly threadId: ThreadId
  readonly agent: string
  readonly parentThreadId: ThreadId | null
  readonly request: ObservedRequest
}

/** Records that a session has begun a turn. Nobody claims such a run; its client carries it out. */
export function* beginObserved({ threadId, agent, parentThreadId, request }: ObservedTurn): Transition<Run> {
  const id = observedRunId(request)
  const begun = yield* first(
    runRow,
    sql`insert into runs (id, thread_id, agent, state, request, request_digest, parent_thread_id, kind, created_at, started_at)
      values (${id}, (select id from threads where id = ${threadId} ${kept}), ${agent}, 'running', ${canonicalJson(request)},
        ${digestOf(request)}, ${parentThreadId}, 'observed', ${now}, ${now})
      on conflict do nothing returning *`,
  )
  if (begun === undefined) {
    const known = yield* findRun.single(id)
    if (known === undefined)
      throw new Error(`the turn ${id} could not be recorded: its thread has another one under way`)
    return known
  }
  yield* record({ type: 'run.started', threadId, runId: id, data: { observed: request.client } })
  return begun
}

/**
 * Its client has ended while a call of it waits for a person: the client comes back for the answer, and then it is the same
 * turn. False: nothing of it waits.
 */
export function* parkObserved(runId: RunId): Transition<boolean> {
  yield* holdRun(runId)
  const parked = yield* first(
    runRow,
    sql`update runs set state = 'parked', parked_at = ${now},
        parked_for = case when exists (select 1 from actions a where a.run_id = runs.id and a.state = 'waiting')
          then ${DECISION} else ${ITS_CLIENT} end
      where id = ${runId} and kind = 'observed' and state = 'running' and cancel_requested_at is null
        and exists (select 1 from actions a where a.run_id = runs.id and a.mark = 'deferred' and a.state <> 'withdrawn')
      returning *`,
  )
  // That it ended may be heard twice.
  if (parked === undefined) return (yield* findRun.single(runId))?.state === 'parked'
  yield* record({ type: 'run.parked', threadId: parked.threadId, runId, data: { waitsFor: parked.parkedFor ?? '' } })
  return true
}

/** The client is back. False: the turn did not wait for it, or was cancelled meanwhile. */
export function* goOnObserved(runId: RunId): Transition<boolean> {
  const resumed = yield* first(
    runRow,
    sql`update runs set state = 'running', parked_ms = parked_ms + (${parkedJustNow}), parked_at = null, parked_for = null
      where id = ${runId} and kind = 'observed' and state = 'parked' returning *`,
  )
  if (resumed === undefined) return false
  yield* record({ type: 'run.resumed', threadId: resumed.threadId, runId })
  return true
}
