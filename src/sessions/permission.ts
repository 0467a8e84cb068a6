import { askLeave, callEnded, openCallOf, withdrawHeld } from '../actions/observed.ts'
import type { Leave, ObservedCall, ObservedEnd, Permission } from '../actions/observed.ts'
import type { ActionId } from '../base/ids.ts'
import { resumeDecided } from '../runs/park.ts'
import { findThread } from '../threads/thread.ts'
import type { Transition } from '../store/transition.ts'
import { acknowledge, beginTurn, isPast, sessionFor, touch } from './events.ts'
import type { Heard } from './events.ts'
import { findSession, holdSession, sessionKey } from './session.ts'

/** A session asks for leave to use a tool. Its turn is under way, if we have heard of its begin or not. */
export function* leaveAsked(
  heard: Heard,
  turn: string | undefined,
  call: ObservedCall,
  leave: Leave,
): Transition<Permission> {
  const session = yield* sessionFor(heard)
  yield* acknowledge(session, heard, { inTurn: true })
  const runId = session.runId ?? (yield* beginTurn(session, turn))
  const { threadId, client: agent } = session
  const generation = (yield* findThread.single(threadId))?.generation ?? session.generation
  const permission = yield* askLeave({ runId, threadId, generation, agent }, call, leave)
  // Calls of one reply come side by side: one of them is answered, however late it comes.
  const isAsked = permission.kind === 'asked'
  // That it waits is told after this, under the same number.
  if (!isPast(session, heard)) yield* touch(session, isAsked ? { ...heard, ordinal: 0 } : heard, 'busy')
  return permission
}

/** What leave was asked for has been carried out. It says nothing about how things stand: it comes beside other events. */
export function* toolEnded(heard: Heard, end: ObservedEnd): Transition<void> {
  const session = yield* holdSession(sessionKey(heard.client, heard.sessionId))
  if (session?.runId != null) yield* callEnded(session.runId, end)
}

/** Whether that would change anything: most calls were never asked for. */
export function* isAwaited(heard: Heard, end: ObservedEnd): Transition<boolean> {
  const session = yield* findSession.single(sessionKey(heard.client, heard.sessionId))
  return session?.runId != null && (yield* openCallOf.single(session.runId, end)) !== undefined
}

/** The client has waited for an answer as long as it does; from now on somebody answers there. */
export function* leaveWithdrawn(id: ActionId): Transition<boolean> {
  const withdrawn = yield* withdrawHeld(id, 'the client waits no longer; it asks itself')
  if (withdrawn !== undefined) yield* resumeDecided(withdrawn.runId)
  return withdrawn !== undefined
}
