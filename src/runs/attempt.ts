import type { AttemptId, RunId, WorkerId } from '../base/ids.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql, unchanged } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { all, first, one, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { releaseSlots } from './capacity.ts'

/**
 * One worker's try at a run. It holds the claim (the fence, a number that only grows) and the lease; every write that
 * it makes carries its fence. `superseded`: another worker took the claim over.
 */
export const ATTEMPT_OUTCOMES = ['succeeded', 'failed', 'cancelled', 'parked', 'requeued', 'superseded'] as const
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number]

/** What a worker shows to change its run. */
export interface AttemptRef {
  readonly id: AttemptId
  readonly runId: RunId
  readonly fence: number
}

export const attemptRow = row({
  id: text<AttemptId>(),
  runId: text<RunId>(),
  number: integer,
  fence: integer,
  workerId: text<WorkerId>(),
  /** Random; every process of the command carries it. Kept over a takeover, as the processes are. */
  mark: text(),
  /** The capacity scopes that it holds. */
  slots: json<readonly string[]>(),
  claimedAt: integer,
  leaseUntil: integer,
  startingAt: nullable(integer),
  releasedAt: nullable(integer),
  endedAt: nullable(integer),
  outcome: nullable(oneOf(ATTEMPT_OUTCOMES)),
})
export type Attempt = Decoded<typeof attemptRow>

/** Ends the attempt and gives its slots back: the same transaction, and never by a sweep. */
export function* endAttempt(attempt: { readonly id: AttemptId }, outcome: AttemptOutcome): Transition<void> {
  const ended = yield* first(
    attemptRow,
    sql`update attempts set ended_at = ${now}, outcome = ${outcome}
      where id = ${attempt.id} and ended_at is null returning *`,
  )
  if (ended !== undefined) yield* releaseSlots(ended.slots)
}

/**
 * Nothing begins but by the run's current attempt, and nothing after a cancel. Nobody changes the run before the commit: who
 * takes it over or cancels it at the same instant comes after that, and sees what was begun, or came before, and then it does
 * not begin.
 */
export const mayBegin = ({ runId, fence }: Pick<AttemptRef, 'runId' | 'fence'>): Sql =>
  sql`exists (select 1 from runs where id = ${runId} and fence = ${fence} and state = 'running'
    and cancel_requested_at is null ${unchanged})`

export type Started = 'starting' | 'superseded' | 'cancel-requested'

/**
 * The intent, on disk before the command is spawned. A taker that cannot see this host's disk knows from it whether
 * the command may have run.
 */
export function* recordStarting(attempt: AttemptRef): Transition<Started> {
  const changed = yield* run(sql`update attempts set starting_at = ${now}
    where id = ${attempt.id} and ended_at is null
      and ${mayBegin(attempt)}`)
  if (changed === 1) return 'starting'
  const alive = yield* findLiveAttempt.single(attempt.id)
  return alive === undefined ? 'superseded' : 'cancel-requested'
}

const findLiveAttempt = single((id: AttemptId) =>
  first(attemptRow, sql`select * from attempts where id = ${id} and ended_at is null`),
)

const renewedRow = row({ id: text<AttemptId>(), runId: text<RunId>(), fence: integer })

/** One statement for all of a worker's attempts. What is not in the answer is no longer its own. */
export const renewLeases = single((workerId: WorkerId, leaseMs: number) =>
  all(
    renewedRow,
    sql`update attempts set lease_until = ${now} + ${leaseMs}
      where worker_id = ${workerId} and ended_at is null and released_at is null returning id, run_id, fence`,
  ),
)

const cancelledRow = row({ attemptId: text<AttemptId>() })

/** Those of a worker's attempts whose runs are to be cancelled. It reads what is being cancelled, not what is held. */
export const cancelledAttempts = single((workerId: WorkerId) =>
  all(
    cancelledRow,
    sql`select a.id as attempt_id from runs r join attempts a on a.run_id = r.id
      where r.state = 'running' and r.cancel_requested_at is not null
        and a.worker_id = ${workerId} and a.ended_at is null and a.released_at is null`,
  ),
)

/** An attempt under way whose processes carry this mark. */
export const markInUse = single((mark: string) =>
  first(attemptRow, sql`select * from attempts where mark = ${mark} and ended_at is null`),
)

export const attemptsOf = single((runId: RunId) =>
  all(attemptRow, sql`select * from attempts where run_id = ${runId} order by number`),
)

const countRow = row({ count: integer })

/** How often a run changed hands because its worker could not go on. Parking does not count. */
export function* takeoversOf(runId: RunId): Transition<number> {
  const { count } = yield* one(
    countRow,
    sql`select count(*) as count from attempts where run_id = ${runId} and outcome = 'superseded'`,
  )
  return count
}
