import { whyRefused } from '../actions/perform.ts'
import { settleLate, settleListed } from '../actions/step-doubt.ts'
import type { ActionId, RunId } from '../base/ids.ts'
import { foreseeEvent, recording } from '../events/event.ts'
import type { NewEvent } from '../events/event.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { among, now, sql, storedIn, unchanged } from '../store/sql.ts'
import { GIVEN, all, changed, first, foreseen, giving, one, run, single } from '../store/transition.ts'
import type { Ask, Giving, Joint, Query, Transition } from '../store/transition.ts'
import type { AttemptRef } from './attempt.ts'

/**
 * One recorded thing that a function did, known by its name in the run. A write has its intent on disk before it happens;
 * `failed` means that it certainly did not happen, and what was cut off is `in_doubt` until evidence or a person settles it.
 * A read has only its outcome, and happens again if that was not recorded.
 */
const STEP_MOVES = {
  started: ['done', 'failed', 'in_doubt'],
  in_doubt: ['done', 'failed', 'started'],
  done: [],
  failed: [],
} as const satisfies Record<string, readonly string[]>
export type StepState = keyof typeof STEP_MOVES
const STEP_STATES = Object.keys(STEP_MOVES) as StepState[]

const STEP = {
  name: text(),
  effect: oneOf(['read', 'write']),
  state: oneOf(STEP_STATES),
  tries: integer,
  result: nullable(json<unknown>()),
  /** Of one that is done: why what it came to could not be kept. */
  error: nullable(text()),
  /** On what evidence; null: what the step itself came to. */
  settledBy: nullable(text()),
  /** It is or was in doubt: then it is an action too. */
  actionId: nullable(text<ActionId>()),
  startedAt: integer,
  settledAt: nullable(integer),
}
const stepRow = row(STEP)
export type Step = Decoded<typeof stepRow>

/** In the order in which they began. */
export const stepsOf = single((runId: RunId) =>
  all(
    stepRow,
    sql`select s.* from steps s join runs r on r.seq = s.run_seq where r.id = ${runId} order by s.started_at, s.name`,
  ),
)

const stepOfRunRow = row({ ...STEP, runId: text<RunId>() })

/** Of several runs. */
export const stepsOfAll = single((runIds: readonly RunId[]) =>
  all(
    stepOfRunRow,
    sql`select r.id as run_id, s.* from runs r join steps s on s.run_seq = r.seq where r.id in ${among(runIds)}
      order by s.started_at, s.name`,
  ),
)

/** The attempt that takes the steps, and its run's number. */
export type StepsRef = AttemptRef & { readonly runSeq: number }

export interface StepOutcome {
  readonly name: string
  readonly effect: 'read' | 'write'
  /** Of the try whose outcome it is. */
  readonly tries: number
  readonly state: 'done' | 'failed' | 'in_doubt'
  /** As JSON. */
  readonly result: string | null
  readonly error: string | null
  readonly by: string | null
  /** It was in doubt before, and so it is an action too. */
  readonly listed?: boolean
}

export type Advanced =
  | { readonly kind: 'recorded' }
  | { readonly kind: 'refused'; readonly why: 'cancel-requested' | 'superseded' }

const RECORDED: Advanced = { kind: 'recorded' }

/**
 * What the last steps of a run came to, and with it the intent of the next one: one commit between two steps. Nothing
 * begins but by the run's current attempt, and nothing after a cancel; what a step has done is a fact all the same.
 */
export const advanceRun = foreseen(
  function* advanceRun(ref: StepsRef, outcomes: readonly StepOutcome[], next?: string): Transition<Advanced> {
    for (const outcome of outcomes) yield* settleStep(ref, outcome)
    if (next === undefined || (yield giving(BEGUN, ref, next)) === 1) return RECORDED
    return yield* whyNotBegun(ref, next)
  },
  (ask, ref, outcomes, next?: string) => {
    if (!foreseeSettled(ask, ref, outcomes)) return undefined
    if (next !== undefined) BEGUN.put(ask.rows(BEGUN.joint), ref, next)
    return RECORDED
  },
)

