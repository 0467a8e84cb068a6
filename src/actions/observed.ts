import type { ActionId, RunId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { holdRun, resumeDecided } from '../runs/park.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, one, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { appendEntry } from '../threads/conversation.ts'
import { actionRow } from './action.ts'
import type { Action } from './action.ts'
import { approvalOfAction, consumeApproval, subjectDigest } from './approval.ts'
import type { Approval } from './approval.ts'
import { expireOne } from './decide.ts'
import { judge } from './policy.ts'
import type { PolicyRule, Verdict } from './policy.ts'
import { placeOf, proposeAction, recordSettled } from './propose.ts'
import { rulesInForce } from './rule.ts'

/*
 * Tool calls of a command-line agent, which carries them out itself: it asks us for leave. A person's yes is an approval as
 * any other, bound to the exact bytes, used once. `mark` says how the client waits for it: `deferred`, its process has ended
 * and comes back; `held`, it waits in its own dialog; else the event by which it got its answer.
 */

/** A call for which a client asks for leave. */
export interface ObservedCall {
  readonly id: ActionId
  /** By this event, which may be told twice. */
  readonly event: string
  /** The client's own name of the call; undefined: it gives none. */
  readonly callId?: string
  readonly tool: string
  readonly effect: 'read' | 'write'
  readonly input: unknown
  /** Whose tool, and in which folder: a decision covers no other. */
  readonly version: string
}

export interface ObservedPlace {
  readonly runId: RunId
  readonly threadId: ThreadId
  readonly generation: number
  readonly agent: string
}

export interface Leave {
  readonly policy: readonly PolicyRule[]
  /** Nobody knows the rules of the configuration: what no stored rule allows is asked for. */
  readonly isPolicyKnown: boolean
  /**
   * How the client waits, if a person must be asked. `dialog`: it asks there, and comes again with that. `told`: it cannot
   * wait, and is told no.
   */
  readonly waits: 'deferred' | 'held' | 'dialog' | 'told'
  readonly expiresInMs: number
  /** How its session was started, for whoever goes on with it. */
  readonly startedBy?: string
}

export type Permission =
  /** We have nothing to say: the client's own rules count. */
  | { readonly kind: 'no-opinion' }
  | { readonly kind: 'allowed'; readonly by: string }
  | { readonly kind: 'refused'; readonly why: string }
  /** A person is asked. */
  | { readonly kind: 'asked'; readonly approval: Approval }
  /** A person is to be asked by the client. */
  | { readonly kind: 'dialog'; readonly why: string }

const subjectOf = ({ tool, version, input }: ObservedCall) => ({ tool, version, input })

/**
 * What the rules, and a person where the rules ask one, say about a call. The decision on exactly this call is used up here,
 * in the transaction that lets it begin; a second use or a changed byte is asked for afresh.
 */
export function* askLeave(place: ObservedPlace, call: ObservedCall, leave: Leave): Transition<Permission> {
  yield* holdRun(place.runId)
  const verdict = yield* verdictOn(place, call, leave)
  const known = yield* knownCall(place.runId, call)
  if (known !== undefined && verdict.kind !== 'deny') return yield* answerKnown(known, call, leave)
  if (verdict.kind === 'allow')
    return verdict.via === 'default' ? { kind: 'no-opinion' } : { kind: 'allowed', by: verdict.by }
  if (verdict.kind === 'ask' && leave.waits === 'told') return { kind: 'refused', why: NOBODY_HERE }
  if (verdict.kind === 'ask' && leave.waits === 'dialog') return { kind: 'dialog', why: verdict.by }
  return yield* answerProposed(yield* propose(place, call, leave, verdict), call, leave)
}

const NOBODY_HERE =
  'a person must be asked for this, and from here nobody can be; do it in the main conversation, as a call of its own'

function* verdictOn(place: ObservedPlace, call: ObservedCall, leave: Leave): Transition<Verdict> {
  const rules = [...leave.policy, ...(yield* rulesInForce.single())]
  const { agent, threadId: thread } = place
  const verdict = judge(rules, { tool: call.tool, effect: call.effect, agent, thread, input: call.input })
  if (verdict.via !== 'default' || verdict.kind === 'ask') return verdict
  if (leave.waits === 'held') return { kind: 'ask', by: 'no rule, and the client asks', via: 'default' }
  if (leave.isPolicyKnown) return verdict
  return { kind: 'ask', by: 'no stored rule, and no daemon that knows the others', via: 'default' }
}

/** The same call once more; or an identical one, with a yes that nobody has used. */
function* knownCall(runId: RunId, call: ObservedCall): Transition<Action | undefined> {
  const digest = subjectDigest(subjectOf(call))
  const named = call.callId === undefined ? sql`` : sql`call_id = ${call.callId} or `
  return yield* first(
    actionRow,
    sql`select * from actions where run_id = ${runId} and digest = ${digest} and replaced_by is null
      and (${named} mark = ${call.event} or state = 'approved' or state = 'waiting')
      order by case state when 'approved' then 0 when 'waiting' then 1 else 2 end, entry_seq desc limit 1`,
  )
}

function* answerKnown(found: Action, call: ObservedCall, leave: Leave): Transition<Permission> {
  const action = yield* unlessExpired(found)
  if (action.state === 'approved') return yield* begin(action, call)
  if (action.state === 'waiting') return yield* stillAsked(action, leave)
  const isSameEvent = action.mark === call.event
  if (action.state === 'started' && isSameEvent) return { kind: 'allowed', by: allowedBy(action) }
  if (action.state === 'withdrawn' || action.state === 'done' || action.state === 'started')
    return { kind: 'refused', why: 'the leave that was given for this call has been used; call it again to ask afresh' }
  yield* run(sql`update actions set mark = ${call.event} where id = ${action.id}`)
  return { kind: 'refused', why: action.error ?? action.state }
}

const allowedBy = ({ decision }: Action) => (decision === null ? 'a rule' : `${decision.by}, by ${decision.via}`)

/** Where no daemon runs nobody else notices that its time is over. */
function* unlessExpired(action: Action): Transition<Action> {
  const approval = yield* approvalOfAction.single(action.id)
  if (approval?.state === 'pending' || approval?.state === 'approved') yield* expireOne(approval)
  return yield* one(actionRow, sql`select * from actions where id = ${action.id}`)
}

function* stillAsked(action: Action, { waits }: Leave): Transition<Permission> {
  if (waits === 'told') return { kind: 'refused', why: NOBODY_HERE }
  if (waits === 'dialog') return { kind: 'dialog', why: 'a person has been asked already' }
  yield* run(sql`update actions set mark = ${waits} where id = ${action.id} and state = 'waiting'`)
  const approval = yield* approvalOfAction.single(action.id)
  if (approval === undefined) throw new Error(`nobody was asked about ${action.id}`)
  return { kind: 'asked', approval }
}

/** What a person approved begins: once, and in this transaction the approval is used up. */
function* begin(action: Action, call: ObservedCall): Transition<Permission> {
  const started = yield* first(
    actionRow,
    sql`update actions set state = 'started', tries = tries + 1, started_at = ${now}, mark = ${call.event},
        call_id = ${call.callId ?? action.callId}
      where id = ${action.id} and state = 'approved' returning *`,
  )
  if (started === undefined) return { kind: 'refused', why: 'the leave that was given for this call has been used' }
  if ((yield* approvalOfAction.single(action.id)) !== undefined) {
    const used = yield* consumeApproval(action.id, subjectDigest(subjectOf(call)))
    if (used === undefined) throw new Error(`the approval of ${action.id} ran out while it was begun`)
  }
  yield* record({ type: 'action.started', ...placeOf(started), data: { actionId: started.id, tool: started.tool } })
  return { kind: 'allowed', by: allowedBy(started) }
}

function* propose(place: ObservedPlace, call: ObservedCall, leave: Leave, verdict: Verdict): Transition<Action> {
  const { runId, threadId, generation } = place
  const { startedBy, expiresInMs, waits } = leave
  const body = { text: '', toolCalls: [], ...(startedBy === undefined ? {} : { startedBy }) }
  const entry = yield* appendEntry({ threadId, generation, runId, kind: 'assistant', body })
  const { id, tool, effect, input, version } = call
  const digest = subjectDigest(subjectOf(call))
  const action = { id, tool, effect, input, version, verdict, expiresInMs, mark: waits, repeats: 'each' } as const
  const callId = call.callId ?? `request-${id}`
  return yield* proposeAction(
    { ...action, callId, signature: digest },
    { runId, threadId, entrySeq: entry.seq, ordinal: 0 },
  )
}

function* answerProposed(action: Action, call: ObservedCall, leave: Leave): Transition<Permission> {
  return action.state === 'waiting' ? yield* stillAsked(action, leave) : yield* answerKnown(action, call, leave)
}

/** A call has come to its end, in its client. Its own name of it, or without one its exact bytes. */
export interface ObservedEnd {
  readonly callId?: string
  readonly digest: string
}

const itsOwn = (runId: RunId, { callId, digest }: ObservedEnd) => sql`run_id = ${runId}
  and (call_id = ${callId ?? ''} or digest = ${digest} and call_id like 'request-%')`

export const openCallOf = single((runId: RunId, end: ObservedEnd) =>
  first(
    actionRow,
    sql`select * from actions where ${itsOwn(runId, end)} and state in ('waiting', 'approved', 'started') limit 1`,
  ),
)

/**
 * The client has carried it out. What we had allowed is done; what was still asked for was allowed by somebody in the client,
 * and an answer of ours would come too late.
 */
export function* callEnded(runId: RunId, end: ObservedEnd): Transition<void> {
  yield* holdRun(runId)
  const open = yield* all(
    actionRow,
    sql`select * from actions where ${itsOwn(runId, end)} and state in ('waiting', 'approved', 'started')`,
  )
  for (const action of open) {
    if (action.state === 'started') yield* settle(action, 'done', 'its client says so')
    else yield* withdrawHeld(action.id, 'it was answered in the client')
  }
  // A turn that had ended meanwhile waits for nobody's decision any more.
  if (open.length > 0) yield* resumeDecided(runId)
}

function* settle(action: Action, state: 'done' | 'in_doubt', by: string): Transition<void> {
  const error = state === 'done' ? null : 'its session ended before it said what became of it'
  const settled = yield* first(
    actionRow,
    sql`update actions set state = ${state}, settled_by = ${by}, settled_at = ${now}, error = ${error}
      where id = ${action.id} and state = 'started' returning *`,
  )
  if (settled !== undefined) yield* recordSettled(settled)
}

/** The turn is over: a client that came to its end has carried out what it had begun; of one that was cut off nobody knows. */
export function* settleObserved(runId: RunId, isCutOff: boolean): Transition<void> {
  const begun = yield* all(actionRow, sql`select * from actions where run_id = ${runId} and state = 'started'`)
  for (const action of begun)
    yield* settle(action, isCutOff ? 'in_doubt' : 'done', isCutOff ? 'nobody' : 'the end of its turn')
}

/** Nobody needs to answer any more: somebody did in the client, or the client no longer waits for us. */
export function* withdrawHeld(id: ActionId, why: string): Transition<Action | undefined> {
  const withdrawn = yield* first(
    actionRow,
    sql`update actions set state = 'withdrawn', error = ${why}, settled_at = ${now}
      where id = ${id} and state in ('waiting', 'approved') and mark = 'held' returning *`,
  )
  if (withdrawn === undefined) return undefined
  yield* run(sql`update approvals set state = 'withdrawn' where action_id = ${id} and state in ('pending', 'approved')`)
  yield* recordSettled(withdrawn)
  return withdrawn
}
