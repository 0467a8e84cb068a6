import { createHash } from 'node:crypto'

import type { ActionId, RunId } from '../base/ids.ts'
import { mayBegin } from '../runs/attempt.ts'
import { holdRun } from '../runs/park.ts'
import { findRun } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import type { Step, StepOutcome, StepsRef } from '../runs/step.ts'
import { integer, nullable, row, text } from '../store/row.ts'
import { literals, now, sql } from '../store/sql.ts'
import { all, first, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { actionRow, findAction } from './action.ts'
import type { Action } from './action.ts'
import { settleAction, whyRefused } from './perform.ts'
import { recordSettled } from './propose.ts'

/*
 * A function's write of which nobody knows whether it happened is an action from then on: listed, asked about and settled as
 * every other. While nothing goes wrong a step has no such row, so it costs nothing. Both are written in the same commit.
 */

/** Ordered by time, as every id is: by the time of its run. The same for every try, whoever lists it. */
export const actionIdOf = (runId: RunId, name: string) =>
  `act_${runId.slice('run_'.length, -16)}${createHash('sha256').update(`${runId}/${name}`).digest('hex').slice(0, 16)}` as ActionId

const listedRow = row({ name: text(), tries: integer, error: nullable(text()), startedAt: integer })

/** What became of a try of a step that is an action too, or becomes one now. False: that try is not under way. */
export function* settleListed(ref: StepsRef, outcome: StepOutcome): Transition<boolean> {
  const { runSeq, runId } = ref
  const { name, tries, state, result, error, by } = outcome
  yield* holdRun(runId)
  const step = yield* first(
    listedRow,
    sql`update steps set state = ${state}, result = ${result}, error = ${error}, settled_by = ${by ?? 'its function'},
        settled_at = ${now}, action_id = ${actionIdOf(runId, name)}
      where run_seq = ${runSeq} and name = ${name} and tries = ${tries} and state = 'started'
      returning name, tries, error, started_at`,
  )
  if (step === undefined) return false
  const action = yield* findAction.single(actionIdOf(runId, name))
  if (action !== undefined) yield* settleAction(action, settlementOf(outcome))
  else yield* listDoubt(yield* runOf(runId), step)
  return true
}

const settlementOf = ({ state, result, error, by }: StepOutcome) => ({
  state,
  by: by ?? 'its function',
  ...(result === null ? {} : { result: JSON.parse(result) as unknown }),
  ...(error === null ? {} : { error }),
})

function* runOf(runId: RunId): Transition<Run> {
  const found = yield* findRun.single(runId)
  if (found === undefined) throw new Error(`run ${runId} vanished`)
  return found
}

/** It has no place in a conversation: the number of its run, below all of those, stands for one. */
function* listDoubt(ended: Run, { name, tries, error, startedAt }: Step | ListedStep): Transition<void> {
  const { id: runId, threadId, seq, agent, input } = ended
  const [id, key] = [actionIdOf(runId, name), `${runId}/${name}`]
  const shown = JSON.stringify({ function: agent, key, input: JSON.parse(input ?? 'null') as unknown })
  const listed = yield* first(
    actionRow,
    sql`insert into actions (id, run_id, thread_id, entry_seq, ordinal, call_id, tool, effect, repeats, input, signature, state,
        mark, tries, error, settled_by, created_at, started_at, settled_at)
      values (${id}, ${runId}, ${threadId}, ${-seq}, (select count(*) from actions where entry_seq = ${-seq}), ${name}, ${name},
        'write', 'each', ${shown}, ${key}, 'in_doubt', ${id}, ${tries}, ${error}, 'nobody', ${startedAt}, ${startedAt}, ${now})
      on conflict (id) do nothing returning *`,
  )
  if (listed !== undefined) yield* recordSettled(listed)
}

type ListedStep = { readonly [Key in 'name' | 'tries' | 'error' | 'startedAt']: Step[Key] }

/** A run has ended and writes of it had begun, of which nobody will say more: they are in doubt. */
export function* doubtOpenSteps(ended: Run): Transition<void> {
  if (ended.input === null) return
  const open = yield* all(
    listedRow,
    sql`select name, tries, error, started_at from steps where run_seq = ${ended.seq} and state = 'started'`,
  )
  const ref = { id: '' as StepsRef['id'], runId: ended.id, runSeq: ended.seq, fence: ended.fence }
  for (const { name, tries } of open)
    yield* settleListed(ref, {
      name,
      tries,
      effect: 'write',
      state: 'in_doubt',
      result: null,
      error: CUT_OFF,
      by: 'nobody',
    })
  yield* doubtOpenActions(ended)
}

/** Those of a loop inside of the function. What has begun and never ends by itself would be listed nowhere. */
function* doubtOpenActions({ id }: Run): Transition<void> {
  const open = yield* all(actionRow, sql`select * from actions where run_id = ${id} and state = 'started'`)
  for (const action of open) yield* settleAction(action, { state: 'in_doubt', error: CUT_OFF, by: 'nobody' })
}

const CUT_OFF = 'its run ended while it was under way'

/** What others said of it, who could not know that it was done. */
const CORRECTED: ReadonlySet<string> = new Set(['approved', 'failed'])

/** Who had begun it and was given up comes back and says what became of it: nobody need decide that any more. */
export function* settleLate({ runSeq, runId }: StepsRef, outcome: StepOutcome): Transition<void> {
  if (outcome.effect === 'read' || outcome.state === 'in_doubt') return
  const listed = yield* first(
    listedRow,
    sql`select name, tries, error, started_at from steps where run_seq = ${runSeq} and name = ${outcome.name}
      and tries = ${outcome.tries} and state in ('in_doubt', 'failed')`,
  )
  const action = listed === undefined ? undefined : yield* findAction.single(actionIdOf(runId, outcome.name))
  if (action === undefined || action.tries !== outcome.tries) return
  if (action.state === 'in_doubt' || (outcome.state === 'done' && CORRECTED.has(action.state)))
    yield* followAction(yield* settleAction(action, settlementOf(outcome)))
}

/** What was said about an action in doubt holds for the step that it is. */
export function* followAction({ id, state, result, error, settledBy }: Action): Transition<void> {
  if (state !== 'done' && state !== 'failed') return
  yield* run(sql`update steps set state = ${state}, result = ${result === null ? null : JSON.stringify(result)}, error = ${error},
      settled_by = ${settledBy}, settled_at = ${now}
    where action_id = ${id} and state in (${literals(state === 'done' ? ['in_doubt', 'failed'] : ['in_doubt'])})`)
}

export type Again =
  | { readonly kind: 'again'; readonly tries: number }
  /** Who had begun it said meanwhile what became of it. */
  | { readonly kind: 'settled' }
  | { readonly kind: 'refused'; readonly why: 'cancel-requested' | 'superseded' }

/** A person said that it did not happen and is to be done: by the same key, by the run's current attempt, not after a cancel. */
export function* startAgain(ref: StepsRef, { id, tries }: Action): Transition<Again> {
  const { runSeq } = ref
  const started = yield* first(
    actionRow,
    sql`update actions set state = 'started', tries = tries + 1, started_at = ${now}
      where id = ${id} and state = 'approved' and tries = ${tries}
        and ${mayBegin(ref)}
      returning *`,
  )
  if (started === undefined) return yield* notAgain(ref, id, tries)
  yield* run(sql`update steps set state = 'started', tries = ${started.tries}, error = null, settled_by = null, settled_at = null
    where run_seq = ${runSeq} and action_id = ${id} and state = 'in_doubt'`)
  return { kind: 'again', tries: started.tries }
}

/** Or it has begun already, by a commit whose answer was lost. */
function* notAgain(ref: StepsRef, id: ActionId, tries: number): Transition<Again> {
  const why = yield* whyRefused(ref)
  if (why === 'superseded') return { kind: 'refused', why }
  const action = yield* findAction.single(id)
  if (action?.state === 'started' && action.tries === tries + 1) return { kind: 'again', tries: tries + 1 }
  return why === undefined ? { kind: 'settled' } : { kind: 'refused', why }
}
