import { invariant } from '../base/errors.ts'
import type { AttemptId, RunId, WorkerId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { record } from '../events/event.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { GIVEN, all, changed, first, run, single } from '../store/transition.ts'
import type { Joint, Query, Transition } from '../store/transition.ts'
import { attemptRow, endAttempt } from './attempt.ts'
import type { Attempt, AttemptRef } from './attempt.ts'
import type { Claim } from './claim.ts'
import { finishRun, finishUnclaimed } from './finish.ts'
import type { Finish } from './finish.ts'
import { findRun, runRow } from './run.ts'
import type { Run } from './run.ts'
import type { OwnerIdentity } from './worker.ts'

/** A live attempt with what a taker needs to judge its owner. */
const heldAttemptRow = row({
  id: text<AttemptId>(),
  runId: text<RunId>(),
  fence: integer,
  number: integer,
  mark: text(),
  workerId: text<WorkerId>(),
  identity: json<OwnerIdentity>(),
  /** That of the worker which made the mark: the folder of the command is there, however often the run changed hands since. */
  home: text(),
  leaseUntil: integer,
  startingAt: nullable(integer),
  releasedAt: nullable(integer),
  workerStoppedAt: nullable(integer),
  kind: oneOf(['command', 'agent', 'observed']),
  agent: text(),
  /** The machine of its workspace, if it has one. */
  host: nullable(text()),
  /** A call of a function: no process carries its mark. */
  isCall: integer,
  isCancelled: integer,
  leaseOver: integer,
})
export type HeldAttempt = Decoded<typeof heldAttemptRow>

/** Every attempt that is under way, oldest lease first. Their number is bounded by capacity, not by history. */
export const heldAttempts = single(() =>
  all(
    heldAttemptRow,
    sql`select a.id, a.run_id, a.fence, a.number, a.mark, a.worker_id, w.identity, a.lease_until, a.starting_at,
        (select maker.home from attempts began join workers maker on maker.id = began.worker_id
          where began.run_id = a.run_id and began.mark = a.mark order by began.fence limit 1) as home,
        a.released_at, w.stopped_at as worker_stopped_at, r.kind, r.agent, r.host,
        case when r.input is null then 0 else 1 end as is_call,
        case when r.cancel_requested_at is null then 0 else 1 end as is_cancelled, case when a.lease_until < ${now} then 1 else 0 end as lease_over
      from attempts a join workers w on w.id = a.worker_id join runs r on r.id = a.run_id
      where a.ended_at is null order by a.lease_until`,
  ),
)

/**
 * Why a taker may have the claim. `owner-dead` was proven by the taker on the owner's host; the others are checked again
 * by the update itself.
 */
export type TakeoverGround = 'owner-dead' | 'lease-over' | 'unstarted' | 'released'

export interface Taker {
  readonly workerId: WorkerId
  readonly leaseMs: number
  readonly attemptId: AttemptId
  /** A mark of its own when the old processes cannot be taken over with the run. */
  readonly mark?: string
}

/**
 * Fences the old attempt and goes on with its run under a new one. The processes, if there are any, keep their mark;
 * the slots change hands. A worker that comes back finds its fence outdated and can change nothing.
 */
export function* takeOverRun(
  held: AttemptRef & { mark: string },
  ground: TakeoverGround,
  taker: Taker,
): Transition<Claim | undefined> {
  const taken = yield* changed(runRow, TAKEN, [held.runId, held.fence])
  if (taken === undefined) return undefined
  // Whether the ground holds is the update's own verdict: a renewal that came first wins.
  const old = yield* changed(attemptRow, SUPERSEDED, [held.id, ground])
  if (old === undefined) return yield* letBe(taken)
  const attempt = yield* insertSuccessor(taken, old, taker)
  invariant(attempt !== undefined, `the run ${taken.id} was taken over without a claim`)
  yield* record({
    type: 'run.taken_over',
    threadId: taken.threadId,
    runId: taken.id,
    data: { attempt: taken.attempt, from: old.workerId, ground },
  })
  return { run: taken, attempt }
}

/** A worker that is lost may have held a thousand runs: they are taken over by few statements. */
const TAKEN: Joint = {
  table: 'runs',
  columns: [
    ['id', 'word'],
    ['fence', 'bigint'],
  ],
  key: ['id'],
  returns: runRow.columns,
  many: sql`update runs set fence = runs.fence + 1, attempt = runs.attempt + 1
    from ${GIVEN} where runs.id = given.id and runs.fence = given.fence and runs.state = 'running'`,
}

/** Unstarted, on a host that cannot be reached: only while it has not even recorded that it is about to start. */
const SUPERSEDED: Joint = {
  table: 'attempts',
  columns: [
    ['id', 'word'],
    ['ground', 'word'],
  ],
  key: ['id'],
  returns: attemptRow.columns,
  many: sql`update attempts set ended_at = ${now}, outcome = 'superseded'
    from ${GIVEN} where attempts.id = given.id and attempts.ended_at is null and case given.ground
      when 'owner-dead' then 1 = 1
      when 'lease-over' then attempts.lease_until < ${now}
      when 'unstarted' then attempts.lease_until < ${now} and attempts.starting_at is null
      when 'released' then attempts.released_at is not null end`,
}

const insertSuccessor = (taken: Run, old: Attempt, taker: Taker): Query<Attempt | undefined> =>
  changed(attemptRow, SUCCESSORS, [
    taker.attemptId,
    taken.id,
    taken.attempt,
    taken.fence,
    taker.workerId,
    taker.mark ?? old.mark,
    JSON.stringify(old.slots),
    taker.leaseMs,
    old.startingAt,
  ])

const SUCCESSORS: Joint = {
  table: 'attempts',
  columns: [
    ['id', 'word'],
    ['run_id', 'word'],
    ['number', 'bigint'],
    ['fence', 'bigint'],
    ['worker_id', 'word'],
    ['mark', 'word'],
    ['slots', 'text'],
    ['lease_ms', 'bigint'],
    ['starting_at', 'bigint'],
  ],
  key: ['id'],
  returns: attemptRow.columns,
  many: sql`insert into attempts (id, run_id, number, fence, worker_id, mark, slots, claimed_at, lease_until, starting_at)
    select given.id, given.run_id, given.number, given.fence, given.worker_id, given.mark, given.slots, ${now}, ${now} + given.lease_ms,
      given.starting_at from ${GIVEN} order by place`,
}

/** Nobody has seen the new fence yet: it is taken back in the same transaction. The run is locked before its attempt
 * everywhere, so that two who want both never wait for each other. */
function* letBe(taken: Run): Transition<undefined> {
  yield* first(
    runRow,
    sql`update runs set fence = fence - 1, attempt = attempt - 1
      where id = ${taken.id} and fence = ${taken.fence} and state = 'running' returning *`,
  )
  return undefined
}

/**
 * A person says that the owner, on a host that cannot be reached, is dead. Whatever its command did or did not do stays
 * unknown, so the run ends as lost and nothing is run again.
 */
export function* disownRun(
  held: HeldAttempt,
  taker: Taker & { mark: string },
  by: string,
): Transition<Finish | undefined> {
  const claim = yield* takeOverRun(held, 'lease-over', taker)
  if (claim === undefined) return undefined
  const error = `${by} said that its worker on ${held.identity.host} is dead; what its command did is not known`
  const attempt = { id: taker.attemptId, runId: claim.run.id, fence: claim.run.fence }
  const cancelled = claim.run.cancelRequestedAt !== null
  return yield* finishRun(attempt, cancelled ? { state: 'cancelled' } : { state: 'failed', code: 'lost', error })
}

export type Requeued = { readonly kind: 'requeued' } | Finish

/** The command was proven never to have started, so it may be tried again; bounded, in case starting is what kills. */
export function* requeueRun(attempt: AttemptRef): Transition<Requeued> {
  const queued = yield* first(
    runRow,
    sql`update runs set state = 'queued'
      where id = ${attempt.runId} and fence = ${attempt.fence} and state = 'running' and cancel_requested_at is null
        and (select count(*) from attempts a where a.run_id = runs.id and a.outcome = 'requeued') < ${LIMITS.attempts - 1}
      returning *`,
  )
  if (queued === undefined) return yield* giveUp(attempt)
  yield* endAttempt(attempt, 'requeued')
  yield* record({
    type: 'run.requeued',
    threadId: queued.threadId,
    runId: queued.id,
    data: { attempt: queued.attempt },
  })
  return { kind: 'requeued' }
}

function* giveUp(attempt: AttemptRef): Transition<Finish> {
  const held = yield* findRun.single(attempt.runId)
  if (held?.cancelRequestedAt != null) return yield* finishRun(attempt, { state: 'cancelled' })
  const error = `${LIMITS.attempts} attempts ended before the command had started`
  return yield* finishRun(attempt, { state: 'failed', code: 'lost', error })
}

/** A worker that shuts down lets go of its claim at once; the command goes on under its supervisor. */
export function* handOverRun(attempt: AttemptRef): Transition<boolean> {
  const released = yield* run(sql`update attempts set released_at = ${now}, lease_until = ${now}
    where id = ${attempt.id} and ended_at is null and released_at is null`)
  if (released === 1) yield* record({ type: 'run.handed_over', runId: attempt.runId })
  return released === 1
}

/** Ends what waited in the queue longer than it may. */
export function* expireQueued(limit: number): Transition<number> {
  const expired = yield* all(
    runRow,
    sql`select * from runs where state = 'queued' and expires_at is not null and expires_at <= ${now} order by expires_at limit ${limit}`,
  )
  for (const waited of expired) {
    const error = 'it waited in the queue longer than it may'
    yield* finishUnclaimed(waited.id, { state: 'failed', code: 'expired', error })
  }
  return expired.length
}

const reservedRow = row({ runId: text<RunId>(), workerId: text<WorkerId>(), identity: json<OwnerIdentity>() })

/** Queued runs that are kept for one worker: if that process is gone, nobody will ever take them. */
export const reservedRuns = single(() =>
  all(
    reservedRow,
    sql`select r.id as run_id, w.id as worker_id, w.identity from runs r join workers w on w.id = r.for_worker
      where r.state = 'queued' and r.for_worker is not null`,
  ),
)

/** Ends a run whose foreground process went away before it could start it. */
export function* abandonReserved(runId: RunId, worker: WorkerId): Transition<Finish | undefined> {
  const reserved = yield* findRun.single(runId)
  if (reserved?.state !== 'queued' || reserved.forWorker !== worker) return undefined
  const error = 'the `holdfast run` that was to execute it went away before it had started'
  return yield* finishUnclaimed(runId, { state: 'failed', code: 'lost', error })
}
