import { invariant } from '../base/errors.ts'
import type { RunId } from '../base/ids.ts'
import { withdrawActions } from '../actions/propose.ts'
import { doubtOpenSteps } from '../actions/step-doubt.ts'
import { record } from '../events/event.ts'
import { now, sql, unindexed } from '../store/sql.ts'
import { GIVEN, first, run } from '../store/transition.ts'
import type { Giving, Transition } from '../store/transition.ts'
import { settleRun } from '../schedule/run-ended.ts'
import { deliverCompletion } from '../threads/accept.ts'
import { untakenMessages } from '../threads/message.ts'
import { decideWorkspace } from '../workspace/decide.ts'
import { endAttempt } from './attempt.ts'
import type { AttemptRef } from './attempt.ts'
import { settleBreaker } from './breaker.ts'
import { recordCommandReply, recordToldTurn } from './command-turn.ts'
import type { ToldTurn } from './command-turn.ts'
import { resumeWaiting } from './park.ts'
import { findRun, runRow } from './run.ts'
import type { FailureCode, Run, RunEnd, TerminalState, Usage } from './run.ts'
import type { StepsRef } from './step.ts'
import { keepUnanswered } from './unanswered.ts'

/** How a run ended, as its worker saw it. */
export type Outcome = (
  | { readonly state: 'succeeded' }
  | { readonly state: 'failed'; readonly code: FailureCode; readonly error: string }
  | { readonly state: 'cancelled' }
) & {
  readonly result?: unknown
  readonly usage?: Usage
  /** What an agent that is a command said. */
  readonly reply?: string
  /** What it told of how it came to say that. */
  readonly told?: ToldTurn
  /** What the parent is told besides the state; the whole result stays with the run. */
  readonly summary?: string
  /** Messages that this run took and did not come to record: its end is their answer, and nobody takes them again. */
  readonly taken?: readonly string[]
}

/** How a run has ended, as it is stored. */
export function endOf({ state, code, error, result }: Omit<RunEnd, 'id'>): Outcome {
  if (state === 'succeeded') return { state, result }
  return state === 'cancelled' ? { state } : { state, code: code ?? 'internal', error: error ?? '' }
}

export type Finish =
  /** This call wrote the terminal state and everything that follows from it. */
  | { readonly kind: 'finished'; readonly run: Run }
  /** The run has, or from now on has, another end than the one reported; `run` is what is true. */
  | { readonly kind: 'reconciled'; readonly run: Run }

/**
 * The only way in which a claimed run ends, for success, failure, timeout, cancel and recovery alike. The verdict is
 * the update's own: it wins only with the current fence, from `running`, and once cancel was requested only as
 * `cancelled`. All that follows from the end is the same transaction.
 */
export function* finishRun(attempt: AttemptRef, outcome: Outcome): Transition<Finish> {
  const ended = yield* writeEnd(sql`id = ${attempt.runId} and fence = ${attempt.fence} and state = 'running'`, outcome)
  if (ended !== undefined) return { kind: 'finished', run: yield* followEnd(ended, outcome, attempt) }
  const reconciled = outcome.state === 'cancelled' ? undefined : yield* cancelInstead(attempt, outcome)
  return { kind: 'reconciled', run: reconciled ?? (yield* readRun(attempt.runId)) }
}

/** Ends a run that nobody holds: cancelled or expired in the queue, refused by an open breaker, cancelled while parked. */
export function* finishUnclaimed(runId: RunId, outcome: Outcome): Transition<Finish> {
  const ended = yield* writeEnd(sql`id = ${runId} and state in ('queued', 'parked')`, outcome)
  if (ended === undefined) return { kind: 'reconciled', run: yield* readRun(runId) }
  return { kind: 'finished', run: yield* followEnd(ended, outcome) }
}

/**
 * Ends the turn of a session that we only see through its hooks: nobody claimed it. Its client knows nothing of a cancel and
 * comes to its end all the same; that is when the run ends, as cancelled.
 */
