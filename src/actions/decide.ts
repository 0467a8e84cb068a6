import { record } from '../events/event.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { holdRun, resumeDecided } from '../runs/park.ts'
import { actionRow } from './action.ts'
import type { Action, Decision } from './action.ts'
import { approvalRow, findApproval } from './approval.ts'
import type { Approval } from './approval.ts'
import { recordSettled } from './propose.ts'

export interface Answer {
  readonly kind: 'approve' | 'skip' | 'deny'
  /** Who, and through what. */
  readonly by: string
  readonly via: string
  /** What the person saw: a decision covers exactly that. */
  readonly digest: string
  readonly note?: string
}

export type Decided =
  | { readonly kind: 'decided'; readonly approval: Approval; readonly action: Action }
  /** It has been answered before, has expired, or its run has ended. */
  | { readonly kind: 'too-late'; readonly approval: Approval }
  /** What would run is not what was seen. */
  | { readonly kind: 'changed'; readonly approval: Approval }
  | { readonly kind: 'unknown' }

const STATES = { approve: 'approved', skip: 'skipped', deny: 'denied' } as const

/** A person's answer, once, for exactly what was shown. Its run goes on at once, from whatever process this is. */
export function* decideApproval(id: string, answer: Answer): Transition<Decided> {
  const state = STATES[answer.kind]
  const asked = yield* findApproval.single(id)
  if (asked === undefined) return { kind: 'unknown' }
  yield* holdRun(asked.runId)
  const decided = yield* first(
    approvalRow,
    sql`update approvals set state = ${state}, decided_by = ${answer.by}, decided_via = ${answer.via}, decided_at = ${now},
        note = ${answer.note ?? null}
      where id = ${id} and state = 'pending' and digest = ${answer.digest} and expires_at > ${now} returning *`,
  )
  if (decided === undefined) return yield* whyNot(id, answer)
  const action = yield* answerAction(decided, answer)
  if (action === undefined) {
    yield* run(sql`update approvals set state = 'withdrawn' where id = ${id}`)
    return { kind: 'too-late', approval: { ...decided, state: 'withdrawn' } }
  }
  yield* record({
    type: 'approval.decided',
    threadId: decided.threadId,
    runId: decided.runId,
    data: { approvalId: id, actionId: decided.actionId, decision: answer.kind, by: answer.by, via: answer.via },
  })
  yield* resumeDecided(decided.runId)
  return { kind: 'decided', approval: decided, action }
}

function* whyNot(id: string, answer: Answer): Transition<Decided> {
  const approval = yield* findApproval.single(id)
  if (approval === undefined) return { kind: 'unknown' }
  if (approval.state !== 'pending' || approval.digest === answer.digest) return { kind: 'too-late', approval }
  return { kind: 'changed', approval }
}

function* answerAction(approval: Approval, answer: Answer): Transition<Action | undefined> {
  const state = STATES[answer.kind]
  const decision: Decision = { kind: answer.kind === 'approve' ? 'allow' : 'deny', by: answer.by, via: answer.via }
  const note = answer.note === undefined ? '' : `: ${answer.note}`
  const error = { approve: null, skip: `a person said: not this one${note}`, deny: `a person said no${note}` }[
    answer.kind
  ]
  const answered = yield* first(
    actionRow,
    sql`update actions set state = ${state}, decision = ${JSON.stringify(decision)}, error = ${error},
        settled_at = ${answer.kind === 'approve' ? sql`null` : sql`${now}`}
      where id = ${approval.actionId} and state = 'waiting' returning *`,
  )
  if (answered !== undefined && answer.kind !== 'approve') yield* recordSettled(answered)
  return answered
}

/** Nobody answered: that is neither a no nor a "not this one", and the agent is told so. */
export function* expireApprovals(limit: number): Transition<number> {
  const expired = yield* all(
    approvalRow,
    sql`select * from approvals where state in ('pending', 'approved') and expires_at <= ${now} order by expires_at limit ${limit}`,
  )
  for (const approval of expired) yield* expireOne(approval)
  return expired.length
}

export function* expireOne(approval: Approval): Transition<void> {
  yield* holdRun(approval.runId)
  const changed = yield* run(sql`update approvals set state = 'expired'
    where id = ${approval.id} and state = ${approval.state} and expires_at <= ${now}`)
  if (changed === 0) return
  const error =
    approval.state === 'pending'
      ? 'nobody answered in time whether it may be done'
      : 'it was approved, and the approval ran out before it was begun'
  const action = yield* first(
    actionRow,
    sql`update actions set state = 'expired', error = ${error}, settled_at = ${now}
      where id = ${approval.actionId} and state in ('waiting', 'approved') returning *`,
  )
  if (action !== undefined) yield* recordSettled(action)
  yield* record({
    type: 'approval.expired',
    threadId: approval.threadId,
    runId: approval.runId,
    data: { approvalId: approval.id, actionId: approval.actionId },
  })
  yield* resumeDecided(approval.runId)
}
