import { forgetMarks } from '../actions/window.ts'
import { describeError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { forgetNotices } from '../notify/notice.ts'
import { judgeProcess } from '../processes/identity.ts'
import type { ProcessIdentity } from '../processes/identity.ts'
import { sessionLost } from '../sessions/lost.ts'
import { liveSessions } from '../sessions/session.ts'
import { forgetOccurrences } from '../schedule/retention.ts'
import { settleLeft } from '../schedule/run-ended.ts'
import type { Store } from '../store/store.ts'
import { buryUntaken, tryHeld } from '../threads/dead-letter.ts'
import { giveBackDelivery, openDeliveries } from '../threads/delivery.ts'
import { forgetMessages } from '../threads/retention.ts'
import type { ClockTrust } from './history/clock-trust.ts'

/** One of several things to look after. */
export interface Job {
  readonly what: string
  readonly work: () => Promise<unknown>
}

/** Does all of them, whatever becomes of each: what failed is tried again the next time, and said once for each cause. */
export async function doEach(jobs: readonly Job[], warn: (message: string) => void): Promise<void> {
  const failed = new Map<string, string[]>()
  for (const { what, work } of jobs) {
    try {
      await work()
    } catch (error) {
      // The process is on its way out: whoever comes next does it, and there is nothing to tell.
      if ((error as { code?: string }).code === 'store/closed') continue
      const why = describeError(error)
      failed.set(why, [...(failed.get(why) ?? []), what])
    }
  }
  for (const [why, what] of failed) warn(`${what.join(', ')} will be tried again: ${why}`)
}

interface Tended {
  readonly store: Store
  readonly warn: (message: string) => void
}

/** What messages need in the background. */
export const inboxJobs = ({ store, warn }: Tended): Job[] => [
  { what: 'deliveries whose taker is gone', work: () => giveBackLost(store) },
  { what: 'sessions whose process is gone', work: () => endLostSessions(store) },
  { what: 'messages to threads that are not known yet', work: () => tryHeldMessages(store, warn) },
  { what: 'firings whose run has ended', work: () => store.apply(settleLeft, LIMITS.page) },
  { what: 'messages that nobody will take', work: () => store.apply(buryUntaken, LIMITS.page) },
]

interface Old extends Pick<Tended, 'store'> {
  readonly trust: Pick<ClockTrust, 'holds'>
  readonly occurrencesKeptMs?: number | undefined
}

/** What is forgotten at each tick, a bounded number at a time. */
export const oldJobs = ({ store, trust, occurrencesKeptMs }: Old): Job[] => {
  let asked: Promise<boolean> | undefined
  const ifTrusted = (what: string, work: () => Promise<unknown>): Job => ({
    what,
    work: async () => (await (asked ??= trust.holds())) && work(),
  })
  return [
    ifTrusted('old messages', () => store.apply(forgetMessages, LIMITS.page)),
    ifTrusted('old notices', () => store.apply(forgetNotices, LIMITS.page)),
    ifTrusted('calls that may be made again', () => store.apply(forgetMarks, LIMITS.page)),
    ifTrusted('old occurrences', () => store.apply(forgetOccurrences, LIMITS.page, occurrencesKeptMs)),
  ]
}

/**
 * What was taken and not acknowledged waits again: at once if its taker is a process that has died, after a while if it was
 * taken by hand. What a session took is its own until that is known to have ended.
 */
export async function giveBackLost(store: Store): Promise<void> {
  for (const { deliveryId, leasedBy, isOld } of await store.read(openDeliveries, LIMITS.lookedAfter)) {
    if (leasedBy.kind === 'session') continue
    const taker = leasedBy.kind === 'hand' ? undefined : judgeProcess(leasedBy.identity as ProcessIdentity)
    // Nobody prints for that long on a machine that cannot be reached.
    if (taker === 'dead' || (taker !== 'alive' && isOld === 1)) await store.apply(giveBackDelivery, deliveryId)
  }
}

async function endLostSessions(store: Store): Promise<void> {
  for (const { id, process } of await store.read(liveSessions, LIMITS.lookedAfter)) {
    if (process !== null && judgeProcess(process as ProcessIdentity) === 'dead')
      await store.apply(sessionLost, id, process)
  }
}

/** That a child finished and there is nobody to tell is for a person to look at. */
async function tryHeldMessages(store: Store, warn: Tended['warn']): Promise<void> {
  for (const { id, fromThread, threadId, reason } of await store.apply(tryHeld, LIMITS.page)) {
    if (reason !== 'orphan') continue
    warn(`${fromThread ?? 'somebody'} ended, and its parent ${threadId} never came: \`holdfast inbox dead show ${id}\``)
  }
}
