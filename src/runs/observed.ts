import { canonicalJson, digestOf } from '../base/canonical-json.ts'
import type { RunId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { now, sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findRun, runRow } from './run.ts'
import type { ObservedRequest, Run } from './run.ts'

/** One name for one turn, whoever tells of it and however often. */
export const observedRunId = (request: ObservedRequest): RunId => `run_${digestOf(request).slice(0, 32)}` as RunId

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
      values (${id}, ${threadId}, ${agent}, 'running', ${canonicalJson(request)}, ${digestOf(request)}, ${parentThreadId},
        'observed', ${now}, ${now})
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
