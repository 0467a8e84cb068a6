import { actionsOfRun } from '../actions/action.ts'
import type { Action } from '../actions/action.ts'
import { subjectDigest } from '../actions/approval.ts'
import { askLeave, callEnded } from '../actions/observed.ts'
import type { Leave, ObservedCall, ObservedPlace, Permission } from '../actions/observed.ts'
import { holdRun } from '../runs/park.ts'
import type { Transition } from '../store/transition.ts'

/** A question has a name of its own: by that its answer is given again to whoever lost it. */
export type Question = ObservedCall & { readonly callId: string }

/**
 * Asks a person, or tells what was answered. With a yes the asking is done: in one transaction the approval is used up and its
 * action has come to its end, so nothing is left open in a turn of which nobody knows when it goes on. The same question,
 * asked again after that, has the same answer and begins nothing.
 */
export function* askPerson(place: ObservedPlace, question: Question, leave: Leave): Transition<Permission> {
  // Held first: of two rounds of one question the second sees what the first has begun.
  yield* holdRun(place.runId)
  const before = (yield* actionsOfRun.single(place.runId)).find(({ callId }) => callId === question.callId)
  const known = before === undefined ? undefined : answered(before)
  if (known !== undefined) return known
  const permission = yield* askLeave(place, question, leave)
  if (permission.kind !== 'allowed') return permission
  const { tool, version, input, callId } = question
  yield* callEnded(place.runId, { callId, digest: subjectDigest({ tool, version, input }) })
  return permission
}

function answered({ state, decision, error }: Action): Permission | undefined {
  if (state === 'done')
    return { kind: 'allowed', by: decision === null ? 'a rule' : `${decision.by}, by ${decision.via}` }
  if (state === 'waiting' || state === 'approved' || state === 'started') return undefined
  return { kind: 'refused', why: error ?? state }
}
