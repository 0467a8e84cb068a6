import type { Clock } from '../base/clock.ts'
import { LIMITS } from '../base/limits.ts'
import { deliveryUnshown } from '../sessions/events.ts'
import { findSession } from '../sessions/session.ts'
import { openDeliveries } from '../threads/delivery.ts'
import { lastShown, sweepNotes } from './notes.ts'
import { replaySpool } from './spool.ts'
import type { Spooler } from './spool.ts'

/**
 * What a daemon does for hooks once a tick: what they left while nobody could be told, answers that died on their way, and
 * what they left behind.
 */
export function hookTender(spooler: Spooler & { readonly clock: Clock }): () => Promise<void> {
  let swept = false
  return async () => {
    await replaySpool(spooler)
    await giveBackUnshown(spooler)
    if (swept) return
    swept = true
    await sweepNotes(spooler.home, spooler.clock)
  }
}

/** A hook notes what it has shown. What is not in its note long after it was handed over, nobody saw. */
async function giveBackUnshown({ store, home, clock }: Spooler & { readonly clock: Clock }): Promise<void> {
  for (const { deliveryId, leasedBy, leasedAt } of await store.read(openDeliveries, LIMITS.page)) {
    if (leasedBy.kind !== 'session' || clock.now() - leasedAt < LIMITS.answerOnItsWayMs) continue
    const session = await store.read(findSession, leasedBy.session)
    if (session === undefined) continue
    const shown = lastShown(home, session.client, session.sessionId)
    if (shown !== undefined && shown !== deliveryId) await store.apply(deliveryUnshown, session.id, deliveryId)
  }
}
