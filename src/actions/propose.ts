import type { ActionId, RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { record } from '../events/event.ts'
import { integer, row } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { all, first, one, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { actionRow } from './action.ts'
import type { Action, Decision } from './action.ts'
import { earlierAnswer, requestApproval, subjectDigest, withdrawApprovals } from './approval.ts'
import type { Verdict } from './policy.ts'
import { findInWindow } from './window.ts'
import type { OnceWindow } from './window.ts'

/** What the model wants done, and what is known about it before anything happens. */
export interface NewAction {
  readonly id: ActionId
  readonly mark: string
  readonly callId: string
  readonly tool: string
  readonly effect: 'read' | 'write'
  readonly repeats: 'once' | 'each'
  readonly input: unknown
  readonly signature: string
  /** Of the tool as it is now: a decision covers no other. */
  readonly version?: string
  /** By rule; without one the call itself was wrong. */
  readonly verdict?: Verdict
  /** How long a person has to answer, if one is asked. */
  readonly expiresInMs?: number
  /** To be asked for whatever the identical call was answered with before: a person wants it so. */
  readonly afresh?: boolean
  /** Whose it is, where its tool says once across runs. */
  readonly window?: { readonly agent: string; readonly once: OnceWindow }
  /** Why it cannot be done at all: an unknown tool, an input that does not fit. */
  readonly wrong?: string
}

export interface Place {
  readonly runId: RunId
  readonly threadId: ThreadId
  readonly entrySeq: number
  readonly ordinal: number
}

const STATES = { allow: 'approved', ask: 'waiting', deny: 'denied' } as const

/**
 * Records the intent, and with it the question to a person where one must be asked. What is wrong or denied is settled here,
 * and touches no other action.
 */
export function* proposeAction(action: NewAction, place: Place): Transition<Action> {
  const { verdict, version = '' } = action
  const state = action.wrong !== undefined || verdict === undefined ? 'failed' : STATES[verdict.kind]
  const settled = state === 'failed' || state === 'denied'
  const error = action.wrong ?? (state === 'denied' ? `denied by ${verdict?.by ?? 'rule'}` : null)
  const decision: Decision | undefined =
    verdict === undefined || verdict.kind === 'ask'
      ? undefined
      : { kind: verdict.kind, by: verdict.by, via: verdict.via }
  const digest = action.wrong === undefined ? subjectDigest({ tool: action.tool, version, input: action.input }) : null
  const proposed = yield* one(
    actionRow,
    sql`insert into actions (id, run_id, thread_id, entry_seq, ordinal, call_id, tool, effect, repeats, input, signature,
        state, mark, decision, error, digest, version, created_at, settled_at)
      values (${action.id}, ${place.runId}, ${place.threadId}, ${place.entrySeq}, ${place.ordinal}, ${action.callId},
        ${action.tool}, ${action.effect}, ${action.repeats}, ${JSON.stringify(action.input ?? null)}, ${action.signature},
        ${state}, ${action.mark}, ${decision === undefined ? null : JSON.stringify(decision)}, ${error},
        ${digest}, ${version}, ${now}, ${settled ? sql`${now}` : sql`null`})
      returning *`,
  )
  yield* record({
    type: 'action.proposed',
    ...placeOf(proposed),
    data: { actionId: proposed.id, tool: proposed.tool, state },
  })
  return state === 'waiting' ? yield* askAPerson(proposed, action) : proposed
}

/** Unless the identical call has had its answer already, or was done: nobody is asked about what will not be performed. */
function* askAPerson(proposed: Action, action: NewAction): Transition<Action> {
  const { verdict, expiresInMs = LIMITS.approvalMs, afresh = false } = action
  const original = afresh ? undefined : yield* originalOf(proposed, action)
  if (original !== undefined && original.again === null && original.state !== 'started')
    return (yield* answerRepeat(proposed, original)) ?? proposed
  const earlier = afresh ? undefined : yield* earlierAnswer(proposed)
  if (earlier !== undefined) return yield* answerAsBefore(proposed, earlier)
  yield* requestApproval(proposed, verdict?.by ?? '', expiresInMs)
  return proposed
}

function* originalOf(proposed: Action, { window }: NewAction): Transition<Action | undefined> {
  const original = yield* findOriginal(proposed)
  if (original !== undefined || window === undefined) return original
  return yield* findInWindow(proposed, window.agent, window.once)
}

function* answerAsBefore(proposed: Action, earlier: Action): Transition<Action> {
  const isNo = earlier.state === 'skipped' || earlier.state === 'denied'
  const answered = yield* one(
    actionRow,
    sql`update actions set state = ${isNo ? earlier.state : 'approved'}, decision = ${JSON.stringify(earlier.decision)},
        error = ${isNo ? `${earlier.error ?? ''} (as before: the identical call was answered already)` : null},
        repeat_of = ${isNo ? earlier.id : null}, settled_at = ${isNo ? sql`${now}` : sql`null`}
      where id = ${proposed.id} and state = 'waiting' returning *`,
  )
  if (isNo) yield* recordSettled(answered)
  return answered
}

export const placeOf = ({ threadId, runId }: Action) => ({ threadId, runId })

/**
 * The first action of this run that an identical call is: done, under way, or in doubt. One that a person said may be done
 * once more is found too, behind those that count.
 */
export function* findOriginal(action: Action): Transition<Action | undefined> {
  if (action.repeats === 'each' || action.effect === 'read') return undefined
  return yield* first(
    actionRow,
    sql`select * from actions where run_id = ${action.runId} and signature = ${action.signature} and id <> ${action.id}
      and repeats = 'once' and effect = 'write' and repeat_of is null and state in ('started', 'done', 'in_doubt')
      order by case when again is null then 0 else 1 end, entry_seq, ordinal limit 1`,
  )
}

const countRow = row({ count: integer })

/** How often the same call has failed in this run already: a model that insists is told so instead of tried again. */
export function* failedTooOften(action: Action): Transition<boolean> {
  const { count } = yield* one(
    countRow,
    sql`select count(*) as count from actions
      where run_id = ${action.runId} and signature = ${action.signature} and state = 'failed' and tries > 0`,
  )
  return count >= LIMITS.sameFailures
}

/** How often the same call had failed before this reply, performed or refused. */
export const failuresBefore = single((action: Action) =>
  one(
    countRow,
    sql`select count(*) as count from actions where run_id = ${action.runId} and signature = ${action.signature}
      and state = 'failed' and entry_seq < ${action.entrySeq}`,
  ),
)

/** Answered from the first: nothing is performed. */
export function* answerRepeat(action: Action, original: Action): Transition<Action | undefined> {
  const settled = original.state === 'done' ? 'done' : 'failed'
  const error =
    original.state === 'done'
      ? null
      : 'not performed again: an identical call before it is not settled, it may or may not have happened'
  const answered = yield* first(
    actionRow,
    sql`update actions set state = ${settled}, repeat_of = ${original.id}, error = ${error},
        result = ${original.result === null ? null : JSON.stringify(original.result)}, settled_at = ${now}, settled_by = 'repeat'
      where id = ${action.id} and state in ('proposed', 'waiting', 'approved') returning *`,
  )
  if (answered === undefined) return undefined
  yield* recordSettled(answered)
  yield* run(
    sql`update approvals set state = 'withdrawn' where action_id = ${action.id} and state in ('pending', 'approved')`,
  )
  return answered
}

export function* recordSettled(action: Action): Transition<void> {
  const { id, tool, state, error, repeatOf } = action
  const data = {
    actionId: id,
    tool,
    state,
    ...(error === null ? {} : { error }),
    ...(repeatOf === null ? {} : { repeatOf }),
  }
  yield* record({ type: 'action.settled', ...placeOf(action), data })
}

/**
 * For one that goes from approved to in doubt, or to done. While it was to be done again an identical call may have begun: then it stands
 * beside that one, or `actions_once` would not let it, and its run could not even end.
 */
export const besideIdentical = (others: Sql = sql`o.state in ('started', 'done', 'in_doubt')`): Sql =>
  sql`case when exists (select 1 from actions o where o.run_id = actions.run_id and o.signature = actions.signature
      and o.id <> actions.id and o.repeats = 'once' and o.again is null and o.repeat_of is null and ${others})
    then coalesce(again, 'who had it done again') else again end`

// Of several that are in doubt again together the first one counts.
const BEGUN_OR_FIRST = sql`(o.state in ('started', 'done', 'in_doubt')
  or (o.state in ('waiting', 'approved') and o.tries > 0 and o.id < actions.id))`

/**
 * The run ended before these began: nothing of them will happen. What has started settles by itself. What was in doubt and was to
 * be done again is in doubt again: who had begun it may be paused in front of it, and nobody made sure that it is not.
 */
export function* withdrawActions(runId: RunId): Transition<void> {
  const ended = yield* all(
    actionRow,
    sql`update actions set state = case when tries > 0 then 'in_doubt' else 'withdrawn' end, settled_at = ${now},
      settled_by = case when tries > 0 then 'nobody' else settled_by end,
      again = case when tries > 0 then ${besideIdentical(BEGUN_OR_FIRST)} else again end,
      error = case when tries > 0 then 'its run ended before it was done again' else 'the run ended' end
    where run_id = ${runId} and state in ('proposed', 'waiting', 'approved') returning *`,
  )
  const inOrder = ended.toSorted((a, b) => a.entrySeq - b.entrySeq || a.ordinal - b.ordinal)
  for (const action of inOrder) if (action.state === 'in_doubt') yield* recordSettled(action)
  yield* withdrawApprovals(runId)
}