function* whyNotBegun(ref: StepsRef, next: string): Transition<Advanced> {
  const why = yield* whyRefused(ref)
  if (why !== undefined) return { kind: 'refused', why }
  // The same again, by a commit whose answer was lost. Else its claim was another's for a moment of this very commit: whoever
  // comes next finds out.
  const recorded = yield* first(stepRow, sql`select * from steps where run_seq = ${ref.runSeq} and name = ${next}`)
  if (recorded === undefined) throw new Error(`step ${next} of ${ref.runId} could not be begun`)
  return RECORDED
}

export type Restarted = { readonly kind: 'restarted' } | Extract<Advanced, { kind: 'refused' }> | Settled

/** Who had begun it said meanwhile what became of it. */
export interface Settled {
  readonly kind: 'settled'
  readonly step: Step
}

/** Once more, by the same key: a write that is known not to have happened, or whose receiver knows the key. */
export function* restartStep(ref: StepsRef, { name, tries }: Pick<Step, 'name' | 'tries'>): Transition<Restarted> {
  const restarted = yield* changed(restartedRow, RESTARTED, [ref.runSeq, name, tries, ref.fence])
  if (restarted !== undefined) {
    const { actionId } = restarted
    if (actionId !== null)
      yield* run(
        sql`update actions set tries = tries + 1 where state = 'started' and tries = ${tries} and id = ${actionId}`,
      )
    return { kind: 'restarted' }
  }
  const why = yield* whyRefused(ref)
  if (why !== undefined) return { kind: 'refused', why }
  const step = yield* one(stepRow, sql`select * from steps where run_seq = ${ref.runSeq} and name = ${name}`)
  // The same again, by a commit whose answer was lost.
  return step.state === 'started' && step.tries === tries + 1 ? { kind: 'restarted' } : { kind: 'settled', step }
}

const restartedRow = row({ actionId: nullable(text<ActionId>()) })

/** As `mayBegin`, for many: who takes a thousand runs over has as many of them. */
const RESTARTED: Joint = {
  table: 'steps',
  columns: [
    ['run_seq', 'bigint'],
    ['name', 'text'],
    ['tries', 'bigint'],
    ['fence', 'bigint'],
  ],
  key: ['run_seq', 'name'],
  returns: restartedRow.columns,
  many: sql`update steps set tries = steps.tries + 1
    from ${GIVEN} where steps.run_seq = given.run_seq and steps.name = given.name and steps.tries = given.tries
      and steps.state = 'started'
      and (select runs.fence = given.fence and runs.state = 'running' and runs.cancel_requested_at is null
        from runs where runs.seq = given.run_seq ${unchanged})`,
}

/** What nobody knows is listed for people. */
const isListed = ({ state, listed }: StepOutcome) => state === 'in_doubt' || listed === true

export function* settleStep(ref: StepsRef, outcome: StepOutcome): Transition<void> {
  const isSettled = isListed(outcome)
    ? yield* settleListed(ref, outcome)
    : (yield giving(settlementOf(outcome), ref, outcome)) === 1
  if (isSettled) yield recording(told(ref, outcome), null)
  else yield* settleLate(ref, outcome)
}

/** The same of several, where it is foreseen; else nothing is asked. */
export function foreseeSettled(ask: Ask, ref: StepsRef, outcomes: readonly StepOutcome[]): boolean {
  if (outcomes.some(isListed)) return false
  // No iterator, which is a few objects for each of a hundred thousand steps.
  for (let at = 0; at < outcomes.length; at += 1) {
    const outcome = outcomes[at]!
    const { joint, put } = settlementOf(outcome)
    put(ask.rows(joint), ref, outcome)
    foreseeEvent(ask, told(ref, outcome), null)
  }
  return true
}

function told({ runSeq }: StepsRef, { name, state, error }: StepOutcome): NewEvent {
  const data = error === null ? { step: name, state } : { step: name, state, error }
  return { type: 'step.recorded', runSeq, data }
}

/** How an outcome is recorded. */
type Settlement = Giving<[StepsRef, StepOutcome]>

function settlementOf({ effect, state, error, by }: StepOutcome): Settlement {
  if (effect === 'read') return READ
  return state === 'done' && error === null && by === null ? DONE : SETTLED
}

