import { iso } from '../base/clock.ts'
import type { RunId } from '../base/ids.ts'
import { familyOf } from '../runs/children.ts'
import { findRun, isTerminal } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import type { Transition } from '../store/transition.ts'
import { settlerOf } from './action.ts'
import type { Action, ActionState } from './action.ts'
import { approvalOfAction } from './approval.ts'
import type { Approval } from './approval.ts'
import { actionsOrSteps } from './step-view.ts'

/**
 * What a run did to the world. A write that is done is an effect; one that is in doubt or under way may be one; of all
 * others it is certain that they are none. Reads are left out: they change nothing.
 */
export interface Statement {
  readonly run: Run
  readonly effects: readonly Effect[]
  /** Writes that the model wanted and that certainly did not happen. */
  readonly without: readonly Action[]
  readonly children: readonly ChildStatement[]
}

export interface Effect {
  readonly action: Action
  /** If a person was asked. */
  readonly approval: Approval | undefined
}

export interface ChildStatement {
  readonly run: Run
  readonly done: number
  readonly inDoubt: number
}

const MAY_HAVE_HAPPENED: readonly ActionState[] = ['done', 'in_doubt', 'started']

/** A call that was answered from an identical one did nothing itself. */
const isEffect = ({ effect, state, repeatOf }: Action) =>
  effect === 'write' && repeatOf === null && MAY_HAVE_HAPPENED.includes(state)

export function* readStatement(runId: RunId): Transition<Statement | undefined> {
  const run = yield* findRun.single(runId)
  if (run === undefined) return undefined
  const actions = (yield* actionsOrSteps(run)).filter(({ effect }) => effect === 'write')
  const effects: Effect[] = []
  for (const action of actions.filter(isEffect)) {
    effects.push({ action, approval: yield* approvalOfAction.single(action.id) })
  }
  const children: ChildStatement[] = []
  for (const { id } of yield* familyOf.single(runId)) {
    if (id !== runId) children.push(yield* childStatement(id))
  }
  return { run, effects, without: actions.filter((action) => !isEffect(action)), children }
}

function* childStatement(id: RunId): Transition<ChildStatement> {
  const run = yield* findRun.single(id)
  if (run === undefined) throw new Error(`run ${id} vanished`)
  const effects = (yield* actionsOrSteps(run)).filter(isEffect)
  const done = effects.filter(({ state }) => state === 'done').length
  return { run, done, inDoubt: effects.length - done }
}

/** Nothing more will be added to it, and nothing in it is open. */
const isFinal = ({ run, effects }: Statement): boolean =>
  isTerminal(run.state) && effects.every(({ action }) => action.state === 'done')

const at = <K extends string>(key: K, instant: number | null) =>
  (instant === null ? {} : { [key]: iso(instant) }) as { readonly [P in K]?: string }

/** The public JSON form. */
export function viewStatement(statement: Statement) {
  const { run, effects, without, children } = statement
  return {
    runId: run.id,
    threadId: run.threadId,
    agent: run.agent,
    state: run.state,
    final: isFinal(statement),
    // Of a command of the user's own only itself is known, not what it did.
    ...(run.request.kind === 'command' ? { command: run.request.argv } : {}),
    effects: effects.map(viewEffect),
    withoutEffect: without.map(({ id, tool, input, signature, state, repeatOf, error }) => ({
      actionId: id,
      tool,
      input,
      signature,
      state: repeatOf === null ? state : 'repeat',
      ...(repeatOf === null ? {} : { repeatOf }),
      ...(error === null ? {} : { why: error }),
    })),
    children: children.map(({ run: child, done, inDoubt }) => ({
      runId: child.id,
      agent: child.agent,
      state: child.state,
      effects: done,
      inDoubt,
    })),
  }
}

function viewEffect({ action, approval }: Effect) {
  const { id, tool, input, signature, digest, state, decision, tries, result, error, givenUp } = action
  return {
    actionId: id,
    tool,
    input,
    signature,
    ...(digest === null ? {} : { digest }),
    state,
    ...(decision === null ? {} : { allowedBy: { by: decision.by, via: decision.via } }),
    ...(approval === undefined ? {} : { approvalId: approval.id, ...at('allowedAt', approval.decidedAt) }),
    tries,
    ...at('startedAt', action.startedAt),
    ...at('settledAt', action.settledAt),
    ...settlerOf(action),
    ...(givenUp === null ? {} : { givenUp }),
    ...(state === 'done' ? { result } : {}),
    ...(error === null ? {} : { error }),
  }
}
