import type { RunId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { json, row, text } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { first, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import type { AttemptRef } from './attempt.ts'

const heldRow = row({ threadId: text<ThreadId>() })

/**
 * Where telemetry has what this attempt does, as W3C's `traceparent`: the next attempt and the runs that this one starts refer
 * to it, in whichever process they are.
 */
export function* noteTrace(attempt: AttemptRef, number: number, traceparent: string): Transition<boolean> {
  const { runId, fence } = attempt
  const held = yield* first(
    heldRow,
    sql`select thread_id from runs where id = ${runId} and fence = ${fence} and state = 'running'`,
  )
  if (held === undefined) return false
  const known = yield* traceOf.single(runId)
  if (known?.data.traceparent === traceparent) return true
  yield* record({ type: 'run.traced', threadId: held.threadId, runId, data: { attempt: number, traceparent } })
  return true
}

const tracedRow = row({ data: json<{ readonly traceparent: string }>() })

/** That of the last attempt which had one. */
export const traceOf = single((runId: RunId) =>
  first(
    tracedRow,
    sql`select data from events where run_id = ${runId} and type = 'run.traced' order by seq desc limit 1`,
  ),
)
