import { iso } from '../base/clock.ts'
import { hiddenValues } from '../base/visible.ts'
import type { RunId } from '../base/ids.ts'
import { DECISION } from '../runs/park.ts'
import { findRun, runRow } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import { integer, row } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, one, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findEntry } from '../threads/conversation.ts'
import { UNDECIDED, actionRow, findAction, settlerOf } from './action.ts'
import type { Action } from './action.ts'
import { approvalRow, approvalsIn, approvalsOfRun, pendingApprovals } from './approval.ts'
import type { Approval, ApprovalState } from './approval.ts'
import { openDoubts } from './doubt.ts'

/*
 * What a person is shown when something needs them: the call, whose it is, and what the model said beside it, which is
 * its word and nothing more.
 */

/** An action with what surrounds it. */
export interface Matter {
  readonly action: Action
  readonly run: Run
  /** What the model said in the same reply. */
  readonly said: string
}

export interface AskedMatter extends Matter {
  readonly approval: Approval
}

function* matterOf(action: Action): Transition<Matter> {
  const run = yield* findRun.single(action.runId)
  if (run === undefined) throw new Error(`run ${action.runId} vanished`)
  const text = (yield* findEntry.single(action.entrySeq))?.body.text
  return { action, run, said: typeof text === 'string' ? text : '' }
}

function* askedMatter(approval: Approval): Transition<AskedMatter> {
  const action = yield* findAction.single(approval.actionId)
  if (action === undefined) throw new Error(`action ${approval.actionId} vanished`)
  return { approval, ...(yield* matterOf(action)) }
}

/** What waits for a yes or a no, oldest first. */
export function* askedMatters(limit: number, after?: string): Transition<AskedMatter[]> {
  const matters: AskedMatter[] = []
  for (const approval of yield* pendingApprovals.single(limit, after)) matters.push(yield* askedMatter(approval))
  return matters
}

/** What was answered, newest first. */
export function* answeredMatters(state: ApprovalState, limit: number, after?: string): Transition<AskedMatter[]> {
  const matters: AskedMatter[] = []
  for (const approval of yield* approvalsIn.single(state, limit, after)) matters.push(yield* askedMatter(approval))
  return matters
}

/** What nobody knows about, oldest first. */
export function* doubtfulMatters(limit: number, after?: string): Transition<Matter[]> {
  const matters: Matter[] = []
  for (const action of yield* openDoubts.single(limit, after)) matters.push(yield* matterOf(action))
  return matters
}

/** Those whose id starts so, two at most: enough to know whether it is unique. */
export function* askedByPrefix(prefix: string): Transition<AskedMatter[]> {
  const found = yield* all(
    approvalRow,
    sql`select * from approvals where id >= ${prefix} and id < ${`${prefix}\u{10ffff}`} order by id limit 2`,
  )
  const matters: AskedMatter[] = []
  for (const approval of found) matters.push(yield* askedMatter(approval))
  return matters
}

/** Of actions that are in doubt, or were and have been settled by somebody's word. */
export function* doubtfulByPrefix(prefix: string): Transition<Matter[]> {
  const found = yield* all(
    actionRow,
    sql`select a.* from actions a where a.id >= ${prefix} and a.id < ${`${prefix}\u{10ffff}`}
      and (a.state = 'in_doubt' or exists (select 1 from events e where e.run_id = a.run_id and e.type = 'doubt.resolved'
        and e.data like '%"' || a.id || '"%'))
      order by a.id limit 2`,
  )
  const matters: Matter[] = []
  for (const action of found) matters.push(yield* matterOf(action))
  return matters
}

const countRow = row({ approvals: integer, doubts: integer })

/** How much needs a person. */
export const countMatters = single(() =>
  one(
    countRow,
    sql`select (select count(*) from approvals where state = 'pending') as approvals,
      (select count(*) from actions where ${UNDECIDED} and state = 'in_doubt' and given_up is null) as doubts`,
  ),
)

