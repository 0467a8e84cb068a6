import type { Transition } from '../store/transition.ts'
import { decideApproval } from './decide.ts'
import type { Answer, Decided } from './decide.ts'
import { addRule } from './rule.ts'
import type { NewRule } from './rule.ts'

/** Yes, and yes to the identical call from now on: the rule is there exactly when the answer was taken. */
export function* approveAlways(id: string, answer: Omit<Answer, 'kind'>, rule: NewRule): Transition<Decided> {
  const decided = yield* decideApproval(id, { ...answer, kind: 'approve' })
  if (decided.kind === 'decided') yield* addRule(rule)
  return decided
}
