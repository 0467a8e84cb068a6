import { isDeepStrictEqual } from 'node:util'

import type { Transition } from '../store/transition.ts'
import { sessionEnded } from './events.ts'
import { holdSession } from './session.ts'
import type { Session } from './session.ts'

/** Its process is dead and did not say goodbye. Unless the session has gone on in another process since that was seen. */
export function* sessionLost(id: string, process: unknown): Transition<Session | undefined> {
  const session = yield* holdSession(id)
  if (session === undefined || session.endedAt !== null || !isDeepStrictEqual(session.process, process))
    return undefined
  return yield* sessionEnded({ client: session.client, sessionId: session.sessionId }, 'its process is gone')
}
