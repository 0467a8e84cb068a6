import type { ActionId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { record } from '../events/event.ts'
import { now, sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { mayBegin } from '../runs/attempt.ts'
import type { AttemptRef } from '../runs/attempt.ts'
import { holdRun, resumeDecided } from '../runs/park.ts'
import { findRun } from '../runs/run.ts'
import { actionRow, findAction, isSettled } from './action.ts'
import { approvalOfAction, consumeApproval, covers, requestApproval, usableApproval } from './approval.ts'
import type { Approval } from './approval.ts'
import { judge } from './policy.ts'
import type { PolicyRule } from './policy.ts'
import { rulesInForce } from './rule.ts'
import type { Action } from './action.ts'
import { answerRepeat, besideIdentical, failedTooOften, findOriginal, placeOf, recordSettled } from './propose.ts'
import { marked, takeMark, takenBy } from './window.ts'
import type { OnceWindow } from './window.ts'

export type Start =
  /** The intent is on disk: perform it now. */
  | { readonly kind: 'started'; readonly action: Action }
  /** It needs no performing: a repeat, or one that failed too often. Or it waits: a person is asked first. */
  | { readonly kind: 'settled'; readonly action: Action }
  | { readonly kind: 'refused'; readonly why: 'cancel-requested' | 'superseded' }

const homeOf = ({ id }: AttemptRef) =>
  sql`(select w.home from attempts a join workers w on w.id = a.worker_id where a.id = ${id})`

interface CurrentRules {
  readonly agent: string
  readonly policy: readonly PolicyRule[]
}

interface Current extends CurrentRules {
  /** Of its tool. */
  readonly version: string
}

/** What is asked once more when an action begins: the rules and the tool may have changed since it was proposed. */
export interface Now extends Current {
  /** Where its tool says once across runs. */
  readonly once?: OnceWindow
  /** How long a person has to answer, if one is asked. */
  readonly approvalMs?: number
}

/**
 * An action begins: by the run's current attempt only, never after a cancel, once for each signature where the tool says so,
 * and with what a person approved only if it is still exactly that.
 */
export function* startAction(attempt: AttemptRef, id: ActionId, current: Now): Transition<Start> {
  const action = yield* heldAction(id)
  if (isSettled(action.state)) return yield* settledBefore(attempt, action)
  const original = yield* findOriginal(action)
  if (original?.again === null) return yield* answered(action, original)
  if (yield* failedTooOften(action)) return { kind: 'settled', action: yield* giveUp(action) }
  const refusal = yield* permission(action, current)
  if (refusal !== undefined) return { kind: 'settled', action: yield* refuse(action, refusal) }
  const mark =
    current.once === undefined ? ({ kind: 'mine' } as const) : yield* takeMark(action, current.agent, current.once)
  if (mark.kind === 'taken') return yield* answered(action, mark.by)
  const released = original ?? mark.released
  if (released !== undefined && (yield* approvalOfAction.single(id)) === undefined)
    return { kind: 'settled', action: yield* askAfresh(action, released, current) }
  const started = yield* first(
    actionRow,
    sql`update actions set state = 'started', tries = tries + 1, started_at = ${now}, home = ${homeOf(attempt)}
      where id = ${id} and state = 'approved' and ${marked(action, current.agent, current.once)}
        and ${mayBegin(attempt)}
      returning *`,
  )
  if (started === undefined) return yield* notStarted(attempt, action, current)
  yield* useApproval(started, current)
  yield* record({ type: 'action.started', ...placeOf(started), data: { actionId: id, tool: started.tool } })
  return { kind: 'started', action: started }
}

/** Who had begun it before may say what became of it until it begins again: from here on that has to wait. */
function* heldAction(id: ActionId): Transition<Action> {
  const action = yield* findAction.single(id)
  if (action === undefined) throw new Error(`action ${id} vanished`)
  if (action.tries === 0) return action
  yield* holdRun(action.runId)
  return (yield* findAction.single(id)) ?? action
}

function* settledBefore(attempt: AttemptRef, action: Action): Transition<Start> {
  const why = yield* whyRefused(attempt)
  return why === undefined ? { kind: 'settled', action } : { kind: 'refused', why }
}

function* answered(action: Action, original: Action): Transition<Start> {
  return { kind: 'settled', action: (yield* answerRepeat(action, original)) ?? action }
}

/** Another run took the mark in the same commit: then this is the repeat of that. */
function* notStarted(attempt: AttemptRef, action: Action, { agent, once }: Now): Transition<Start> {
  const other = once === undefined ? undefined : yield* takenBy(action, agent, once)
  if (other !== undefined) return yield* answered(action, other)
  const current = (yield* findAction.single(action.id)) ?? action
  const start = yield* settledBefore(attempt, current)
  // What is neither done nor refused must not be told as that: whoever comes next finds out.
  if (start.kind === 'settled' && current.state === 'approved') throw new Error(`${action.id} could not be started`)
  return start
}

/** It was done before, and a person said that it may be done once more: that it happens now is asked for, whatever allows it. */
function* askAfresh(action: Action, released: Action, { approvalMs = LIMITS.approvalMs }: Now): Transition<Action> {
  const waiting = yield* first(
    actionRow,
    sql`update actions set state = 'waiting', decision = null where id = ${action.id} and state = 'approved' returning *`,
  )
  if (waiting === undefined) return action
  yield* requestApproval(
    waiting,
    `it was done before (${released.id}), and once more was allowed by ${released.again ?? ''}`,
    approvalMs,
  )
  return waiting
}

/**
 * A deny that has come meanwhile wins. What a person approved must be approved still, and exactly this. Undefined: it may
 * begin. A second try of what is proven not to have happened needs no new yes, but it is for the same tool.
 */
function* permission(action: Action, current: Now): Transition<Refusal | undefined> {
  const denial = yield* denialOf(action, current)
  if (denial !== undefined) return { state: 'denied', error: denial }
  const approval = yield* approvalOfAction.single(action.id)
  if (approval === undefined) return undefined
  if (!isStill(approval, action, current))
    return { state: 'denied', error: 'its tool is not the one any more that was approved' }
  if (approval.state === 'consumed') return undefined
  const isUsable = (yield* usableApproval.single(action.id)) !== undefined
  return isUsable ? undefined : { state: 'expired', error: 'its approval is over' }
}

const isStill = (approval: Approval, { tool, input }: Action, { version }: Current) =>
  covers(approval, { tool, version, input })

/** Of the rules as they are now. */
function* denialOf(action: Action, { agent, policy }: CurrentRules): Transition<string | undefined> {
  const { tool, input, effect, threadId: thread } = action
  const rules = [...policy, ...(yield* rulesInForce.single())]
  const verdict = judge(rules, { tool, input, effect, agent, thread })
  return verdict.kind === 'deny' ? `denied by ${verdict.by}` : undefined
}

/** Used up in the transaction that records the start, and by nothing else. */
function* useApproval(started: Action, current: Now): Transition<void> {
  const approval = yield* approvalOfAction.single(started.id)
  if (approval === undefined || approval.state === 'consumed') return
  const isSame = isStill(approval, started, current)
  const used = isSame ? yield* consumeApproval(started.id, approval.digest) : undefined
  if (used === undefined) throw new Error(`the approval of ${started.id} ran out while it was begun`)
}

interface Refusal {
  readonly state: 'denied' | 'expired'
  readonly error: string
}

function* refuse(action: Action, { state, error }: Refusal): Transition<Action> {
  const refused = yield* first(
    actionRow,
    sql`update actions set state = ${state}, error = ${error}, settled_at = ${now}
      where id = ${action.id} and state = 'approved' returning *`,
  )
  if (refused !== undefined) yield* recordSettled(refused)
  return refused ?? action
}

function* giveUp(action: Action): Transition<Action> {
  const error = 'the same call has failed before, as often as it may; do something else'
  const failed = yield* first(
    actionRow,
    sql`update actions set state = 'failed', error = ${error}, settled_at = ${now}, settled_by = 'limit'
      where id = ${action.id} and state in ('proposed', 'approved') returning *`,
  )
  if (failed !== undefined) yield* recordSettled(failed)
  return failed ?? action
}

/** Why an attempt may not go on. Undefined: nothing is in the way. */
export function* whyRefused(attempt: AttemptRef): Transition<'cancel-requested' | 'superseded' | undefined> {
  const run = yield* findRun.single(attempt.runId)
  if (run?.fence !== attempt.fence || run.state !== 'running') return 'superseded'
  return run.cancelRequestedAt === null ? undefined : 'cancel-requested'
}

/** Why it may not be tried once more. The yes that its first try used up was for one tool. Undefined: it may. */
export function* whyNotAgain(action: Action, current: Current): Transition<string | undefined> {
  const denial = yield* denialOf(action, current)
  if (denial !== undefined) return denial
  const approval = yield* approvalOfAction.single(action.id)
  if (approval === undefined || isStill(approval, action, current)) return undefined
  return 'the tool that was approved was replaced'
}

/** Proven not to have happened, a read, or by its key: the same action once more, unless somebody has denied it meanwhile. */
export function* restartAction(attempt: AttemptRef, action: Action, current: Current): Transition<Action | undefined> {
  if ((yield* whyNotAgain(action, current)) !== undefined) return undefined
  return yield* first(
    actionRow,
    sql`update actions set tries = tries + 1, home = ${homeOf(attempt)}
      where id = ${action.id} and state = 'started' and tries = ${action.tries}
        and ${mayBegin(attempt)}
      returning *`,
  )
}

export interface Settlement {
  readonly state: 'done' | 'failed' | 'in_doubt'
  readonly result?: unknown
  readonly error?: string
  /** Who settled it and on what evidence. */
  readonly by: string
}

/**
 * Guarded by the action's own try, not by the run's state: what a tool has done is a fact, also when the run was
 * cancelled meanwhile. A try that was superseded can settle nothing.
 */
export function* settleAction(action: Action, settlement: Settlement): Transition<Action> {
  const settled = (yield* writeSettlement(action, settlement, 'started')) ?? (yield* settleDoubt(action, settlement))
  if (settled === undefined) return (yield* findAction.single(action.id)) ?? action
  yield* recordSettled(settled)
  return settled
}

/**
 * Who had begun it and was given up comes back and says what became of it: nobody need decide that any more. That it is done counts also where a
 * person has had it run again, who could not know, as long as it has not begun; and where somebody said that it had not happened, once its run has ended and
 * nothing follows from that any more.
 */
function* settleDoubt(action: Action, settlement: Settlement): Transition<Action | undefined> {
  if (settlement.state === 'in_doubt') return undefined
  yield* holdRun(action.runId)
  const settled = yield* writeSettlement(action, settlement, 'in_doubt')
  if (settled !== undefined) yield* resumeDecided(action.runId)
  if (settled !== undefined || settlement.state !== 'done' || action.tries === 0) return settled
  const wanted = yield* writeSettlement(action, settlement, 'approved')
  return wanted ?? (yield* writeSettlement(action, settlement, 'failed'))
}

function* writeSettlement(
  action: Action,
  { state, result, error, by }: Settlement,
  from: 'started' | 'in_doubt' | 'approved' | 'failed',
): Transition<Action | undefined> {
  const isOver = sql`exists (select 1 from runs r where r.id = actions.run_id and r.ended_at is not null)`
  return yield* first(
    actionRow,
    sql`update actions set state = ${state}, result = ${result === undefined ? null : JSON.stringify(result)},
        error = ${error ?? null}, settled_by = ${by}, settled_at = ${now},
        again = ${from === 'approved' || from === 'failed' ? besideIdentical() : sql`again`}
      where id = ${action.id} and tries = ${action.tries} and state = ${from}
        and ${from === 'failed' ? isOver : sql`1 = 1`} returning *`,
  )
}
