import { canonicalJson, digestOf } from '../base/canonical-json.ts'
import type { ActionId, ApprovalId, RunId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { integer, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, one, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { actionRow } from './action.ts'
import type { Action } from './action.ts'

/**
 * A request for a person's decision on one action. `approved` is used up by the start of that action and by nothing else.
 * Skipped (not this one), denied (no) and expired (nobody answered) are three different things.
 */
export const APPROVAL_MOVES = {
  pending: ['approved', 'skipped', 'denied', 'expired', 'withdrawn'],
  approved: ['consumed', 'expired', 'withdrawn'],
  consumed: [],
  skipped: [],
  denied: [],
  expired: [],
  withdrawn: [],
} as const satisfies Record<string, readonly string[]>
export type ApprovalState = keyof typeof APPROVAL_MOVES
const APPROVAL_STATES = Object.keys(APPROVAL_MOVES) as ApprovalState[]

export const approvalRow = row({
  id: text<ApprovalId>(),
  actionId: text<ActionId>(),
  runId: text<RunId>(),
  threadId: text<ThreadId>(),
  digest: text(),
  /** The exact canonical bytes that are decided on. */
  shown: text(),
  state: oneOf(APPROVAL_STATES),
  askedAt: integer,
  expiresAt: integer,
  /** The rule that asks, or that there is none. */
  askedBy: text(),
  decidedBy: nullable(text()),
  decidedVia: nullable(text()),
  decidedAt: nullable(integer),
  note: nullable(text()),
})
export type Approval = Decoded<typeof approvalRow>

/** What is decided on: the tool as it is now, and the exact arguments. */
export interface Subject {
  readonly tool: string
  readonly version: string
  readonly input: unknown
}

const bytesOf = ({ tool, version, input }: Subject): string => canonicalJson({ tool, version, input })
export const subjectDigest = (subject: Subject): string => digestOf({ ...subject })

/**
 * Whether it is still what was shown. A secret that was replaced meanwhile is the same reference in both, so both have the new value:
 * then the digest, which is of the old one, says nothing any more, and the bytes do.
 */
export const covers = ({ digest, shown }: Approval, subject: Subject): boolean =>
  digest === subjectDigest(subject) || shown === bytesOf(subject)

/** One action, one request. */
export const approvalOf = (actionId: ActionId): ApprovalId =>
  `apr_${actionId.slice(actionId.indexOf('_') + 1)}` as ApprovalId

/** Stored before anybody is told: with the action that waits for it, in one transaction. */
export function* requestApproval(action: Action, askedBy: string, expiresInMs: number): Transition<Approval> {
  const subject = { tool: action.tool, version: action.version ?? '', input: action.input }
  const asked = yield* one(
    approvalRow,
    sql`insert into approvals (id, action_id, run_id, thread_id, digest, shown, state, asked_at, expires_at, asked_by)
      values (${approvalOf(action.id)}, ${action.id}, ${action.runId}, ${action.threadId}, ${subjectDigest(subject)},
        ${bytesOf(subject)}, 'pending', ${now}, ${now} + ${expiresInMs}, ${askedBy})
      returning *`,
  )
  yield* record({
    type: 'approval.requested',
    threadId: asked.threadId,
    runId: asked.runId,
    data: { approvalId: asked.id, actionId: action.id, tool: action.tool, expiresAt: asked.expiresAt },
  })
  return asked
}

/** The run has ended: nobody needs to decide any more. */
export function* withdrawApprovals(runId: RunId): Transition<void> {
  yield* run(sql`update approvals set state = 'withdrawn' where run_id = ${runId} and state in ('pending', 'approved')`)
}

/**
 * Uses an approval up, in the transaction that records the action's start. One byte changed, a second use or an expiry that
 * has passed: undefined.
 */
export function* consumeApproval(actionId: ActionId, digest: string): Transition<Approval | undefined> {
  return yield* first(
    approvalRow,
    sql`update approvals set state = 'consumed'
      where action_id = ${actionId} and state = 'approved' and digest = ${digest} and expires_at > ${now} returning *`,
  )
}

/** One that its action could still be begun with. */
export const usableApproval = single((actionId: ActionId) =>
  first(
    approvalRow,
    sql`select * from approvals where action_id = ${actionId} and state = 'approved' and expires_at > ${now}`,
  ),
)

export const findApproval = single((id: string) => first(approvalRow, sql`select * from approvals where id = ${id}`))

export const approvalOfAction = single((actionId: ActionId) =>
  first(approvalRow, sql`select * from approvals where action_id = ${actionId}`),
)

/** What waits for a person, oldest first. */
export const pendingApprovals = single((limit: number, after?: string) =>
  all(
    approvalRow,
    sql`select p.* from approvals p join actions a on a.id = p.action_id where p.state = 'pending' and ${
      after === undefined
        ? sql`1 = 1`
        : sql`(p.asked_at, a.entry_seq, a.ordinal) > (select q.asked_at, b.entry_seq, b.ordinal
            from approvals q join actions b on b.id = q.action_id where q.id = ${after})`
    }
      order by p.asked_at, a.entry_seq, a.ordinal limit ${limit}`,
  ),
)

export const approvalsIn = single((state: ApprovalState, limit: number, after?: string) =>
  all(
    approvalRow,
    sql`select * from approvals where state = ${state} and ${
      after === undefined ? sql`1 = 1` : sql`(asked_at, id) < (select asked_at, id from approvals where id = ${after})`
    } order by asked_at desc, id desc limit ${limit}`,
  ),
)

export const approvalsOfRun = single((runId: RunId) =>
  all(
    approvalRow,
    sql`select p.* from approvals p join actions a on a.id = p.action_id where p.run_id = ${runId}
      order by p.asked_at, a.entry_seq, a.ordinal`,
  ),
)

/**
 * The answer that the identical call had in this run: no or not this one stays so without asking again, and a read that was
 * approved covers identical reads. A write is asked for each time.
 */
export function* earlierAnswer(action: Action): Transition<Action | undefined> {
  return yield* first(
    actionRow,
    sql`select a.* from actions a join approvals p on p.action_id = a.id
      where a.run_id = ${action.runId} and a.digest = ${action.digest} and a.effect = ${action.effect} and a.id <> ${action.id}
        and (p.state in ('skipped', 'denied') or (a.effect = 'read' and p.state in ('approved', 'consumed')))
      order by p.decided_at desc limit 1`,
  )
}
