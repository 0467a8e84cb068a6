import type { RunId, ScheduleId } from '../base/ids.ts'
import { findRun } from '../runs/run.ts'
import type { FailureCode, Run } from '../runs/run.ts'
import { integer, row, text } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, one } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { occurrenceRow } from './occurrence.ts'
import type { Occurrence } from './occurrence.ts'
import { findSchedule } from './schedule.ts'
import { OVERLAP, holdSchedule, occurrencesOfRun, settleOccurrence } from './settle.ts'
import type { Settlement } from './settle.ts'

/**
 * Failures after which the same may succeed a moment later. The others (a budget that is spent, credentials that are
 * refused, a check that failed) would only repeat themselves.
 */
const TRANSIENT: readonly FailureCode[] = [
  'spawn',
  'timeout',
  'killed',
  'lost',
  'expired',
  'circuit_open',
  'model',
  'tool',
  'internal',
]

/** `EX_TEMPFAIL` of sysexits: a command's own word that it did nothing and may be run again. */
const TRY_AGAIN_LATER = 'exit:75'

/** The outcome of an occurrence is that of the run it led to. */
export function* settleRun(ended: Run): Transition<void> {
  for (const occurrence of yield* occurrencesOfRun(ended.id)) {
    yield* settleOccurrence(occurrence, yield* settlementOf(ended, occurrence))
  }
}

/** The same for a call that succeeded, of which there is nothing to be known but that. */
export function* settleCall(runId: RunId): Transition<void> {
  for (const occurrence of yield* occurrencesOfRun(runId))
    yield* settleOccurrence(occurrence, { kind: 'succeeded', costMicrousd: 'run' })
}

const leftRow = row({ scheduleId: text<ScheduleId>(), runId: text<RunId>() })

/** Settles what still waits for the end of a run that has ended, or is gone. How many. */
export function* settleLeft(limit: number): Transition<number> {
  const left = yield* all(
    leftRow,
    sql`select o.schedule_id, o.run_id from occurrences o left join runs r on r.id = o.run_id
      where o.state = 'dispatched' and o.run_id is not null and (r.id is null or r.ended_at is not null) limit ${limit}`,
  )
  for (const { scheduleId, runId } of left) {
    // Of several that settle it the first does: the others see that after this.
    yield* holdSchedule(scheduleId)
    const ended = yield* findRun.single(runId)
    yield* ended === undefined ? settleForgotten(runId) : settleRun(ended)
  }
  return left.length
}

/** How it ended nobody knows any more, and no event is of a run that is gone. */
function* settleForgotten(runId: RunId): Transition<void> {
  const taken = yield* all(
    occurrenceRow,
    sql`update occurrences set run_id = null where run_id = ${runId} and state = 'dispatched' returning *`,
  )
  for (const occurrence of taken) yield* settleOccurrence(occurrence, { kind: 'succeeded' })
}

function* settlementOf(ended: Run, { scheduleId }: Occurrence): Transition<Settlement> {
  const { costMicrousd } = ended
  if (ended.state === 'succeeded') return { kind: 'succeeded', costMicrousd }
  if (ended.state === 'cancelled')
    return { kind: 'failed', reason: whyCancelled(ended), transient: false, costMicrousd }
  const said = (yield* findSchedule.single(scheduleId))?.options.transient ?? []
  const names = failureNames(ended)
  const reason = `${ended.code ?? 'failed'}: ${ended.error ?? 'for a reason that is not known'}`
  const isSaid = names.some((name) => said.includes(name))
  // The command itself says that it did nothing, or whoever made the schedule, who knows it, does.
  if (names.includes(TRY_AGAIN_LATER) || (isSaid && ended.request.kind === 'command'))
    return { kind: 'failed', reason, transient: true, costMicrousd }
  const transient = (isSaid || TRANSIENT.some((code) => code === ended.code)) && !(yield* hasWritten(ended))
  return { kind: 'failed', reason, transient, costMicrousd }
}

const whyCancelled = ({ cancelBy, cancelReason }: Run) =>
  cancelReason?.startsWith(OVERLAP) === true ? cancelReason : `cancelled by ${cancelBy ?? 'somebody'}`

/** `exit` and `exit:3`. */
function failureNames({ code, result }: Run): readonly string[] {
  const status = (result as { exitCode?: unknown } | null)?.exitCode
  return [code ?? '', ...(code === 'exit' && typeof status === 'number' ? [`exit:${status}`] : [])]
}

const countRow = row({ count: integer })

/** Whether it may have changed something outside. Of a command nobody knows what it does: it has from when it was started. */
function* hasWritten({ id, seq, request, code }: Run): Transition<boolean> {
  if (code === 'spawn' || code === 'expired' || code === 'circuit_open') return false
  if (request.kind === 'observed') return true
  const { count } = yield* one(
    countRow,
    request.kind === 'agent'
      ? sql`select (select count(*) from actions where run_id = ${id} and effect = 'write' and repeat_of is null
            and state in ('started', 'done', 'in_doubt'))
          + (select count(*) from steps where run_seq = ${seq} and effect = 'write' and state <> 'failed') as count`
      : sql`select count(*) as count from attempts where run_id = ${id} and starting_at is not null`,
  )
  return count > 0
}
