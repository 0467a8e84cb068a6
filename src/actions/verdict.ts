import { canonicalJson } from '../base/canonical-json.ts'
import { HoldfastError } from '../base/errors.ts'
import type { Action } from './action.ts'
import type { Approval } from './approval.ts'
import type { Decided } from './decide.ts'
import type { AskedMatter } from './desk.ts'
import type { Resolved } from './doubt.ts'
import type { Edited } from './edit.ts'
import type { PolicyRule } from './policy.ts'
import { narrowestRule } from './rule.ts'
import type { NewRule } from './rule.ts'

/* What a person said was taken, or why not: the same words at every door. */

type Taken<Verdict extends { readonly kind: string }> = Extract<Verdict, { kind: 'decided' | 'edited' }>

/** What a run says is nobody's decision. */
export const insideRun = (how: string) =>
  new HoldfastError('decisions/inside-run', `${how}, and a run decides nothing`, {
    remedy: 'decide from a terminal of your own',
  })

/** A lost race is said with who won it. `look`: where what would run is shown. */
export function taken<Verdict extends Decided | Edited>(
  asked: Approval,
  verdict: Verdict,
  look: string,
): Taken<Verdict> {
  if (verdict.kind === 'decided' || verdict.kind === 'edited') return verdict as Taken<Verdict>
  if (verdict.kind === 'changed')
    throw new HoldfastError('approvals/changed', `${asked.id} is not what has that digest`, {
      remedy: `${look} shows what would run`,
    })
  const { state, decidedBy } = 'approval' in verdict ? verdict.approval : asked
  const by = decidedBy === null ? '' : `, by ${decidedBy}`
  const how = state === 'pending' ? 'has expired' : `has been decided already: ${state}${by}`
  throw new HoldfastError('approvals/too-late', `${asked.id} ${how}`, { remedy: 'nothing was changed' })
}

/** The rule that "always" would make of a call. `once`: how it is allowed this one time. */
export function alwaysRule({ action, run, approval }: AskedMatter, by: string, once: string): NewRule {
  const narrow = narrowestRule(action, run.agent)
  if ('refused' in narrow) {
    throw new HoldfastError('approvals/no-rule', `there can be no rule for this: ${narrow.refused}`, {
      remedy: `${once} allows it this once`,
    })
  }
  const id = `rule_${approval.id.slice(approval.id.indexOf('_') + 1)}`
  return { id, rule: narrow.rule, by, from: action.id }
}

export const isSameRule = (one: PolicyRule, other: PolicyRule): boolean => canonicalJson(one) === canonicalJson(other)

/** The action as it is after somebody said what became of it. */
export function resolved(id: string, verdict: Resolved): Action {
  if (verdict.kind === 'resolved') return verdict.action
  if (verdict.kind === 'run-ended')
    throw new HoldfastError('doubts/run-ended', `the run of ${id} has ended: nobody is there to do it again`, {
      remedy: 'say that it happened, that it did not happen, or give it up, for the record',
    })
  if (verdict.kind === 'observed')
    throw new HoldfastError(
      'doubts/observed',
      `${id} was a call that ${verdict.client} made itself, while Holdfast watched: it cannot be done again from here`,
      { remedy: `say that it happened or that it did not, for the record; and ask ${verdict.client} to do it again` },
    )
  if (verdict.kind === 'other-hosts')
    throw new HoldfastError('doubts/other-hosts', `nobody on that machine had begun ${id}; nothing was changed`, {
      remedy: verdict.hosts.length === 0 ? 'leave the machine out' : `it was begun on ${verdict.hosts.join(', ')}`,
    })
  const how = verdict.kind === 'unknown' ? 'is gone' : `is not in doubt any more: ${stateOf(verdict.action)}`
  throw new HoldfastError('doubts/not-in-doubt', `${id} ${how}`, { remedy: 'nothing was changed' })
}

const stateOf = ({ state, settledBy, givenUp }: Action) => {
  if (givenUp !== null) return `given up by ${givenUp}`
  return settledBy === null ? state : `${state}, settled by ${settledBy}`
}
