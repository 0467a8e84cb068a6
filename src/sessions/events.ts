import { isDeepStrictEqual } from 'node:util'

import { settleObserved } from '../actions/observed.ts'
import { digestOf } from '../base/canonical-json.ts'
import type { MessageId, RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { finishObserved } from '../runs/finish.ts'
import type { Outcome } from '../runs/finish.ts'
import { beginObserved, goOnObserved, parkObserved } from '../runs/observed.ts'
import { holdRun, resumeWaiting } from '../runs/park.ts'
import type { FailureCode, Usage } from '../runs/run.ts'
import { followGeneration } from '../schedule/settle.ts'
import { integer, nullable, row, text } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { first, one, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { acceptMessage } from '../threads/accept.ts'
import { acknowledgeDelivery, findDelivery, giveBackDelivery, leaseMessages } from '../threads/delivery.ts'
import type { Delivery } from '../threads/delivery.ts'
import { findThread, openThread } from '../threads/thread.ts'
import { parentOf } from './parent.ts'
import { holdSession, sessionKey, sessionRow } from './session.ts'
import type { Client, Session, SessionState, Wake } from './session.ts'

const generationRow = row({ generation: integer })

/** What every event of a client says. Its session is known by the client's own word, never by an inherited environment. */
export interface Heard {
  readonly client: Client
  readonly sessionId: string
  /** The thread from whose process the client was started: its parent, unless that is the session itself. */
  readonly startedFrom?: ThreadId
  /** The run that started the client. */
  readonly startedBy?: RunId
  /** The processes above the client's, the nearest first, where one of them may be a session that cannot tell what it starts who it is. */
  readonly above?: readonly unknown[]
  /** The session of Codex that the client's environment names. */
  readonly codexAround?: string
  readonly process?: unknown
  readonly wake?: Wake
  readonly transcript?: string
  readonly cwd?: string
  /** Its number among the events of its session, by whoever heard it first. Told again, or late, it has the same number. */
  readonly ordinal?: number
  /** The delivery that the client was last shown, null if none; undefined: nobody knows. */
  readonly shown?: string | null
}

export type StartSource = 'startup' | 'resume' | 'clear' | 'compact' | 'fork'

/** The name under which a session's thread is known. */
export const threadOf = (client: Client, sessionId: string): ThreadId => `${client}-${sessionId}` as ThreadId

/**
 * A session begins or goes on. What had been put in front of its model, with no event of that process after it, was perhaps
 * never seen: it waits again. Compacting happens inside of a turn: that process has not died.
 */
export function* sessionStarted(heard: Heard, source: StartSource): Transition<Session> {
  const known = yield* knownSession(heard)
  if (known === undefined) return yield* newSession(heard, source)
  if (isPast(known, heard)) return known
  if (source === 'compact') return yield* touch(known, heard, known.state)
  yield* giveBack(known)
  if (yield* comesBack(known)) return yield* touch(known, heard, 'busy')
  yield* endTurn(known, {
    state: 'failed',
    code: 'lost',
    error: 'the session was started again before its turn had ended',
  })
  const generation = source === 'clear' ? yield* renewGeneration(known.threadId) : known.generation
  yield* run(sql`update sessions set generation = ${generation}, blocks = 0, delivery_id = null, run_id = null, ended_at = null
    where id = ${known.id}`)
  return yield* touch(known, heard, 'idle')
}

/** What a session calls its turn between its resume and the prompt by which the client goes on with what had waited. */
const RESUMED = 'resumed'

/** Its turn had waited for a person, without a process: it is the same turn that goes on now. */
function* comesBack(session: Session): Transition<boolean> {
  if (session.runId === null) return false
  // That its process had ended may not have been heard.
  yield* parkObserved(session.runId)
  if (!(yield* goOnObserved(session.runId))) return false
  yield* run(sql`update sessions set turn = ${RESUMED}, blocks = 0, ended_at = null where id = ${session.id}`)
  return true
}

/** Whatever comes from a session that never said hello, as when hooks were installed in the middle of it, is its start. */
function* knownSession(heard: Heard): Transition<Session | undefined> {
  const known = yield* holdSession(sessionKey(heard.client, heard.sessionId))
  return known === undefined || known.endedAt === null ? known : yield* onOpenThread(known, heard)
}

/** Its thread may have been removed meanwhile: it goes on in a new generation, which knows nothing of the old one. */
function* onOpenThread(session: Session, heard: Heard): Transition<Session> {
  const thread = yield* findThread.single(session.threadId)
  if (thread?.state !== 'removed') return session
  // Begun in the very moment of the removal: left under way, it would keep every later turn from being recorded.
  yield* endTurn(session, BROKEN_OFF)
  const parent = yield* parentOf(heard, session.threadId)
  const { generation } = yield* openThread(session.threadId, session.client, parent)
  return yield* one(
    sessionRow,
    sql`update sessions set generation = ${generation}, blocks = 0, run_id = null, delivery_id = null, ended_at = null
      where id = ${session.id} returning *`,
  )
}

export function* sessionFor(heard: Heard): Transition<Session> {
  // Not yet with its number: what it says is still to be heard.
  const { ordinal: _, ...unnumbered } = heard
  return (yield* knownSession(heard)) ?? (yield* newSession(unnumbered, 'startup'))
}

function* newSession(heard: Heard, source: StartSource): Transition<Session> {
  const { client, sessionId } = heard
  const cleared = source === 'clear' ? yield* sessionOfProcess(heard) : undefined
  const threadId = cleared?.threadId ?? threadOf(client, sessionId)
  const parent = cleared === undefined ? yield* parentOf(heard, threadId) : null
  const thread = yield* openThread(threadId, client, parent)
  const generation = cleared === undefined ? thread.generation : yield* renewGeneration(threadId)
  if (cleared !== undefined) {
    yield* giveBack(cleared)
    yield* endTurn(cleared, {
      state: 'failed',
      code: 'lost',
      error: 'the session was cleared before its turn had ended',
    })
    yield* run(sql`update sessions set state = 'ended', ended_at = ${now}, delivery_id = null where id = ${cleared.id}`)
  }
  yield* run(sql`insert into sessions (id, client, session_id, thread_id, generation, state, started_at, updated_at)
    values (${sessionKey(client, sessionId)}, ${client}, ${sessionId}, ${threadId}, ${generation}, 'idle', ${now}, ${now})
    on conflict do nothing`)
  const stored = yield* one(sessionRow, sql`select * from sessions where id = ${sessionKey(client, sessionId)}`)
  return yield* touch(stored, heard, stored.state)
}

/** The same process goes on under a new session: its children still report to the thread that started them. */
function* sessionOfProcess({ client, process }: Heard): Transition<Session | undefined> {
  if (process === undefined) return undefined
  return yield* first(
    sessionRow,
    sql`select * from sessions where client = ${client} and process = ${JSON.stringify(process)} order by updated_at desc limit 1`,
  )
}

/** A new conversation under the same name. What was not seen yet is still to be seen. */
function* renewGeneration(threadId: ThreadId): Transition<number> {
  const renewed = yield* first(
    generationRow,
    sql`update threads set generation = generation + 1 where id = ${threadId} returning generation`,
  )
  const generation = renewed?.generation ?? 1
  yield* run(
    sql`update messages set generation = ${generation} where thread_id = ${threadId} and state in ('pending', 'leased')`,
  )
  yield* followGeneration(threadId, generation)
  return generation
}

/** It was heard before, or something newer was: it says nothing about how things stand. */
export const isPast = (session: Session, { ordinal }: Pick<Heard, 'ordinal'>) =>
  ordinal !== undefined && ordinal > 0 && ordinal <= session.stops

export function* touch(session: Session, heard: Heard, state: SessionState): Transition<Session> {
  const { process, wake, transcript, cwd, ordinal = 0 } = heard
  return yield* one(
    sessionRow,
    sql`update sessions set state = ${state}, updated_at = ${now},
        stops = case when stops > ${ordinal} then stops else ${ordinal} end,
        process = ${process === undefined ? sql`process` : sql`${JSON.stringify(process)}`},
        wake = ${wake === undefined ? sql`wake` : sql`${JSON.stringify(wake)}`},
        transcript = ${transcript === undefined ? sql`transcript` : sql`${transcript}`},
        cwd = ${cwd === undefined ? sql`cwd` : sql`${cwd}`}
      where id = ${session.id} returning *`,
  )
}

const isOther = (session: Session, { process }: Pick<Heard, 'process'>) =>
  process !== undefined && session.process !== null && !isDeepStrictEqual(process, session.process)

/**
 * An event of the same process after a delivery is the evidence that it was seen; one of another process is none. An answer
 * that never reached the client was not seen either; in the middle of a turn (`inTurn`) it may still be on its way. A client
 * that says itself that it went on because of it (`wentOn`) has seen it, whatever its process looked like.
 */
export function* acknowledge(
  session: Session,
  { process, shown }: Heard,
  { inTurn = false, wentOn = false } = {},
): Transition<void> {
  if (session.deliveryId === null) return
  if (!wentOn && isOther(session, { process })) return yield* giveBack(session)
  const wasShown = shown === undefined || shown === session.deliveryId
  if (!wasShown) return inTurn ? undefined : yield* giveBack(session)
  yield* acknowledgeDelivery(session.deliveryId, session.runId)
  yield* run(
    sql`update sessions set delivery_id = null where id = ${session.id} and delivery_id = ${session.deliveryId}`,
  )
}

function* giveBack(session: Session): Transition<void> {
  if (session.deliveryId === null) return
  yield* giveBackDelivery(session.deliveryId)
  yield* run(
    sql`update sessions set delivery_id = null where id = ${session.id} and delivery_id = ${session.deliveryId}`,
  )
}

/** The same turn, told again; or, of a client that names none, what it was just told to go on with. */
const isGoingOn = (session: Session, turn: string | undefined) =>
  turn === undefined ? session.deliveryId !== null : session.turn === turn

/** Ends of a turn after which nobody knows what became of a tool that had begun. */
const CUT_OFF: readonly FailureCode[] = ['killed', 'lost']

const BROKEN_OFF: Outcome = { state: 'failed', code: 'killed', error: 'the turn was broken off' }

/** A turn has begun. One that had not ended was broken off by a person, of which no client tells. */
export function* turnBegun(heard: Heard, turn: string | undefined): Transition<Session> {
  const session = yield* sessionFor(heard)
  if (isPast(session, heard)) return session
  yield* acknowledge(session, heard)
  if (session.runId !== null && isGoingOn(session, turn)) return yield* touch(session, heard, 'busy')
  if (session.runId !== null && session.turn === RESUMED) return yield* nameTurn(session, heard, turn)
  yield* endTurn(session, BROKEN_OFF)
  yield* beginTurn(session, turn)
  return yield* touch(session, heard, 'busy')
}

function* nameTurn(session: Session, heard: Heard, turn: string | undefined): Transition<Session> {
  yield* run(sql`update sessions set turn = ${turn ?? `turn-${session.turns}`} where id = ${session.id}`)
  return yield* touch(session, heard, 'busy')
}

export function* beginTurn(session: Session, turn: string | undefined): Transition<RunId> {
  const number = session.turns + 1
  const name = turn ?? `turn-${number}`
  const thread = yield* findThread.single(session.threadId)
  const { client, sessionId, generation, threadId } = session
  const request = { kind: 'observed', client, sessionId, generation, turn: name, part: number } as const
  const begun = yield* beginObserved({ threadId, agent: client, parentThreadId: thread?.parentId ?? null, request })
  yield* run(
    sql`update sessions set turn = ${name}, turns = ${number}, run_id = ${begun.id}, ended_at = null where id = ${session.id}`,
  )
  return begun.id
}

function* endTurn(session: Session, outcome: Outcome): Transition<void> {
  if (session.runId === null) return
  yield* holdRun(session.runId)
  yield* settleObserved(session.runId, outcome.state === 'failed' && CUT_OFF.includes(outcome.code))
  yield* finishObserved(session.runId, outcome)
  yield* run(sql`update sessions set run_id = null where id = ${session.id} and run_id = ${session.runId}`)
}

/**
 * Something happened: a tool was used, a model was asked. What goes on beside the turn, in a subagent, is a sign of life and
 * makes nobody busy.
 */
export function* sessionActive(heard: Heard, inTurn = true): Transition<Session> {
  const session = yield* sessionFor(heard)
  if (isPast(session, heard)) return session
  yield* acknowledge(session, heard, { inTurn: true })
  if (inTurn) return yield* touch(session, heard, 'busy')
  // Without its number: what comes side by side with it, a question to a person perhaps, is not late because of it.
  return yield* touch(session, { ...heard, ordinal: 0 }, session.state)
}

/** How the end of a turn is known: by the client's own names. */
export interface TurnEnd {
  /** The client's own name of the turn, if it has one. */
  readonly turn?: string
  /** Its number among the ends of this session, by whoever heard it first; the same one told again has the same number. */
  readonly ordinal: number
}

export interface Stop extends TurnEnd {
  /** Whether the client says that it went on because of a block before. Undefined: it does not say. */
  readonly isActive?: boolean
  /** Something of its own goes on in the background: paused, not finished. */
  readonly isPaused: boolean
  readonly lastMessage?: string
  readonly usage?: Usage
  readonly deliveryId: string
  /** Nobody waits for the answer: it comes from the spool, or from a client that only tells. */
  readonly isUnanswered?: boolean
  /** The client tells of the end of the whole turn once, beside its Stop, if that is heard too. */
  readonly isReport?: boolean
}

export type StopAnswer =
  | { readonly kind: 'go-on'; readonly delivery: Delivery; readonly session: Session }
  | { readonly kind: 'stop'; readonly session: Session }

/**
 * A turn has come to its end. The drain comes first: what waits in the inbox makes it go on, within the bound of blocks in a
 * row; lease and count are this one transaction. Without anything to say the turn is over, and its parent is told.
 */
export function* turnStopped(heard: Heard, stop: Stop): Transition<StopAnswer> {
  const before = yield* sessionFor(heard)
  if (stop.isReport === true && (yield* hasEnded(before, stop))) return { kind: 'stop', session: before }
  const heardBefore = yield* rememberEnd(before, stop)
  if (heardBefore !== undefined) return yield* answerAgain(before, heardBefore.deliveryId)
  if (stop.isUnanswered === true && isLate(before, stop)) {
    if (!stop.isPaused) yield* tellLate(before, stop, { kind: 'completion', summary: stop.lastMessage ?? '' })
    return { kind: 'stop', session: before }
  }
  yield* acknowledge(before, heard, { wentOn: stop.isActive === true && heard.shown === before.deliveryId })
  const blocks = stop.isActive === false ? 0 : before.blocks
  const mayDrain = blocks < LIMITS.blocksInARow && stop.isUnanswered !== true
  const delivery = mayDrain ? yield* drain(before, stop.deliveryId) : undefined
  const blocked = delivery !== undefined && delivery.messages.length > 0
  const runId = yield* runOfTurn(before, stop.turn)
  const used = blocked ? blocks + 1 : delivery === undefined ? blocks : 0
  // A wake that led to this turn brought nothing if there is nothing to deliver; what was taken meanwhile says so itself. Where
  // nothing could be given, the wake is not over: else the session would be woken anew at once, by each end.
  const wake = mayDrain
    ? sql`, vain_wakes = vain_wakes + case when woken_at is null then 0 else 1 end, woken_at = null`
    : sql``
  yield* run(sql`update sessions set blocks = ${used}, delivery_id = ${blocked ? stop.deliveryId : null} ${wake}
    where id = ${before.id}`)
  const numbered = { ...heard, ordinal: stop.ordinal }
  if (blocked) {
    yield* run(sql`update turn_ends set delivery_id = ${stop.deliveryId} where id = ${endName(before, stop)}`)
    return { kind: 'go-on', delivery, session: yield* touch(before, numbered, 'busy') }
  }
  if (stop.isPaused) return { kind: 'stop', session: yield* touch(before, numbered, 'waiting') }
  yield* endTurn({ ...before, runId }, outcomeOf(heard, stop))
  return { kind: 'stop', session: yield* touch(before, numbered, 'idle') }
}

/** The run of the turn that just ended. If its begin was never heard, another may still seem to be under way. */
function* runOfTurn(session: Session, turn: string | undefined): Transition<RunId> {
  const isAnother = turn !== undefined && session.turn !== turn && session.turn !== RESUMED
  if (session.runId !== null && !isAnother) return session.runId
  yield* endTurn(session, BROKEN_OFF)
  return yield* beginTurn(session, turn)
}

function outcomeOf({ transcript }: Heard, { lastMessage: summary, usage }: Stop): Outcome {
  return {
    state: 'succeeded',
    result: { text: summary ?? '', ...(transcript === undefined ? {} : { transcript }) },
    ...(summary === undefined ? {} : { summary }),
    ...(usage === undefined ? {} : { usage }),
  }
}

function* drain({ threadId, id }: Session, deliveryId: string): Transition<Delivery> {
  const by = { kind: 'session', session: id } as const
  return yield* leaseMessages({
    id: deliveryId,
    threadId,
    by,
    limit: LIMITS.messagesPerTurn,
    bytes: LIMITS.deliveryBytes,
  })
}

/** It comes from the spool, and the session has gone on: it says how a turn ended, and nothing else. */
const isLate = (session: Session, { turn, ordinal }: TurnEnd) =>
  isPast(session, { ordinal }) || (turn !== undefined && session.runId !== null && session.turn !== turn)

interface LateNews {
  readonly kind: 'completion' | 'error'
  readonly summary: string
}

function* tellLate(session: Session, end: TurnEnd, { kind, summary }: LateNews): Transition<void> {
  const parent = (yield* findThread.single(session.threadId))?.parentId
  if (parent == null) return
  const name = endName(session, end)
  yield* acceptMessage({
    id: `msg_${digestOf(name).slice(0, 32)}` as MessageId,
    threadId: parent,
    from: session.threadId,
    kind,
    key: `turn:${name}`,
    body: { state: kind === 'error' ? 'failed' : 'succeeded', agent: session.client, summary },
  })
  yield* resumeWaiting(parent)
}

/** The client's own names for it: session, turn and number. Never what was said, or when. */
const endName = ({ id }: Session, { turn, ordinal }: TurnEnd) => `${id}/${turn ?? ''}/${ordinal}`

const endRow = row({ deliveryId: nullable(text()) })

/** Undefined if it is heard for the first time. */
function* rememberEnd(session: Session, stop: TurnEnd): Transition<{ readonly deliveryId: string | null } | undefined> {
  const id = endName(session, stop)
  const stored = yield* run(sql`insert into turn_ends (id, session, heard_at) values (${id}, ${session.id}, ${now})
    on conflict do nothing`)
  return stored === 1 ? undefined : yield* one(endRow, sql`select delivery_id from turn_ends where id = ${id}`)
}

/** Whether the end of this turn was heard otherwise: the client does not wait with its next turn until it has told of it. */
function* hasEnded(session: Session, { turn }: TurnEnd): Transition<boolean> {
  if (turn === undefined) return false
  if (session.turn === turn) return session.runId === null
  // One at which the turn went on is none.
  const end = yield* first(
    endRow,
    sql`select delivery_id from turn_ends where id > ${`${session.id}/${turn}/`} and id < ${`${session.id}/${turn}0`}
      and delivery_id is null limit 1`,
  )
  return end !== undefined
}

/** The same Stop once more, because its answer was lost: the same answer, unless it has been seen meanwhile. */
function* answerAgain(session: Session, deliveryId: string | null): Transition<StopAnswer> {
  if (deliveryId === null || session.deliveryId !== deliveryId) return { kind: 'stop', session }
  const messages = yield* findDelivery.single(deliveryId)
  return { kind: 'go-on', delivery: { id: deliveryId, messages, remaining: 0 }, session }
}

/** The turn ended with an error of the client or its provider. */
export function* turnFailed(
  heard: Heard,
  end: TurnEnd,
  error: string,
  code: FailureCode = 'model',
): Transition<Session> {
  const session = yield* sessionFor(heard)
  if ((yield* rememberEnd(session, end)) !== undefined) return session
  if (isPast(session, end)) {
    yield* tellLate(session, end, { kind: 'error', summary: error })
    return session
  }
  yield* acknowledge(session, heard)
  const runId = yield* runOfTurn(session, end.turn)
  yield* endTurn({ ...session, runId }, { state: 'failed', code, error })
  return yield* touch(session, { ...heard, ordinal: end.ordinal }, 'idle')
}

/** It waits for a person: its parent hears of it, the newest such news in place of an older one. */
export function* sessionWaiting(heard: Heard, what: string, key: string, messageId: MessageId): Transition<Session> {
  const session = yield* sessionFor(heard)
  if (isPast(session, heard)) return session
  yield* acknowledge(session, heard, { inTurn: true })
  const parent = (yield* findThread.single(session.threadId))?.parentId
  if (parent != null) {
    const about = { threadId: parent, from: session.threadId, kind: 'waiting' } as const
    yield* acceptMessage({ ...about, id: messageId, key, body: { text: what } })
    yield* resumeWaiting(parent)
  }
  return yield* touch(session, heard, 'waiting')
}

/**
 * What it was to go on with was never shown to it: its hook died with the answer. So the client has come to rest, the turn is
 * over, and the messages wait for the next one.
 */
export function* deliveryUnshown(id: string, deliveryId: string): Transition<Session | undefined> {
  const session = yield* holdSession(id)
  if (session === undefined || session.deliveryId !== deliveryId) return undefined
  yield* giveBack(session)
  yield* endTurn(session, { state: 'succeeded', result: { text: '' }, summary: '(its last words were not heard)' })
  return yield* touch(session, { client: session.client, sessionId: session.sessionId }, 'idle')
}

/** The client has ended. Its thread stays: what comes for it waits until it is resumed. */
export function* sessionEnded(heard: Heard, why: string): Transition<Session | undefined> {
  const session = yield* holdSession(sessionKey(heard.client, heard.sessionId))
  if (session === undefined || isPast(session, heard)) return session
  // It was resumed elsewhere and goes on there; who ends is the process that it had before.
  if (isOther(session, heard)) return session
  yield* giveBack(session)
  // A call for which it asked, and whose answer it waits for without a process: the turn is not over.
  const isAway = session.runId !== null && (yield* parkObserved(session.runId))
  if (!isAway)
    yield* endTurn(session, {
      state: 'failed',
      code: 'killed',
      error: `the session ended (${why}) before its turn had`,
    })
  const ended = yield* touch(session, heard, 'ended')
  yield* run(sql`update sessions set ended_at = ${now}, blocks = 0 where id = ${session.id}`)
  return ended
}