export function* finishObserved(runId: RunId, outcome: Outcome): Transition<Finish> {
  const holds = sql`id = ${runId} and kind = 'observed' and state in ('running', 'parked')`
  const ended = yield* writeEnd(holds, outcome)
  if (ended !== undefined) return { kind: 'finished', run: yield* followEnd(ended, outcome) }
  const instead: Outcome = { state: 'cancelled', ...(outcome.usage === undefined ? {} : { usage: outcome.usage }) }
  const cancelled = yield* writeEnd(holds, instead)
  return {
    kind: 'reconciled',
    run: cancelled === undefined ? yield* readRun(runId) : yield* followEnd(cancelled, instead),
  }
}

/**
 * The command ended by itself after cancel had been requested and before it was stopped. Its processes are as dead as
 * after a stop, so the run ends cancelled now; what it brought is kept beside the run.
 */
function* cancelInstead(attempt: AttemptRef, outcome: Outcome): Transition<Run | undefined> {
  const cancelled: Outcome = {
    state: 'cancelled',
    ...(outcome.usage === undefined ? {} : { usage: outcome.usage }),
    ...(outcome.told === undefined ? {} : { told: outcome.told }),
    ...(outcome.taken === undefined ? {} : { taken: outcome.taken }),
  }
  const ended = yield* writeEnd(
    sql`id = ${attempt.runId} and fence = ${attempt.fence} and state = 'running'`,
    cancelled,
  )
  if (ended === undefined) return undefined
  yield* keepLateResult(attempt, outcome)
  return yield* followEnd(ended, cancelled, attempt)
}

function* writeEnd(holds: ReturnType<typeof sql>, outcome: Outcome): Transition<Run | undefined> {
  const { state, usage, result } = outcome
  const failure = outcome.state === 'failed' ? outcome : undefined
  return yield* first(
    runRow,
    sql`update runs set state = ${state}, ended_at = ${now}, code = ${failure?.code ?? null},
        error = ${failure?.error ?? null}, result = ${result === undefined ? null : JSON.stringify(result)},
        input_tokens = input_tokens + ${usage?.inputTokens ?? 0},
        output_tokens = output_tokens + ${usage?.outputTokens ?? 0},
        cost_microusd = cost_microusd + ${usage?.costMicrousd ?? 0}
      where ${holds} and (cancel_requested_at is not null) = ${sqlBoolean(state === 'cancelled')}
      returning *`,
  )
}

/**
 * The success of a run on which nothing hangs: no parent, schedule, slot or workspace. Guarded like every end, and whoever does
 * not win by it asks `finishRun`. Of its own because many of these go in one statement.
 */
export const SUCCESS: Giving<[Pick<StepsRef, 'runSeq' | 'fence'>, Outcome]> = {
  put: (rows, { runSeq, fence }, { result }) =>
    rows.push(runSeq, fence, result === undefined ? null : JSON.stringify(result)),
  joint: {
    table: 'runs',
    columns: [
      ['seq', 'bigint'],
      ['fence', 'bigint'],
      ['result', 'text'],
    ],
    key: ['seq'],
    likely: true,
    many: sql`update runs set state = 'succeeded', ended_at = ${now}, result = given.result
      from ${GIVEN} where runs.seq = given.seq and runs.fence = given.fence and ${unindexed(sql`runs.state = 'running'`)}
        and runs.cancel_requested_at is null`,
  },
}

const sqlBoolean = (value: boolean) => (value ? sql`(1 = 1)` : sql`(1 = 0)`)

