import type { RunId } from '../base/ids.ts'
import type { FailureCode, Run } from '../runs/run.ts'
import { integer, row } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { one } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import type { Occurrence } from './occurrence.ts'
import { findSchedule } from './schedule.ts'
import { OVERLAP, occurrencesOfRun, settleOccurrence } from './settle.ts'
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
