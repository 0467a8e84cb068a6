import { canonicalJson } from '../base/canonical-json.ts'
import { record } from '../events/event.ts'
import { sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { LIMITS } from '../base/limits.ts'
import { appendEntry, entriesBefore } from '../threads/conversation.ts'
import { consumeMessages } from '../threads/consume.ts'
import type { Shown } from '../threads/delivery.ts'
import { areStillPending } from '../threads/message.ts'
import { recordTold } from '../actions/told.ts'
import type { ToldStep } from '../actions/told.ts'
import type { ThreadId } from '../base/ids.ts'
import { forgetSession, keepSession } from '../sessions/kept.ts'
import type { SessionTotals } from '../sessions/kept.ts'
import type { Client } from '../sessions/session.ts'
import { retold } from '../threads/retold.ts'
import { findThread } from '../threads/thread.ts'
import { attemptRow, endAttempt } from './attempt.ts'
import type { AttemptRef } from './attempt.ts'
import { holdRun } from './park.ts'
import { findRun, runRow } from './run.ts'
import type { CommandRequest, Run, Usage } from './run.ts'

export type TakenForCommand =
  | { readonly kind: 'taken'; readonly run: Run }
  /** One of the messages was taken by somebody else, or taken back, since they were read. */
  | { readonly kind: 'changed' }
  | { readonly kind: 'superseded' }

/**
 * The turn of an agent that is a command: the messages that it is shown are consumed, and from then on the run is that
 * command, with everything that holds for one.
 */
export function* takeForCommand(
  attempt: AttemptRef,
  shown: readonly Shown[],
  request: CommandRequest,
): Transition<TakenForCommand> {
  // The run first, then its messages: in the order of every other turn.
  yield* holdRun(attempt.runId)
  const ids = shown.map(({ messageId }) => messageId)
  if (!(yield* areStillPending(ids))) return yield* notTaken(attempt)
  const taken = yield* first(
    runRow,
    sql`update runs set kind = 'command', request = ${canonicalJson({ ...request, isTurn: true })}
      where id = ${attempt.runId} and fence = ${attempt.fence} and state = 'running' and kind = 'agent' returning *`,
  )
  if (taken === undefined) return { kind: 'superseded' }
  const generation = (yield* findThread.single(taken.threadId))?.generation ?? 1
  for (const { text, messageId } of shown) {
    yield* appendEntry({
      threadId: taken.threadId,
      generation,
      runId: taken.id,
      kind: 'user',
      body: { text, messageId },
    })
  }
  yield* keepNew(taken, generation, request)
  yield* consumeMessages(ids, taken.id, taken.threadId)
  yield* record({ type: 'step.recorded', threadId: taken.threadId, runId: taken.id, data: { actions: 0 } })
  return { kind: 'taken', run: taken }
}

function* notTaken(attempt: AttemptRef): Transition<TakenForCommand> {
  const run = yield* findRun.single(attempt.runId)
  if (run?.fence !== attempt.fence || run.state !== 'running') return { kind: 'superseded' }
  // A command already: its own doing, whose answer was lost.
  return run.request.kind === 'command' ? { kind: 'taken', run } : { kind: 'changed' }
}

/** Before it begins, where we name its session: however it ends, the next message finds that. */
function* keepNew({ threadId, agent }: Run, generation: number, { client }: CommandRequest): Transition<void> {
  if (client?.session === undefined || client.isNew !== true) return
  yield* keepSession({ threadId, generation, agent }, client.name, client.session)
}

/**
 * The session that it was to go on with is gone, and its client did nothing: the run goes back to the queue as one that begins
 * a new session, which is shown what was said before. Once, since such a one can only be begun. False: the claim is lost, or it is to be cancelled.
 */
export function* beginAnew(attempt: AttemptRef): Transition<boolean> {
  const held = yield* findRun.single(attempt.runId)
  const request = held?.request
  if (held === undefined || request?.kind !== 'command') return false
  const { client } = request
  if (client?.orElse === undefined) return yield* anewBefore(attempt)
  const { orElse, session: gone, ...rest } = client
  const { argv, session } = orElse
  const anew = {
    ...rest,
    isNew: true as const,
    ...(session === undefined ? {} : { session }),
    ...(gone === undefined ? {} : { insteadOf: gone }),
  }
  const input = `${yield* saidBefore(held)}${request.input ?? ''}`
  const queued = yield* first(
    runRow,
    sql`update runs set state = 'queued', request = ${canonicalJson({ ...request, argv, input, client: anew })}
      where id = ${attempt.runId} and fence = ${attempt.fence} and state = 'running' and cancel_requested_at is null
      returning *`,
  )
  if (queued === undefined) return yield* anewBefore(attempt)
  const { threadId, id: runId } = queued
  const generation = (yield* findThread.single(threadId))?.generation ?? 1
  yield* keepNew(queued, generation, { ...request, client: anew })
  yield* endAttempt(attempt, 'requeued')
  yield* record({ type: 'run.requeued', threadId, runId, data: { gone: gone ?? '', client: client.name } })
  return true
}

/** In its thread, without what this run was told. */
function* saidBefore({ id, threadId }: Run): Transition<string> {
  const generation = (yield* findThread.single(threadId))?.generation ?? 1
  const entries = yield* entriesBefore.single(threadId, generation, undefined, LIMITS.page)
  return retold(entries.filter(({ runId }) => runId !== id))
}

/** Its own doing, whose answer was lost. */
function* anewBefore({ id }: AttemptRef): Transition<boolean> {
  return (yield* first(attemptRow, sql`select * from attempts where id = ${id} and outcome = 'requeued'`)) !== undefined
}

/** What a client told of its turn besides its reply. */
export interface ToldTurn {
  readonly client: Client
  readonly steps: readonly ToldStep[]
  /** The session that the next message goes on with, and what it has taken so far. */
  readonly session?: { readonly id: string; readonly totals: SessionTotals }
  /** The thread under which the hooks of this session are heard. */
  readonly heardAs?: ThreadId
  /** It came to its end by itself. */
  readonly isOver: boolean
  /** The session that it was to begin: its program could not be started. */
  readonly neverBegun?: string
}

export function* recordToldTurn(ended: Run, told: ToldTurn, { id: attemptId }: AttemptRef): Transition<void> {
  const { threadId, agent, id: runId } = ended
  const generation = (yield* findThread.single(threadId))?.generation ?? 1
  const { client, session, steps, isOver, heardAs = null, neverBegun } = told
  if (neverBegun !== undefined) yield* forgetSession({ threadId, generation, agent }, neverBegun)
  if (session !== undefined) yield* keepSession({ threadId, generation, agent }, client, session.id, session.totals)
  yield* recordTold({ runId, threadId, generation, attemptId, heardAs, isOver }, steps)
}

/** What the command printed is what the agent said. What the whole turn took is with its last words. */
export function* recordCommandReply(ended: Run, text: string, usage?: Usage): Transition<void> {
  const generation = (yield* findThread.single(ended.threadId))?.generation ?? 1
  const place = { threadId: ended.threadId, generation, runId: ended.id }
  const body = { text, toolCalls: [] }
  yield* appendEntry({ ...place, kind: 'assistant', body, ...(usage === undefined ? {} : { usage }) })
}
