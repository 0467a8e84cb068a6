import { iso } from '../base/clock.ts'
import { LIMITS } from '../base/limits.ts'
import { beginningOf } from '../base/text.ts'
import { settlerOf } from './action.ts'
import type { Action } from './action.ts'

/** The public JSON form of an action. */
export function viewAction(action: Action) {
  const { id, runId, tool, effect, input, signature, state, decision, repeatOf, result, error, startedAt, settledAt } =
    action
  return {
    id,
    runId,
    /** The step whose reply asked for it; what a function did was asked for by nobody. */
    ...(action.entrySeq < 0 ? {} : { step: action.entrySeq }),
    tool,
    effect,
    input,
    signature,
    state,
    ...(decision === null ? {} : { decision: { ...decision, at: iso(action.createdAt) } }),
    ...settlerOf(action),
    ...(repeatOf === null ? {} : { repeatOf }),
    // A person changed the call into that one, or said that this one may be done once more.
    ...(action.replacedBy === null ? {} : { replacedBy: action.replacedBy }),
    ...(action.again === null ? {} : { again: action.again }),
    ...(result === null ? {} : { result }),
    ...(error === null ? {} : { error }),
    ...(startedAt === null ? {} : { startedAt: iso(startedAt) }),
    ...(settledAt === null ? {} : { settledAt: iso(settledAt) }),
  }
}

/** One of many: of a long result the beginning, as text, and how long it is. `actions show` and `runs show` have the whole. */
export function viewActionBriefly(action: Action) {
  const view = viewAction(action)
  if (view.result === undefined) return view
  const whole = typeof view.result === 'string' ? view.result : JSON.stringify(view.result)
  const bytes = Buffer.byteLength(whole)
  if (bytes <= LIMITS.resultShownBytes) return view
  return { ...view, result: beginningOf(whole, LIMITS.resultShownBytes), resultBytes: bytes }
}
