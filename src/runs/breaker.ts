import type { RunId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { record } from '../events/event.ts'
import { integer, json, nullable, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import type { FailureCode, Run } from './run.ts'

/** The failures that a new try does not mend: an agent's breaker counts these, one row a cause. */
const BREAKER_CAUSES = ['auth'] as const satisfies readonly FailureCode[]

const breakerRow = row({
  agent: text(),
  cause: text(),
  failures: integer,
  /** How often it opened since the last success: each opening lasts twice as long as the one before. */
  openings: integer,
  openUntil: nullable(integer),
  /** The one run that may try while the breaker is half open. */
  probeRunId: nullable(text<RunId>()),
})
export type Breaker = Decoded<typeof breakerRow>

/**
 * Whether this run may start. Closed: yes. Open: no, unless it had begun before: only new ones are refused. Its time is
 * over: the first run that asks is the probe, and holds that place as long as it is under way. One that is parked, or
 * that ended before it could be claimed, holds it no more: nobody would come to give it back.
 */
export function* passBreaker({ agent, id: runId, attempt }: Run): Transition<boolean> {
  const open = yield* first(
    breakerRow,
    sql`select * from breakers where agent = ${agent} and open_until is not null limit 1`,
  )
  if (open === undefined || attempt > 0) return true
  const probing = yield* run(sql`update breakers set probe_run_id = ${runId}
    where agent = ${agent} and open_until is not null and open_until <= ${now}
      and (probe_run_id is null or probe_run_id = ${runId} or not exists (select 1 from runs probing
        where probing.id = breakers.probe_run_id and probing.state in ('queued', 'running')))
      and not exists (select 1 from breakers other where other.agent = ${agent} and other.open_until > ${now})`)
  return probing > 0
}

/** What a won end means for the agent's breaker. A cancelled run says nothing about the credentials. */
export function* settleBreaker(ended: Run): Transition<void> {
  if (ended.state === 'succeeded') return yield* resetBreaker(ended)
  const cause = BREAKER_CAUSES.find((code) => code === ended.code)
  if (ended.state === 'failed' && cause !== undefined) return yield* countFailure(ended, cause)
  yield* run(sql`update breakers set probe_run_id = null where agent = ${ended.agent} and probe_run_id = ${ended.id}`)
}

function* resetBreaker(ended: Run): Transition<void> {
  const reset = yield* all(breakerRow, sql`delete from breakers where agent = ${ended.agent} returning *`)
  if (reset.some(({ openUntil }) => openUntil !== null)) {
    yield* record({ type: 'breaker.reset', threadId: ended.threadId, runId: ended.id, data: { agent: ended.agent } })
  }
}

function* countFailure(ended: Run, cause: string): Transition<void> {
  const counted = yield* first(
    breakerRow,
    sql`insert into breakers (agent, cause, failures) values (${ended.agent}, ${cause}, 1)
      on conflict (agent, cause) do update set failures = breakers.failures + 1 returning *`,
  )
  const probed = counted?.probeRunId === ended.id
  // While it is open, failures of runs that had started before it opened do not lengthen it.
  if (counted === undefined || (counted.openUntil !== null && !probed) || counted.failures < LIMITS.breakerFailures)
    return
  const openMs = Math.min(LIMITS.breakerFirstMs * 2 ** counted.openings, LIMITS.breakerLongestMs)
  yield* run(sql`update breakers set open_until = ${now} + ${openMs}, openings = openings + 1, probe_run_id = null
    where agent = ${ended.agent} and cause = ${cause}`)
  // The operator is told once an outage, not at every probe that fails.
  yield* record({
    type: counted.openings === 0 ? 'breaker.opened' : 'breaker.reopened',
    threadId: ended.threadId,
    runId: ended.id,
    data: { agent: ended.agent, cause, failures: counted.failures, openMs },
  })
}

const openedRow = row({ data: json<{ readonly openMs: number; readonly failures: number }>() })

/** What the end of this run told the operator, if it opened a breaker. */
export const openedBreakerOf = single((runId: RunId) =>
  first(openedRow, sql`select data from events where run_id = ${runId} and type = 'breaker.opened'`),
)

export const allBreakers = single(() => all(breakerRow, sql`select * from breakers order by agent, cause`))

export const openBreakers = single(() => all(breakerRow, sql`select * from breakers where open_until is not null`))