/** Nearly all of them, in few words. */
const DONE: Settlement = {
  put: (rows, { runSeq }, { name, tries, result }) => rows.push(runSeq, name, tries, result),
  joint: {
    table: 'steps',
    columns: [
      ['run_seq', 'bigint'],
      ['name', 'text'],
      ['tries', 'bigint'],
      ['result', 'text'],
    ],
    key: ['run_seq', 'name'],
    likely: true,
    many: sql`update steps set state = 'done', result = given.result, error = null, settled_by = null, settled_at = ${now}
      from ${GIVEN} where steps.run_seq = given.run_seq and steps.name = given.name and steps.tries = given.tries
        and steps.state = 'started'`,
  },
}

/** Guarded by the step's own try, not by the run's state. */
const SETTLED: Settlement = {
  put: (rows, { runSeq }, { name, tries, state, result, error, by }) =>
    rows.push(runSeq, name, tries, state, result, error, by),
  joint: {
    table: 'steps',
    columns: [
      ['run_seq', 'bigint'],
      ['name', 'text'],
      ['tries', 'bigint'],
      ['state', 'word'],
      ['result', 'text'],
      ['error', 'text'],
      ['settled_by', 'text'],
    ],
    key: ['run_seq', 'name'],
    likely: true,
    many: sql`update steps set state = given.state, result = given.result, error = given.error, settled_by = given.settled_by,
        settled_at = ${now}
      from ${GIVEN} where steps.run_seq = given.run_seq and steps.name = given.name and steps.tries = given.tries
        and steps.state = 'started'`,
  },
}

/** The first that is recorded counts. */
const READ: Settlement = {
  put: (rows, { runSeq, fence }, { name, state, result, error, by }) =>
    rows.push(runSeq, fence, name, state, result, error, by),
  joint: {
    table: 'steps',
    columns: [
      ['run_seq', 'bigint'],
      ['fence', 'bigint'],
      ['name', 'text'],
      ['state', 'word'],
      ['result', 'text'],
      ['error', 'text'],
      ['settled_by', 'text'],
    ],
    key: ['run_seq', 'name'],
    likely: true,
    many: sql`insert into steps (run_seq, name, effect, state, tries, result, error, settled_by, started_at, settled_at)
      select given.run_seq, given.name, 'read', given.state, 1, given.result, given.error, given.settled_by, ${now}, ${now}
      from ${GIVEN} where (select runs.fence = given.fence and runs.state = 'running' from runs where runs.seq = given.run_seq ${unchanged})
      on conflict do nothing`,
  },
}

/** Its intent is taken back: whoever had it has not begun, and will not. */
export const withdrawStep = ({ runId, fence }: AttemptRef, name: string): Query<number> =>
  run(sql`delete from steps where name = ${name} and state = 'started' and tries = 1
    and run_seq = (select seq from runs where id = ${runId} and fence = ${fence} and state = 'running')`)

/** The intent of a write: as `mayBegin`, for many. */
const BEGUN: Giving<[StepsRef, next: string]> = {
  put: (rows, { runSeq, fence }, next) => rows.push(runSeq, fence, next),
  joint: {
    table: 'steps',
    columns: [
      ['run_seq', 'bigint'],
      ['fence', 'bigint'],
      ['name', 'text'],
    ],
    key: ['run_seq', 'name'],
    likely: true,
    many: sql`insert into steps (run_seq, name, effect, state, tries, started_at)
      select given.run_seq, given.name, 'write', 'started', 1, ${now}
      from ${GIVEN} where (select runs.fence = given.fence and runs.state = 'running' and runs.cancel_requested_at is null
        from runs where runs.seq = given.run_seq ${unchanged})
      on conflict do nothing`,
  },
}

/** The intent of a write of a run that is stored with it, and whose number is not known yet. */
export const BEGUN_FIRST: Giving<[AttemptRef, name: string]> = {
  put: (rows, { runId, fence }, name) => rows.push(runId, fence, name),
  joint: {
    ...BEGUN.joint,
    columns: [
      ['run_id', 'word'],
      ['fence', 'bigint'],
      ['name', 'text'],
    ],
    key: [],
    many: sql`insert into steps (run_seq, name, effect, state, tries, started_at)
      select stored.seq, given.name, 'write', 'started', 1, ${now}
      from ${GIVEN}, ${storedIn('runs')} as stored
      where stored.id = given.run_id and stored.fence = given.fence and stored.state = 'running'
      on conflict do nothing`,
  },
}
