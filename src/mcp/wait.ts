import { LIMITS } from '../base/limits.ts'
import { SERVER_LIMITS } from './limits.ts'
import type { Call, Desk, Waited } from './tool.ts'

export const WAIT_SECONDS = {
  type: 'integer',
  minimum: 0,
  maximum: SERVER_LIMITS.waitMostSeconds,
  description: `How long to wait before "not yet" is the answer; ${SERVER_LIMITS.waitSeconds} if it is not said. Longer only helps a client that comes back more than ten times; any other asks again after "not yet".`,
}

export interface Waiting<T> {
  readonly tool: string
  readonly seconds: number | undefined
  /** The name of what is waited for, the first time. */
  readonly id: string
  readonly look: (id: string) => Promise<T | undefined>
}

/** `found`: it has come. `later`: the client is to come back with this. `not-yet`: its time is over. */
export type Outcome<T> =
  | { readonly kind: 'found'; readonly value: T }
  | { readonly kind: 'later'; readonly waited: Waited }
  | { readonly kind: 'not-yet' }

/**
 * One round of a wait. Nothing of it is kept here: who comes back, to this process or to another one, brings along what it
 * waits for. So a server that dies between two rounds loses nothing.
 */
export async function waitRound<T>(desk: Desk, call: Call, waiting: Waiting<T>): Promise<Outcome<T>> {
  const { clock } = desk
  const { seconds = SERVER_LIMITS.waitSeconds, tool } = waiting
  const before = mine(call, tool)
  const begun = { tool, thread: call.caller.thread.id, id: waiting.id, until: clock.now() + seconds * 1_000 }
  const waited = before ?? begun
  const left = waited.until - clock.now()
  const ofRounds = before === undefined ? SERVER_LIMITS.firstRoundMs : roundOf(seconds)
  const roundMs = call.comesBack ? ofRounds : SERVER_LIMITS.heldMs
  const value = await lookFor(desk, Math.min(left, roundMs), call.signal, () => waiting.look(waited.id))
  if (value !== undefined) return { kind: 'found', value }
  return call.comesBack && clock.now() < waited.until ? { kind: 'later', waited } : { kind: 'not-yet' }
}

const roundOf = (seconds: number) =>
  Math.min(SERVER_LIMITS.roundMs, Math.max(SERVER_LIMITS.roundLeastMs, (seconds * 1_000) / SERVER_LIMITS.rounds))

/** What was signed for another tool or another thread is no wait of this call. */
function mine({ waited, caller }: Call, tool: string): Waited | undefined {
  return waited?.tool === tool && waited.thread === caller.thread.id ? waited : undefined
}

/** Looks at once, and after every commit, for so long or until nobody waits for it any more. */
async function lookFor<T>(
  { store, clock }: Desk,
  atMostMs: number,
  signal: AbortSignal,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const deadline = clock.monotonicMs() + atMostMs
  let next = Promise.withResolvers<void>()
  const ring = () => next.resolve()
  const stopListening = store.onChange(ring)
  signal.addEventListener('abort', ring)
  try {
    for (;;) {
      // Before the look: a commit in between is not missed.
      next = Promise.withResolvers<void>()
      const found = await look()
      const left = deadline - clock.monotonicMs()
      if (found !== undefined || left <= 0 || signal.aborted) return found
      // That something was committed is only a hint, which may come late: so it is looked at again after a while.
      const disarm = clock.after(Math.min(left, LIMITS.changePollMs * 2), ring, { ref: true })
      await next.promise
      disarm()
    }
  } finally {
    signal.removeEventListener('abort', ring)
    stopListening()
  }
}
