import type { ActionId } from '../base/ids.ts'
import type { Run } from '../runs/run.ts'
import { stepsOf } from '../runs/step.ts'
import type { Step } from '../runs/step.ts'
import type { Transition } from '../store/transition.ts'
import { actionsOfRun } from './action.ts'
import type { Action } from './action.ts'

/** What a run did: the actions that a model asked for, and the steps of a function, in the same form. */
export function* actionsOrSteps(run: Run): Transition<Action[]> {
  const actions = yield* actionsOfRun.single(run.id)
  if (run.input === null) return actions
  const listed = new Map(actions.map((action) => [action.id, action]))
  const steps = yield* stepsOf.single(run.id)
  const ofSteps = new Set(steps.map(({ actionId }) => actionId))
  const inForm = steps.map(
    (step) => (step.actionId === null ? undefined : listed.get(step.actionId)) ?? actionOf(run, step),
  )
  const others = actions.filter(({ id }) => !ofSteps.has(id))
  // Those of a loop inside of the function belong between its steps.
  return others.length === 0 ? inForm : [...inForm, ...others].toSorted((a, b) => a.createdAt - b.createdAt)
}

/** It has no id of its own but its key: nobody has to refer to it as long as there is no doubt about it. */
function actionOf(run: Run, step: Step): Action {
  const { name, effect, state, tries, result, error, settledBy, startedAt, settledAt } = step
  const key = `${run.id}/${name}`
  const nothing = { home: null, decision: null, repeatOf: null, digest: null, version: null, replacedBy: null }
  return {
    ...nothing,
    id: key as ActionId,
    runId: run.id,
    threadId: run.threadId,
    entrySeq: -run.seq,
    ordinal: 0,
    callId: name,
    tool: name,
    effect,
    repeats: 'each',
    input: null,
    signature: key,
    state,
    mark: key,
    tries,
    givenUp: null,
    again: null,
    result,
    error,
    settledBy: settledBy ?? (state === 'started' ? null : 'its function'),
    createdAt: startedAt,
    startedAt,
    settledAt,
  }
}
