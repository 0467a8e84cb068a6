import type { PolicyRule } from '../actions/policy.ts'
import { digestOf } from '../base/canonical-json.ts'
import type { MessageId, Randomness, RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { findRun } from '../runs/run.ts'
import {
  sessionActive,
  sessionEnded,
  sessionStarted,
  sessionWaiting,
  turnBegun,
  turnFailed,
  turnStopped,
} from '../sessions/events.ts'
import type { Heard } from '../sessions/events.ts'
import { findSession, sessionKey } from '../sessions/session.ts'
import type { Client } from '../sessions/session.ts'
import { recordUnreadable } from '../sessions/unreadable.ts'
import type { Store } from '../store/store.ts'
import { beginningOf } from '../base/text.ts'
import { pendingMessages } from '../threads/message.ts'
import { NO_ANSWER, announce, goOn } from './answer.ts'
import type { HookAnswer } from './answer.ts'
import { readClaude } from './claude.ts'
import { readCodex } from './codex.ts'
import { Unreadable, given } from './event.ts'
import type { Happening, HookEvent } from './event.ts'
import { readGemini } from './gemini.ts'
import { permit, settleCall } from './permission.ts'
import { identityOf } from './told.ts'
import type { Told } from './told.ts'
import { usageOfTurn } from './usage.ts'

export interface Listener {
  readonly store: Store
  readonly random: Randomness
  /** The rules of the configuration; undefined: nobody here knows them. */
  readonly policy?: readonly PolicyRule[] | undefined
  /** How long a person has to answer. */
  readonly approvalMs?: number | undefined
  /** What a client was last shown, for events that it sends by itself; asked at once, since the next answer may be on its way. */
  readonly lastShown?: (sessionId: string) => string | null | undefined
}

const READERS: Readonly<Record<Client, (input: string) => HookEvent | Unreadable>> = {
  claude: readClaude,
  codex: readCodex,
  gemini: readGemini,
}

/** Understands what a client's hook told, records it, and says what the client is to be answered. */
export async function hear(listener: Listener, told: Told): Promise<HookAnswer> {
  const event = READERS[told.client](told.input)
  if (event instanceof Unreadable) return misheard(listener, told, event.why)
  const isEnd = event.happening.kind === 'stopped' || event.happening.kind === 'failed'
  const isReport = event.happening.kind === 'stopped' && event.happening.isReport === true
  if (isEnd && !isReport && told.ordinal === undefined) {
    return misheard(listener, told, `${event.name} has to be a command, or the end of a turn could be lost`)
  }
  const heard = () => heardOf(listener, told, event)
  if (told.role === 'settle') return settleCall(listener, heard(), event)
  if (told.role === 'permit' && event.call !== undefined && told.isReplayed !== true)
    return permit(listener, told, heard(), { ...event, call: event.call }, waiting)
  // As it came: what a client was shown while this waits for the database it had not seen when it said this.
  const said = heard()
  return (await isKnown(listener, told.client, event)) ? NO_ANSWER : record(listener, told, said, event)
}

async function misheard(
  { store, random }: Listener,
  { id, client, input, bytes }: Told,
  why: string,
): Promise<HookAnswer> {
  const beginning = beginningOf(input, LIMITS.misheardBytes)
  const size = bytes ?? Buffer.byteLength(input)
  await store.apply(recordUnreadable, { id: id ?? random.id(), client, why, bytes: size, beginning })
  return NO_ANSWER
}

function heardOf({ lastShown }: Listener, told: Told, { sessionId, transcript, cwd }: HookEvent): Heard {
  const { client, ordinal, tmux, startedFrom, startedBy, codexAround } = told
  const shown = told.shown === undefined ? lastShown?.(sessionId) : told.shown
  return {
    client,
    sessionId,
    ...given({ process: identityOf(told.process), transcript, cwd, ordinal, shown, codexAround }),
    ...given({ above: told.above?.flatMap((each) => identityOf(each) ?? []) }),
    ...(startedFrom === undefined ? {} : { startedFrom: startedFrom as ThreadId }),
    ...(startedBy === undefined ? {} : { startedBy: startedBy as RunId }),
    ...(tmux === undefined ? {} : { wake: { kind: 'tmux', ...tmux } }),
  }
}

async function record(listener: Listener, told: Told, heard: Heard, event: HookEvent): Promise<HookAnswer> {
  const { store } = listener
  const { happening, turn } = event
  switch (happening.kind) {
    case 'started':
      return started(listener, heard, happening.source)
    case 'begun':
      await store.apply(turnBegun, heard, turn)
      return NO_ANSWER
    case 'active':
      await store.apply(sessionActive, heard, happening.inTurn)
      return NO_ANSWER
    case 'stopped':
      return stopped(listener, heard, { ...event, happening }, told.isReplayed === true)
    case 'failed':
      await store.apply(
        turnFailed,
        heard,
        { ordinal: told.ordinal ?? 0, ...given({ turn }) },
        happening.error,
        happening.code,
      )
      return NO_ANSWER
    case 'waiting':
      await waiting(listener, heard, happening.what)
      return NO_ANSWER
    case 'ended':
      await store.apply(sessionEnded, heard, happening.why)
      return NO_ANSWER
    case 'nothing':
      return NO_ANSWER
  }
}

async function started(
  { store }: Listener,
  heard: Heard,
  source: Extract<Happening, { kind: 'started' }>['source'],
): Promise<HookAnswer> {
  const { threadId } = await store.apply(sessionStarted, heard, source)
  const messages = await store.read(pendingMessages, threadId, LIMITS.page)
  return { output: announce(heard.client, messages.length), threadId }
}

/** One more tool of a turn that is known to be under way changes nothing: it is not written down. */
async function isKnown({ store }: Listener, client: Client, { happening, sessionId }: HookEvent): Promise<boolean> {
  if (happening.kind !== 'active') return false
  const known = await store.read(findSession, sessionKey(client, sessionId))
  return known?.deliveryId === null && (known.state === 'busy' || !happening.inTurn)
}

async function stopped(
  { store, random }: Listener,
  heard: Heard,
  { turn, happening }: HookEvent & { readonly happening: Extract<Happening, { kind: 'stopped' }> },
  isReplayed: boolean,
): Promise<HookAnswer> {
  const { isActive, isPaused, lastMessage, isReport = false } = happening
  const usage = (await isReadElsewhere(store, heard)) ? undefined : await usageOfTurn(heard, turn)
  const stop = {
    ordinal: isReport ? 0 : (heard.ordinal ?? 0),
    isPaused,
    isReport,
    isUnanswered: isReport || isReplayed,
    deliveryId: `dlv_${random.id()}`,
    ...given({ turn, isActive, lastMessage, usage }),
  }
  const answer = await store.apply(turnStopped, heard, stop)
  if (answer.kind === 'stop') return NO_ANSWER
  return { output: goOn(answer.delivery), deliveryId: answer.delivery.id }
}

/** The turn is that of an agent of ours whose output is read: what it took is counted there, and not twice. */
async function isReadElsewhere(store: Store, { startedBy, client, sessionId }: Heard): Promise<boolean> {
  const request = startedBy === undefined ? undefined : (await store.read(findRun, startedBy))?.request
  if (request?.kind !== 'command' || request.client?.name !== client) return false
  return request.client.session === sessionId
}

/** Its name is that of the event, so that one that is told again is the same. */
async function waiting({ store, random }: Listener, heard: Heard, what: string): Promise<void> {
  const key = `waiting:${sessionKey(heard.client, heard.sessionId)}/${heard.ordinal ?? random.id()}`
  await store.apply(sessionWaiting, heard, what, key, `msg_${digestOf(key).slice(0, 32)}` as MessageId)
}
