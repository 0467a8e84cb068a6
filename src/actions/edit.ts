import type { ActionId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { holdRun } from '../runs/park.ts'
import { integer, row } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { first, one, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { actionRow } from './action.ts'
import type { Action, Decision } from './action.ts'
import { approvalOf, approvalRow, findApproval } from './approval.ts'
import type { Approval } from './approval.ts'
import { proposeAction, recordSettled } from './propose.ts'

/** What a person makes of a call that waits for them. */
export interface Edit {
  readonly by: string
  readonly via: string
  /** What the person saw: only that is changed. */
  readonly digest: string
  readonly note?: string
  /** The call as it is to be, checked by its tool: another action, with a request of its own. */
  readonly action: {
    readonly id: ActionId
    readonly mark: string
    readonly input: unknown
    readonly signature: string
    readonly version: string
    /** Another input may have another effect. */
    readonly effect: Action['effect']
  }
  readonly expiresInMs?: number
}

export type Edited =
  | {
      readonly kind: 'edited'
      readonly original: Action
      readonly action: Action
      /** What is asked now; nobody has approved it. */
      readonly approval: Approval
    }
  /** It has been answered before, has expired, or its run has ended. */
  | { readonly kind: 'too-late'; readonly approval: Approval }
  /** What waits is not what was seen. */
  | { readonly kind: 'changed'; readonly approval: Approval }
  | { readonly kind: 'unknown' }

/**
 * A person changes the arguments of a call. The call as it was is over; the new one asks afresh, since a yes covers exactly
 * what was seen. The run goes on waiting: there is as much to decide as before.
 */
export function* editApproval(id: string, edit: Edit): Transition<Edited> {
  const asked = yield* findApproval.single(id)
  if (asked === undefined) return { kind: 'unknown' }
  yield* holdRun(asked.runId)
  const closed = yield* first(
    approvalRow,
    sql`update approvals set state = 'skipped', decided_by = ${edit.by}, decided_via = ${edit.via}, decided_at = ${now},
        note = ${edit.note ?? null}
      where id = ${id} and state = 'pending' and digest = ${edit.digest} and expires_at > ${now} returning *`,
  )
  if (closed === undefined) return yield* whyNot(id, edit)
  const original = yield* replace(closed, edit)
  if (original === undefined) {
    yield* run(sql`update approvals set state = 'withdrawn' where id = ${id}`)
    return { kind: 'too-late', approval: { ...closed, state: 'withdrawn' } }
  }
  yield* record({
    type: 'approval.decided',
    threadId: closed.threadId,
    runId: closed.runId,
    data: {
      approvalId: id,
      actionId: closed.actionId,
      decision: 'edit',
      by: edit.by,
      via: edit.via,
      replacedBy: edit.action.id,
    },
  })
  const action = yield* proposeInstead(original, edit)
  const approval = yield* one(approvalRow, sql`select * from approvals where id = ${approvalOf(action.id)}`)
  return { kind: 'edited', original, action, approval }
}

function* whyNot(id: string, { digest }: Edit): Transition<Edited> {
  const approval = yield* findApproval.single(id)
  if (approval === undefined) return { kind: 'unknown' }
  return { kind: approval.state !== 'pending' || approval.digest === digest ? 'too-late' : 'changed', approval }
}

function* replace({ actionId }: Approval, edit: Edit): Transition<Action | undefined> {
  const decision: Decision = { kind: 'deny', by: edit.by, via: edit.via }
  const note = edit.note === undefined ? '' : `: ${edit.note}`
  const original = yield* first(
    actionRow,
    sql`update actions set state = 'skipped', decision = ${JSON.stringify(decision)}, settled_at = ${now},
        error = ${`a person changed this call${note}`}, replaced_by = ${edit.action.id}
      where id = ${actionId} and state = 'waiting' returning *`,
  )
  if (original !== undefined) yield* recordSettled(original)
  return original
}

const ordinalRow = row({ ordinal: integer })

/** Behind the others of its reply: where the model finds its result is for who reads them, by `answersOf`. */
function* proposeInstead(original: Action, edit: Edit): Transition<Action> {
  const { runId, threadId, entrySeq, callId, tool, repeats } = original
  const { ordinal } = yield* one(
    ordinalRow,
    sql`select max(ordinal) + 1 as ordinal from actions where entry_seq = ${entrySeq}`,
  )
  const { expiresInMs } = edit
  return yield* proposeAction(
    {
      ...edit.action,
      callId,
      tool,
      repeats,
      verdict: { kind: 'ask', by: `${edit.by} changed the call`, via: 'default' },
      afresh: true,
      ...(expiresInMs === undefined ? {} : { expiresInMs }),
    },
    { runId, threadId, entrySeq, ordinal },
  )
}

/** An action that answers a call of the model, and whether a person had changed it. */
export interface CallAnswer {
  readonly action: Action
  readonly changed: boolean
}

/** One for each call, in the order of the calls: one that a person changed is answered by what it was changed to. */
export function answersOf(actions: readonly Action[]): CallAnswer[] {
  const byId = new Map(actions.map((action) => [action.id, action]))
  const instead = new Set(actions.flatMap(({ replacedBy }) => (replacedBy === null ? [] : [replacedBy])))
  const last = (action: Action): Action => {
    const next = action.replacedBy === null ? undefined : byId.get(action.replacedBy)
    return next === undefined ? action : last(next)
  }
  return actions
    .filter(({ id }) => !instead.has(id))
    .map((action) => ({ action: last(action), changed: action.replacedBy !== null }))
}
