import { findApproval } from '../actions/approval.ts'
import type { Clock } from '../base/clock.ts'
import type { ActionId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { leaveWithdrawn } from '../sessions/permission.ts'
import { findSession } from '../sessions/session.ts'
import { claimWake } from '../sessions/wake.ts'
import type { Store } from '../store/store.ts'
import { pendingMessages } from '../threads/message.ts'

export interface Waiting {
  readonly store: Store
  readonly clock: Clock
}

/**
 * Looks until there is an answer: after every commit, by whatever process, and now and then in case one was not heard. What
 * comes while it looks is looked at once more.
 */
async function lookUntil<T>(
  { store, clock }: Waiting,
  look: () => Promise<T | undefined>,
  recheckMs: number,
): Promise<T> {
  let poke = () => {}
  let isStale = true
  const stop = store.onChange(() => {
    isStale = true
    poke()
  })
  try {
    for (;;) {
      isStale = false
      const found = await look()
      if (found !== undefined) return found
      if (isStale) continue
      await new Promise<void>((resolve) => {
        const cancel = clock.after(recheckMs, resolve, { ref: true })
        poke = () => {
          cancel()
          resolve()
        }
      })
    }
  } finally {
    stop()
  }
}

/** Until a person has decided, or the client's patience is over; then nobody may answer it any more. */
export async function untilDecided(
  waiting: Waiting,
  approvalId: string,
  actionId: ActionId,
): Promise<'decided' | 'over'> {
  const { store, clock } = waiting
  const end = clock.monotonicMs() + LIMITS.permissionHeldMs
  return lookUntil(
    waiting,
    async () => {
      const approval = await store.read(findApproval, approvalId)
      if (approval?.state === 'withdrawn') return 'over'
      if (approval?.state !== 'pending') return 'decided'
      // Decided in this very moment: then that counts.
      if (clock.monotonicMs() >= end) return (await store.apply(leaveWithdrawn, actionId)) ? 'over' : 'decided'
      return undefined
    },
    LIMITS.permissionLookMs,
  )
}

/**
 * Until an idle session has something in its inbox, and this is who wakes it; false: its client or the session has ended. The
 * messages stay where they are: the end of the turn that this begins brings them.
 */
export async function untilWoken(
  waiting: Waiting,
  session: string,
  isClientAlive: () => boolean,
  isOurs: (process: unknown) => boolean,
): Promise<boolean> {
  const { store } = waiting
  return lookUntil(
    waiting,
    async () => {
      if (!isClientAlive()) return false
      const known = await store.read(findSession, session)
      if (known === undefined) return undefined
      // Ended is also what a session that is resumed was, until its start is heard.
      if (known.state === 'ended') return isOurs(known.process) ? false : undefined
      if (known.state !== 'idle' || known.deliveryId !== null) return undefined
      if ((await store.read(pendingMessages, known.threadId, 1)).length === 0) return undefined
      return (await store.apply(claimWake, session)) === undefined ? undefined : true
    },
    LIMITS.waiterLookMs,
  )
}
