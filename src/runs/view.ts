import { iso } from '../base/clock.ts'
import type { RunId } from '../base/ids.ts'
import type { Event } from '../events/event.ts'
import type { Transition } from '../store/transition.ts'
import { actionsOrSteps } from '../actions/step-view.ts'
import type { Action } from '../actions/action.ts'
import { viewAction } from '../actions/view.ts'
import { entriesOfRun } from '../threads/conversation.ts'
import type { Entry } from '../threads/conversation.ts'
import { attemptsOf } from './attempt.ts'
import type { Attempt } from './attempt.ts'
import { findRun, lateResultsOf } from './run.ts'
import type { LateResult, ObservedRequest, Run, RunRequest } from './run.ts'

/** The public JSON form of a run: what the command line prints and the HTTP API serves. */
export interface RunView {
  readonly id: string
  readonly threadId: string
  readonly agent: string
  readonly state: string
  readonly cancelRequestedAt?: string
  readonly cancel?: { readonly by: string; readonly reason?: string }
  readonly code?: string
  readonly error?: string
  readonly result?: unknown
  readonly lateResults?: readonly unknown[]
  readonly attempt: number
  readonly parentThreadId?: string
  readonly createdAt: string
  readonly startedAt?: string
  readonly parkedAt?: string
  readonly parkedFor?: string
  readonly endedAt?: string
  readonly request: RequestView
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number; readonly costUsd: number }
}

const isoOrNull = (instant: number | null) => (instant === null ? null : iso(instant))

export function viewRun(run: Run, late: readonly LateResult[] = []): RunView {
  const { id, threadId, agent, state, attempt } = run
  return {
    id,
    threadId,
    agent,
    state,
    attempt,
    ...optional('cancelRequestedAt', isoOrNull(run.cancelRequestedAt)),
    ...(run.cancelBy === null ? {} : { cancel: { by: run.cancelBy, ...optional('reason', run.cancelReason) } }),
    ...optional('code', run.code),
    ...optional('error', run.error),
    ...optional('result', run.result),
    ...(late.length === 0 ? {} : { lateResults: late.map(viewLateResult) }),
    ...optional('parentThreadId', run.parentThreadId),
    createdAt: iso(run.createdAt),
    ...optional('startedAt', isoOrNull(run.startedAt)),
    ...optional('parkedAt', isoOrNull(run.parkedAt)),
    ...optional('parkedFor', run.parkedFor),
    ...optional('endedAt', isoOrNull(run.endedAt)),
    request: viewRequest(run),
    usage: { inputTokens: run.inputTokens, outputTokens: run.outputTokens, costUsd: run.costMicrousd / 1_000_000 },
  }
}

/** Without the environment of a command. */
export type RequestView =
  | { readonly kind: 'command'; readonly argv: readonly string[]; readonly cwd: string; readonly timeoutMs?: number }
  /** `called`: a function, with an input. */
  | { readonly kind: 'agent'; readonly called?: true; readonly timeoutMs?: number }
  | ObservedRequest

function viewRequest({ request, input }: Run): RequestView {
  if (request.kind === 'observed') return request
  const timeout = optional('timeoutMs', request.timeoutMs)
  if (request.kind === 'agent') return { kind: 'agent', ...(input === null ? {} : { called: true }), ...timeout }
  return { kind: 'command', argv: request.argv, cwd: request.cwd, ...timeout }
}

const viewLateResult = ({ outcome, arrivedAt }: LateResult) => ({ ...outcome, arrivedAt: iso(arrivedAt) })

export interface EventView {
  readonly seq: number
  readonly at: string
  readonly type: string
  readonly threadId?: string
  readonly runId?: string
  readonly data: unknown
}

export const viewEvent = ({ seq, at, type, threadId, runId, data }: Event): EventView => ({
  seq,
  at: iso(at),
  type,
  ...optional('threadId', threadId),
  ...optional('runId', runId),
  data,
})

export interface WholeRun {
  readonly run: Run
  readonly late: readonly LateResult[]
  readonly attempts: readonly Attempt[]
  /** What a model was shown and said in this run. */
  readonly entries: readonly Entry[]
  /** Those of a model, or the steps of a function. */
  readonly actions: readonly Action[]
}

/** A run with everything that belongs to it, from one snapshot. */
export function* readWholeRun(id: RunId): Transition<WholeRun | undefined> {
  const run = yield* findRun.single(id)
  if (run === undefined) return undefined
  return {
    run,
    late: yield* lateResultsOf.single(id),
    attempts: yield* attemptsOf.single(id),
    entries: yield* entriesOfRun.single(id),
    actions: yield* actionsOrSteps(run),
  }
}

/** What `runs show --json` prints and `GET /api/v1/runs/ID` answers. */
export function viewWholeRun({ run, late, attempts, entries, actions }: WholeRun) {
  // An answer to a loop inside of a function is a step of the function too: it is shown as what the model said.
  const said = new Set(entries.map(({ body }) => body['step']))
  const done = actions.filter(({ entrySeq, callId }) => entrySeq >= 0 || !said.has(callId))
  const turns = isTurn(run.request) ? { steps: entries.map(viewStep), actions: done.map(viewAction) } : {}
  const input = run.input === null ? {} : { input: JSON.parse(run.input) as unknown }
  return { ...viewRun(run, late), ...input, attempts: attempts.map(viewAttempt), ...turns }
}

const isTurn = (request: RunRequest) =>
  request.kind === 'agent' || (request.kind === 'command' && request.isTurn === true)

const viewAttempt = ({ id, number, workerId, claimedAt, endedAt, outcome }: Attempt) => ({
  id,
  number,
  workerId,
  claimedAt: iso(claimedAt),
  ...optional('endedAt', isoOrNull(endedAt)),
  ...optional('outcome', outcome),
})

/** A model call of a run, as the public JSON has it. */
export const viewStep = ({ seq, runId, kind, body, createdAt, inputTokens, outputTokens, costMicrousd }: Entry) => ({
  seq,
  runId,
  kind,
  ...body,
  at: iso(createdAt),
  ...(kind !== 'user' ? { usage: { inputTokens, outputTokens, costUsd: costMicrousd / 1_000_000 } } : {}),
})

/** A key only where there is a value: what is unknown is absent in JSON, not null. */
function optional<K extends string, T>(key: K, value: T | null | undefined): { readonly [P in K]?: T } {
  return (value === null || value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: T }
}