function* followEnd(ended: Run, outcome: Outcome, attempt?: AttemptRef): Transition<Run> {
  const state = ended.state as TerminalState
  if (attempt !== undefined) yield* endAttempt(attempt, state)
  yield* withdrawActions(ended.id)
  yield* doubtOpenSteps(ended)
  yield* keepUnanswered(ended, outcome.taken ?? [])
  yield* answerUntaken(ended)
  const { reply, told, usage } = outcome
  if (told !== undefined && attempt !== undefined) yield* recordToldTurn(ended, told, attempt)
  if (reply !== undefined) yield* recordCommandReply(ended, reply, told === undefined ? undefined : usage)
  if (ended.workspace !== null) yield* decideWorkspace(ended)
  yield* settleBreaker(ended)
  yield* settleRun(ended)
  if (ended.parentThreadId !== null) {
    const body = { ...briefly(ended), ...(outcome.summary === undefined ? {} : { summary: outcome.summary }) }
    const [failed, silent] = [ended.state === 'failed', !ended.notify]
    const { threadId: from, parentThreadId: to, id: runId, createdAt: since } = ended
    yield* deliverCompletion({ from, to, runId, body, failed, silent, since })
    if (!silent) yield* resumeWaiting(ended.parentThreadId)
  }
  yield* record({ type: 'run.finished', threadId: ended.threadId, runId: ended.id, data: briefly(ended) })
  return ended
}

/**
 * A run that ended before it took anything is the answer to what it was started for: otherwise that would start another
 * one, which a person has just cancelled or which fails in the same way. What others put there (completions) waits on
 * after a cancel and while a breaker is open: neither is about them.
 */
function* answerUntaken(ended: Run): Transition<void> {
  if (ended.request.kind !== 'agent' || ended.state === 'succeeded') return
  const promptsOnly = ended.state === 'cancelled' || ended.code === 'circuit_open'
  const ids = yield* untakenMessages.single(ended.id, ended.threadId, promptsOnly)
  yield* keepUnanswered(
    ended,
    ids.map(({ id }) => id),
  )
}

function briefly({ state, code, error, agent }: Run): Record<string, unknown> {
  return { state, agent, ...(code === null ? {} : { code, error }) }
}

/**
 * A result that came too late to count: kept, visible, never applied. Not that of a worker whose processes another one
 * took over, mark and all: it is the same result, and that one records it.
 */
export function* keepLateResult(attempt: AttemptRef, late: Outcome): Transition<void> {
  const { told: _, ...outcome } = late
  const kept = yield* run(sql`insert into late_results (attempt_id, run_id, outcome, arrived_at)
    select mine.id, mine.run_id, ${JSON.stringify(outcome)}, ${now} from attempts mine
    where mine.id = ${attempt.id} and (mine.outcome is null or mine.outcome <> ${outcome.state}) and not exists (select 1 from attempts taker
      where taker.run_id = mine.run_id and taker.mark = mine.mark and taker.fence > mine.fence)
    on conflict do nothing`)
  if (kept === 1) yield* record({ type: 'run.late_result', runId: attempt.runId, data: { state: outcome.state } })
}

/** What a model said to a worker that has lost the run, and what that cost. */
export interface LateReply {
  readonly text: string
  readonly usage: Usage
}

/**
 * It is paid for, whoever has the run: kept beside it, once for each attempt. Nothing of the run is changed, its bill and its limits
 * neither, so it needs no claim. Its taker asks for itself.
 */
export function* keepLateReply(attempt: AttemptRef, { text, usage }: LateReply): Transition<void> {
  if (text === '' && usage.inputTokens + usage.outputTokens + usage.costMicrousd === 0) return
  const state = 'superseded'
  const kept = yield* run(sql`insert into late_results (attempt_id, run_id, outcome, arrived_at)
    select id, run_id, ${JSON.stringify({ state, result: { text }, usage })}, ${now} from attempts where id = ${attempt.id}
    on conflict do nothing`)
  if (kept === 1) yield* record({ type: 'run.late_result', runId: attempt.runId, data: { state } })
}

function* readRun(id: RunId): Transition<Run> {
  const found = yield* findRun.single(id)
  invariant(found !== undefined, `run ${id} vanished inside a transaction`)
  return found
}
