import { digestOf } from '../base/canonical-json.ts'
import { HoldfastError, invariant } from '../base/errors.ts'
import type { AttemptId, RunId, ThreadId, WorkerId } from '../base/ids.ts'
import { foreseeEvent, recording } from '../events/event.ts'
import type { NewEvent } from '../events/event.ts'
import { integer, json, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import type { Sql } from '../store/sql.ts'
import { kept, literals, now, skipLocked, sql, storedIn, unindexed } from '../store/sql.ts'
import {
  GIVEN,
  all,
  change,
  changed,
  first,
  foreseen,
  giving,
  one,
  run,
  single,
  together,
} from '../store/transition.ts'
import type { Ask, Giving, Joint, Query, Transition, Values } from '../store/transition.ts'
import { openThread } from '../threads/thread.ts'
import type { AttemptRef } from './attempt.ts'
import { fullAgents, isLimited, releaseSlots, takeSlots } from './capacity.ts'
import type { CapacityLimits } from './capacity.ts'
import type { AgentRequest } from './run.ts'
import { handOverRun } from './recover.ts'
import { BEGUN_FIRST, withdrawStep } from './step.ts'
import type { StepsRef } from './step.ts'

/**
 * A call: a run that was given its input, and needs no message. Those of one function share a thread and run side by side.
 * It is a run like any other, claimed by fence and lease, cancelled, taken over, ended once; what makes it light is that
 * nobody else's work hangs on it.
 */
export interface NewCall {
  readonly id: RunId
  readonly agent: string
  /** A thread of its own, with an inbox; by default the one that all calls of the function share. */
  readonly threadId?: ThreadId
  /** As JSON. */
  readonly input: string
  /** Calls with the same key are the same run. */
  readonly key?: string
  readonly priority?: number
  readonly timeoutMs?: number
  /** A schedule leads to it, and waits for what becomes of it. */
  readonly scheduled?: boolean
}

const AGENT: AgentRequest = { kind: 'agent' }
const REQUEST = JSON.stringify(AGENT)

/** Nearly always the same few words. */
function requestOf({ scheduled, timeoutMs }: NewCall): AgentRequest {
  if (scheduled !== true && timeoutMs === undefined) return AGENT
  return {
    ...AGENT,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(scheduled === true ? { scheduled } : {}),
  }
}

function textOf(request: AgentRequest): string {
  return request === AGENT ? REQUEST : JSON.stringify(request)
}

/** What whoever carries calls out listens for. */
export const CALL_QUEUED = 'call.queued'

/** The thread of a function's calls. */
export const threadOfCalls = (agent: string) => `calls:${agent}` as ThreadId

const calledRow = row({ id: text<RunId>(), requestDigest: text() })

export type Called =
  | { readonly kind: 'called'; readonly runId: RunId }
  /** The key is known, and so is its run. */
  | { readonly kind: 'existing'; readonly runId: RunId }
  /** The key belongs to another input. */
  | { readonly kind: 'conflict'; readonly runId: RunId }

/** Whose the thread is: the function's, or somebody else's already. */
export function* openCalls(agent: string, threadId: ThreadId = threadOfCalls(agent)): Transition<string> {
  return (yield* openThread(threadId, agent, null)).agent
}

const threadOf = ({ agent, threadId }: NewCall) => threadId ?? threadOfCalls(agent)

/** Stores calls to be carried out, whose function's thread is open. */
export const callAll = foreseen(
  function* callAll(calls: readonly NewCall[]): Transition<Called[]> {
    const stored = yield* together(calls.map((call) => insertCall(call)))
    const called: Called[] = []
    for (const [index, call] of calls.entries()) called.push(yield* calledAs(call, stored[index]))
    return called
  },
  (ask, calls) => (calls.some(isKeyed) ? undefined : calls.map((call) => foreseeCalled(ask, call))),
)

/** The same for one, by itself: whoever shares its commit shares its statements. */
export const callOne = foreseen(
  function* callOne(call: NewCall): Transition<Called> {
    return yield* calledAs(call, yield* insertCall(call))
  },
  (ask, call) => (isKeyed(call) ? undefined : foreseeCalled(ask, call)),
)

/** Whoever calls with a key may have called before. */
const isKeyed = ({ key }: NewCall): boolean => key !== undefined

function foreseeCalled(ask: Ask, call: NewCall): Called {
  putCall(ask.rows(CALLS), call)
  foreseeEvent(ask, toldOfCall(call), CALL_QUEUED)
  return { kind: 'called', runId: call.id }
}

function* calledAs(call: NewCall, stored: number | undefined): Transition<Called> {
  if (stored !== 1) return yield* knownCall(call)
  yield recording(toldOfCall(call), CALL_QUEUED)
  return { kind: 'called', runId: call.id }
}

function toldOfCall(call: NewCall): NewEvent {
  const { id: runId, agent, priority = 0 } = call
  return { type: 'run.queued', threadId: threadOf(call), runId, data: { agent, priority } }
}

/** What two calls with one key must agree on; without a key nobody asks. */
const digestOfCall = ({ key, agent, input, threadId }: NewCall) =>
  key === undefined ? '' : digestOf({ agent, input, ...(threadId === undefined ? {} : { threadId }) })

/** Who carries a call out from the moment in which it is stored. */
export interface CallPlace {
  readonly workerId: WorkerId
  readonly leaseMs: number
  readonly attemptId: AttemptId
}

export type CalledHere = { readonly kind: 'claimed'; readonly call: ClaimedCall } | Exclude<Called, { kind: 'called' }>

/** Its run, which has no number before it is stored. */
export function claimedHere(call: NewCall, { attemptId }: CallPlace): ClaimedCall {
  const { id, agent, input } = call
  const [threadId, request] = [threadOf(call), requestOf(call)]
  return { seq: 0, id, threadId, agent, request, input, fence: 1, attempt: 1, attemptId, workedMs: 0 }
}

/**
 * Stores a call and claims it in the same commit: whoever calls has a free place for it, and nothing waits before it. With it
 * the intents of the steps that it begins with.
 */
export const callHere = foreseen(
  function* callHere(call: NewCall, place: CallPlace, steps: readonly string[] = []): Transition<CalledHere> {
    // What begins with a call is asked with the first of its kind: those of a keyed one could come before it is stored.
    invariant(!isKeyed(call) || steps.length === 0, `the keyed call ${call.id} begins with steps`)
    const unstored = claimedHere(call, place)
    const [stored, attempts] = isKeyed(call)
      ? yield* storedUnlessKnown(call, unstored, place)
      : yield* storedAtOnce(call, unstored, place)
    if (stored === undefined) return yield* knownCall(call)
    // Without it nobody would ever take it over.
    invariant(attempts === 1, `the call ${call.id} was stored without its claim`)
    for (const step of steps) yield giving(BEGUN_FIRST, refOfCall(unstored), step)
    yield recording(toldOfCall(call), null)
    yield recording(toldOfStart(unstored, place), null)
    return claimedAs(unstored, stored)
  },
  (ask, call, place, steps = []) => {
    if (isKeyed(call)) return undefined
    const unstored = claimedHere(call, place)
    const stored = ask.row(insertCallHere(call))
    putAttempt(ask.rows(FIRST_ATTEMPTS), unstored, place)
    for (const step of steps) BEGUN_FIRST.put(ask.rows(BEGUN_FIRST.joint), refOfCall(unstored), step)
    foreseeEvent(ask, toldOfCall(call), null)
    foreseeEvent(ask, toldOfStart(unstored, place), null)
    return claimedAs(unstored, stored)
  },
)

/** Its number may come with the commit, into what stands for it until then. */
function claimedAs(unstored: ClaimedCall, stored: Decoded<typeof storedRow>): CalledHere {
  const { seq: _, ...claimed } = unstored
  return { kind: 'claimed', call: Object.assign(stored, claimed) }
}

function toldOfStart({ id: runId, threadId, attempt, fence }: ClaimedCall, { workerId }: CallPlace): NewEvent {
  return { type: 'run.started', threadId, runId, data: { attempt, fence, workerId } }
}

type Stored = [stored: Decoded<typeof storedRow> | undefined, attempts: number]

/** Nobody can know it yet. What comes with it is as likely as it is, so nobody waits for it. */
function* storedAtOnce(call: NewCall, claimed: ClaimedCall, place: CallPlace): Transition<Stored> {
  const stored = yield* insertCallHere(call)
  return [stored, stored === undefined ? 0 : yield* insertAttempt(FIRST_ATTEMPTS, claimed, place)]
}

/** One round trip for both: whoever has its key may have called before. */
const storedUnlessKnown = (call: NewCall, claimed: ClaimedCall, place: CallPlace): Transition<Stored> =>
  together([insertCallHere(call), insertAttempt(KEYED_FIRST_ATTEMPTS, claimed, place)])

/**
 * It cannot be carried out here after all: none of the steps that it was to begin with has begun, and nobody is to ask whether. The
 * attempt comes first: whoever takes it over holds the same row, and then has the steps as they are.
 */
export function* giveBackCall(ref: AttemptRef, steps: readonly string[]): Transition<boolean> {
  const held = yield* run(sql`update attempts set lease_until = ${now} where id = ${ref.id} and ended_at is null`)
  if (held === 0) return false
  for (const step of steps) yield* withdrawStep(ref, step)
  return yield* handOverRun(ref)
}

function* knownCall(call: NewCall): Transition<Exclude<Called, { kind: 'called' }>> {
  const { id, key = '', agent } = call
  const known = yield* first(
    calledRow,
    sql`select id, request_digest from runs where id = ${id} or submit_key = ${key} limit 1`,
  )
  if (known === undefined)
    throw new HoldfastError('usage/thread-gone', `thread "${threadOf(call)}" was forgotten while ${agent} was called`, {
      remedy: 'call again: that opens it anew',
    })
  return { kind: known.requestDigest === digestOfCall(call) ? 'existing' : 'conflict', runId: known.id }
}

const storedRow = row({ seq: integer })

function putCall(rows: Values, call: NewCall): void {
  const { id, agent, input, priority = 0, key = null } = call
  // Not always the thread that all calls share: see `threadOf`.
  rows.push(id, threadOf(call), agent, priority, textOf(requestOf(call)), digestOfCall(call), key, input)
}

function valuesOf(call: NewCall): Values {
  const values: Values = []
  putCall(values, call)
  return values
}

const insertCall = (call: NewCall): Query<number> => change(isKeyed(call) ? KEYED_CALLS : CALLS, valuesOf(call))

const insertCallHere = (call: NewCall): Query<Decoded<typeof storedRow> | undefined> =>
  changed(storedRow, isKeyed(call) ? KEYED_CALLS_HERE : CALLS_HERE, valuesOf(call))

/** The one that all calls of a function share is never forgotten: nobody has to look, and thousands to hold the same row. */
const OF_A_THREAD = sql`(given.thread_id = 'calls:' || given.agent
  or exists (select 1 from threads where threads.id = given.thread_id ${kept}))`

const CALLS: Joint = {
  table: 'runs',
  columns: [
    ['id', 'word'],
    ['thread_id', 'text'],
    ['agent', 'text'],
    ['priority', 'bigint'],
    ['request', 'text'],
    ['request_digest', 'word'],
    ['submit_key', 'text'],
    ['input', 'text'],
  ],
  key: ['id'],
  likely: true,
  many: sql`insert into runs (id, thread_id, agent, state, priority, request, request_digest, submit_key, kind, input, created_at)
    select given.id, given.thread_id, given.agent, 'queued', given.priority, given.request, given.request_digest, given.submit_key,
      'agent', given.input, ${now}
    from ${GIVEN} where ${OF_A_THREAD} order by place on conflict do nothing`,
}

/** Whoever calls again, with the same key, does so because it may be known. */
const KEYED_CALLS: Joint = { ...CALLS, likely: false }

const CALLS_HERE: Joint = {
  ...CALLS,
  returns: ['seq', 'fence', 'state'],
  many: sql`insert into runs (id, thread_id, agent, state, priority, request, request_digest, submit_key, kind, input, created_at,
      fence, attempt, started_at)
    select given.id, given.thread_id, given.agent, 'running', given.priority, given.request, given.request_digest, given.submit_key,
      'agent', given.input, ${now}, 1, 1, ${now}
    from ${GIVEN} where ${OF_A_THREAD} order by place on conflict do nothing`,
}

const KEYED_CALLS_HERE: Joint = { ...CALLS_HERE, likely: false }

/** How many calls may wait is looked at now and then, not at each: counting them reads as many. */
export const waitingCalls = single((most: number) =>
  one(
    countRow,
    sql`select count(*) as count from (select 1 from runs where state = 'queued' and input is not null limit ${most}) as waiting`,
  ),
)
const countRow = row({ count: integer })

export interface CallClaimant {
  readonly workerId: WorkerId
  readonly leaseMs: number
  readonly agents: readonly string[]
  /** One for each call that there is a place for. */
  readonly attempts: readonly AttemptId[]
  readonly limits?: CapacityLimits
}

const claimedRow = row({
  seq: integer,
  id: text<RunId>(),
  threadId: text<ThreadId>(),
  agent: text(),
  request: json<AgentRequest>(),
  input: text(),
  fence: integer,
  attempt: integer,
  /** Of the time that it may take. */
  workedMs: integer,
})
export type ClaimedCall = Decoded<typeof claimedRow> & {
  readonly attemptId: AttemptId
  /** The capacity that it holds. */
  readonly slots?: readonly string[]
  /** It was to be cancelled when its worker was lost. */
  readonly cancelled?: boolean
}

export const refOfCall = ({ attemptId: id, id: runId, seq: runSeq, fence }: ClaimedCall): StepsRef => ({
  id,
  runId,
  runSeq,
  fence,
})

/** Takes as many calls as there are places, in one commit: by priority, then first in, first out. */
export function* claimCalls({ workerId, leaseMs, agents, attempts, limits }: CallClaimant): Transition<ClaimedCall[]> {
  const free = agents.filter((agent) => !isLimited(limits, agent))
  const calls = free.length === 0 ? [] : yield* takeCalls(free, attempts)
  if (free.length < agents.length) yield* takeLimited(calls, agents, attempts, limits)
  yield* together(calls.map((call) => insertAttempt(ATTEMPTS, call, { workerId, leaseMs })))
  for (const call of calls) {
    const { seq: runSeq, threadId, attempt: number, fence } = call
    yield recording({ type: 'run.started', threadId, runSeq, data: { attempt: number, fence, workerId } }, null)
  }
  return calls
}

/** Of functions with a limit of their own, or under one for all: one after the other, each with its slots. */
function* takeLimited(
  calls: ClaimedCall[],
  agents: readonly string[],
  attempts: readonly AttemptId[],
  limits: CapacityLimits = {},
): Transition<void> {
  const full = yield* fullAgents(limits)
  const passedOver = new Set(full.total ? agents : full.agents)
  while (calls.length < attempts.length) {
    const left = agents.filter((agent) => isLimited(limits, agent) && !passedOver.has(agent))
    const agent = left.length === 0 ? undefined : (yield* nextOf(left))?.agent
    if (agent === undefined) return
    const slots = yield* takeSlots(agent, limits)
    const [taken] = slots === undefined ? [] : yield* takeCalls([agent], attempts.slice(calls.length, calls.length + 1))
    if (slots !== undefined && taken === undefined) yield* releaseSlots(slots)
    if (slots === undefined || taken === undefined) passedOver.add(agent)
    else calls.push({ ...taken, slots })
  }
}

const agentRow = row({ agent: text() })

const nextOf = (agents: readonly string[]) =>
  first(
    agentRow,
    sql`select agent from runs where state = 'queued' and input is not null and agent in (${literals(agents)})
      and (expires_at is null or expires_at > ${now}) order by priority desc, seq limit 1`,
  )

function* takeCalls(agents: readonly string[], attempts: readonly AttemptId[]): Transition<ClaimedCall[]> {
  const claimed = yield* all(
    claimedRow,
    // Looked for once: asked again for each row, as PostgreSQL does with a table that it takes for a small one, the next ones would
    // be found each time, and all that waits would be taken.
    sql`with next as materialized (select seq from runs where state = 'queued' and input is not null
          -- Or the index of agents would be taken, which has all that ever ran.
          and ${unindexed(sql`agent in (${literals(agents)})`)}
          and (expires_at is null or expires_at > ${now})
        order by priority desc, seq limit ${attempts.length} ${skipLocked})
      update runs set state = 'running', fence = fence + 1, attempt = attempt + 1, started_at = coalesce(started_at, ${now}),
        expires_at = null
      where seq in (select seq from next)
      returning seq, id, thread_id, agent, request, input, fence, attempt, ${now} - started_at - parked_ms as worked_ms`,
  )
  return claimed.map((call, index) => ({ ...call, attemptId: attempts[index]! }))
}

const insertAttempt = (joint: Joint, call: ClaimedCall, by: Claimant): Query<number> => {
  const values: Values = []
  putAttempt(values, call, by)
  return change(joint, values)
}

type Claimant = Pick<CallPlace, 'workerId' | 'leaseMs'>

function putAttempt(rows: Values, call: ClaimedCall, { workerId, leaseMs }: Claimant): void {
  const { attemptId, id: runId, attempt: number, fence, slots = NO_SLOTS } = call
  rows.push(attemptId, runId, number, fence, workerId, leaseMs, slots === NO_SLOTS ? '[]' : JSON.stringify(slots))
}

const NO_SLOTS: readonly string[] = []

function attemptsOf(runs: Sql): Sql {
  return sql`insert into attempts (id, run_id, number, fence, worker_id, mark, slots, claimed_at, lease_until)
    select given.id, given.run_id, given.number, given.fence, given.worker_id, given.id, given.slots, ${now}, ${now} + given.lease_ms
    from ${GIVEN} where (select claimed.fence = given.fence and claimed.state = 'running' from ${runs} as claimed
      where claimed.id = given.run_id)
    on conflict do nothing`
}

/** No process carries the mark of a call: its worker's own is the one. Where its run was claimed just before, it is there. */
const ATTEMPTS: Joint = {
  table: 'attempts',
  columns: [
    ['id', 'word'],
    ['run_id', 'word'],
    ['number', 'bigint'],
    ['fence', 'bigint'],
    ['worker_id', 'word'],
    ['lease_ms', 'bigint'],
    ['slots', 'text'],
  ],
  key: ['id'],
  likely: true,
  many: attemptsOf(sql`runs`),
}

const FIRST_ATTEMPTS: Joint = { ...ATTEMPTS, many: attemptsOf(storedIn('runs')) }
/** Statements of one kind are asked together where the first of them comes: those of keyed calls come after these are stored. */
const KEYED_FIRST_ATTEMPTS: Joint = { ...FIRST_ATTEMPTS }

/** It holds no slots. */
export const ATTEMPT_END: Giving<[Pick<AttemptRef, 'id'>, outcome: string]> = {
  put: (rows, { id }, outcome) => rows.push(id, outcome),
  joint: {
    table: 'attempts',
    columns: [
      ['id', 'word'],
      ['outcome', 'word'],
    ],
    key: ['id'],
    likely: true,
    many: sql`update attempts set ended_at = ${now}, outcome = given.outcome from ${GIVEN}
      where attempts.id = given.id and ${unindexed(sql`attempts.ended_at is null`)}`,
  },
}
