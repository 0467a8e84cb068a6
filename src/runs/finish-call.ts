import type { Instant } from '../base/clock.ts'
import { foreseeEvent, recording } from '../events/event.ts'
import type { NewEvent } from '../events/event.ts'
import { settleCall } from '../schedule/run-ended.ts'
import { integer, row } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { foreseen, giving, one, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import type { AttemptRef } from './attempt.ts'
import { ATTEMPT_END } from './call.ts'
import { SUCCESS, finishRun } from './finish.ts'
import type { Outcome } from './finish.ts'
import { DECISION, holdRun, parkRun, resumeRun } from './park.ts'
import type { Parked } from './park.ts'
import { findRun } from './run.ts'
import type { Run, Usage } from './run.ts'
import { foreseeSettled, settleStep } from './step.ts'
import type { StepOutcome, StepsRef } from './step.ts'

/** What of a call its end has to know. */
export type FinishedCall = Pick<Run, 'agent' | 'threadId' | 'request' | 'attempt'> & {
  /** The capacity that it holds. */
  readonly slots?: readonly string[]
  /** A loop inside of it has, or may have, actions that end with it. */
  readonly hasActions?: boolean
}

export type CallFinish =
  | { readonly kind: 'finished' }
  /** The run has another end than the one reported. */
  | { readonly kind: 'reconciled'; readonly run: Run }

const FINISHED: CallFinish = { kind: 'finished' }

/**
 * The end of a call that nobody else waits for, with what its last steps came to. Anything that is not as usual (a cancel,
 * another attempt, actions or a parent behind it) goes the way of every run.
 */
export const finishCall = foreseen(
  function* finishCall(
    attempt: StepsRef,
    call: FinishedCall,
    outcome: Outcome,
    steps: readonly StepOutcome[],
  ): Transition<CallFinish> {
    for (const step of steps) yield* settleStep(attempt, step)
    if (!isPlain(call, outcome)) return yield* finishAsAny(attempt, outcome)
    if ((yield giving(SUCCESS, attempt, outcome)) === 0) return yield* finishAsAny(attempt, outcome)
    yield giving(ATTEMPT_END, attempt, 'succeeded')
    if (isScheduled(call)) yield* settleCall(attempt.runId)
    yield recording(toldOfEnd(attempt, call), CALL_FINISHED)
    return FINISHED
  },
  (ask, attempt, call, outcome, steps) => {
    if (!isPlain(call, outcome) || isScheduled(call) || !foreseeSettled(ask, attempt, steps)) return undefined
    SUCCESS.put(ask.rows(SUCCESS.joint), attempt, outcome)
    ATTEMPT_END.put(ask.rows(ATTEMPT_END.joint), attempt, 'succeeded')
    foreseeEvent(ask, toldOfEnd(attempt, call), CALL_FINISHED)
    return FINISHED
  },
)

const isScheduled = ({ request }: FinishedCall) => request.kind === 'agent' && request.scheduled === true

/** What an earlier attempt left is looked for as well. */
const isPlain = ({ hasActions, attempt, slots = [] }: FinishedCall, { state, usage }: Outcome) =>
  state === 'succeeded' && usage === undefined && hasActions !== true && attempt === 1 && slots.length === 0

const CALL_FINISHED = 'call.finished'

const toldOfEnd = ({ runSeq }: StepsRef, { threadId, agent }: FinishedCall): NewEvent => ({
  type: 'run.finished',
  threadId,
  runSeq,
  data: { state: 'succeeded', agent },
})

function* finishAsAny(attempt: AttemptRef, outcome: Outcome): Transition<CallFinish> {
  const finish = yield* finishRun(attempt, outcome)
  return finish.kind === 'finished'
    ? FINISHED
    : { kind: 'reconciled', run: (yield* findRun.single(attempt.runId)) ?? finish.run }
}

/** Until when, and why, a call waits for something else than a person. */
export interface Wait {
  readonly until: Instant
  readonly reason: string
  /** What was spent and is not on the bill. */
  readonly usage: Usage
}

/**
 * A call waits for a person: one of its writes may or may not have happened, or may not be done without a yes. Goes on at once if
 * that is known by now. Or it waits for an instant: that of a rate limit.
 */
export function* parkCall(attempt: StepsRef, steps: readonly StepOutcome[], wait?: Wait): Transition<Parked> {
  for (const step of steps) yield* settleStep(attempt, step)
  if (wait !== undefined) return yield* parkRun(attempt, wait.reason, wait.until, wait.usage)
  yield* holdRun(attempt.runId)
  const parked = yield* parkRun(attempt, DECISION)
  if (parked.kind === 'parked' && (yield* undecidedOf.single(attempt.runId)).count === 0)
    yield* resumeRun(attempt.runId)
  return parked
}

const countRow = row({ count: integer })

const undecidedOf = single((runId: Run['id']) =>
  one(
    countRow,
    sql`select count(*) as count from actions where run_id = ${runId}
      and (state = 'waiting' or (state = 'in_doubt' and given_up is null))`,
  ),
)