/** What a run, or one that it started, waits for a person with. */
export interface Awaited {
  readonly approvals: readonly Approval[]
  readonly doubts: readonly Action[]
}

/**
 * Undefined: it goes on by itself. A run whose children wait for a person waits for one too, unless another of them is at
 * work.
 */
export function* awaitedBy(runId: RunId): Transition<Awaited | undefined> {
  const family = yield* all(
    runRow,
    sql`with recursive family (id) as (
        select id from runs where id = ${runId}
        union select child.id from runs child join family on child.parent_run_id = family.id)
      select r.* from runs r join family on family.id = r.id where r.state in ('queued', 'running', 'parked')`,
  )
  const waiting = family.filter(({ state, parkedFor }) => state === 'parked' && parkedFor === DECISION)
  const isAsleep = family.every((run) => run.state === 'parked' && run.resumeAt === null)
  if (waiting.length === 0 || !isAsleep) return undefined
  const [approvals, doubts]: [Approval[], Action[]] = [[], []]
  for (const { id } of waiting) {
    approvals.push(...(yield* approvalsOfRun.single(id)).filter(({ state }) => state === 'pending'))
    doubts.push(...(yield* doubtsOfRun.single(id)))
  }
  return { approvals, doubts }
}

/** Its own, and what an earlier run on its thread left behind when it ended. */
const doubtsOfRun = single((runId: RunId) =>
  all(
    actionRow,
    sql`select * from actions where thread_id = (select thread_id from runs where id = ${runId})
        and ${UNDECIDED} and state = 'in_doubt' and given_up is null
        and (run_id = ${runId} or exists (select 1 from runs where id = actions.run_id and ended_at is not null))
      order by entry_seq, ordinal`,
  ),
)

/** The public JSON form of a request for a decision. `shown` are the exact bytes that it covers. */
export function viewAsked({ approval, action, run, said }: AskedMatter) {
  const { id, state, digest, shown, askedBy, askedAt, expiresAt, decidedBy, decidedVia, decidedAt, note } = approval
  const hidden = hiddenValues(shown)
  return {
    id,
    state,
    actionId: action.id,
    step: action.entrySeq,
    runId: run.id,
    threadId: run.threadId,
    agent: run.agent,
    tool: action.tool,
    effect: action.effect,
    input: action.input,
    digest,
    shown,
    ...(hidden === 0 ? {} : { hidden }),
    askedBy,
    askedAt: iso(askedAt),
    expiresAt: iso(expiresAt),
    ...(said === '' ? {} : { modelSaid: said }),
    ...(decidedAt === null ? {} : { decided: { by: decidedBy, via: decidedVia, at: iso(decidedAt) } }),
    ...(note === null ? {} : { note }),
  }
}

/** The public JSON form of an action in doubt. */
export function viewDoubt({ action, run, said }: Matter) {
  const { id, tool, input, signature, state, error, tries, startedAt, givenUp } = action
  return {
    id,
    runId: run.id,
    threadId: run.threadId,
    agent: run.agent,
    runState: run.state,
    tool,
    input,
    signature,
    state,
    tries,
    createdAt: iso(action.createdAt),
    ...(action.decision === null ? {} : { allowedBy: { by: action.decision.by, via: action.decision.via } }),
    ...(startedAt === null ? {} : { startedAt: iso(startedAt) }),
    /** What was seen of it: its output, and what a probe said. */
    ...(error === null ? {} : { seen: error }),
    ...(action.settledBy === 'nobody' ? {} : settlerOf(action)),
    ...(givenUp === null ? {} : { givenUp }),
    ...(said === '' ? {} : { modelSaid: said }),
  }
}

export function viewAwaited({ approvals, doubts }: Awaited) {
  return { approvals: approvals.map(({ id }) => id), doubts: doubts.map(({ id }) => id) }
}
