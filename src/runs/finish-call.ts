import { record } from '../events/event.ts'
import { integer, row } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { one, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import type { AttemptRef } from './attempt.ts'
import { endCallAttempt } from './call.ts'
import { finishRun, succeedLight } from './finish.ts'
import type { Outcome } from './finish.ts'
import { DECISION, holdRun, parkRun, resumeRun } from './park.ts'
import type { Parked } from './park.ts'
import { findRun } from './run.ts'
import type { Run } from './run.ts'
import { settleStep } from './step.ts'
import type { StepOutcome, StepsRef } from './step.ts'

/** What of a call its end has to know. */
export type FinishedCall = Pick<Run, 'agent' | 'threadId' | 'request'> & {
  /** The capacity that it holds. */
  readonly slots?: readonly string[]
}

export type CallFinish =
  | { readonly kind: 'finished' }
  /** The run has another end than the one reported. */
  | { readonly kind: 'reconciled'; readonly run: Run }

const FINISHED: CallFinish = { kind: 'finished' }

/**
 * The end of a call that nobody else waits for, with what its last steps came to. Anything that is not as usual (a cancel,
 * another attempt, a schedule or a parent behind it) goes the way of every run.
 */
export function* finishCall(
  attempt: StepsRef,
  call: FinishedCall,
  outcome: Outcome,
  steps: readonly StepOutcome[],
): Transition<CallFinish> {
  for (const step of steps) yield* settleStep(attempt, step)
  const isScheduled = call.request.kind === 'agent' && call.request.scheduled === true
  const isLight = outcome.state === 'succeeded' && !isScheduled && (call.slots ?? []).length === 0
  if (!isLight) return yield* finishAsAny(attempt, outcome)
  const { result } = outcome
  const text = result === undefined ? null : JSON.stringify(result)
  const ended = yield* succeedLight(attempt, text)
  if (ended === undefined) return yield* finishAsAny(attempt, outcome)
  yield* endCallAttempt(attempt.id, 'succeeded')
  const { threadId, agent } = call
  const { runId } = attempt
  yield* record({ type: 'run.finished', threadId, runId, data: { state: 'succeeded', agent } }, 'call.finished')
  return FINISHED
}

function* finishAsAny(attempt: AttemptRef, outcome: Outcome): Transition<CallFinish> {
  const finish = yield* finishRun(attempt, outcome)
  return finish.kind === 'finished'
    ? FINISHED
    : { kind: 'reconciled', run: (yield* findRun.single(attempt.runId)) ?? finish.run }
}

/** A call waits for a person: one of its writes may or may not have happened. Goes on at once if that is known by now. */
export function* parkCall(attempt: StepsRef, steps: readonly StepOutcome[]): Transition<Parked> {
  for (const step of steps) yield* settleStep(attempt, step)
  yield* holdRun(attempt.runId)
  const parked = yield* parkRun(attempt, DECISION)
  if (parked.kind === 'parked' && (yield* openDoubtsOf.single(attempt.runId)).count === 0)
    yield* resumeRun(attempt.runId)
  return parked
}

const countRow = row({ count: integer })

const openDoubtsOf = single((runId: Run['id']) =>
  one(
    countRow,
    sql`select count(*) as count from actions where run_id = ${runId} and state = 'in_doubt' and given_up is null`,
  ),
)
