import type { Clock } from '../../base/clock.ts'
import { newestEventAt } from '../../events/event.ts'
import { storeTime } from '../../store/clock.ts'
import type { Store } from '../../store/store.ts'
import type { Finding } from './examine.ts'

/** Less is how well machines agree without much care; leases, which last 15 s, go by the database's clock alone. */
const TOLERATED_MS = 2_000

/** Whether this machine, the database and what is recorded agree about what time it is. */
export async function examineClock(store: Store, clock: Clock): Promise<Finding> {
  const before = clock.now()
  const { at } = await store.read(storeTime)
  const after = clock.now()
  // The answer was given somewhere between the two looks.
  const skew = at < before ? at - before : Math.max(0, at - after)
  if (Math.abs(skew) > TOLERATED_MS) {
    return {
      check: 'clock',
      status: 'warn',
      detail: `the clock of the database is ${seconds(skew)} ${skew > 0 ? 'ahead of' : 'behind'} the one of this machine`,
      remedy:
        'let both be set by NTP (`timedatectl set-ntp true`); until then what is due at an instant comes by the clock of the database, and times that are shown are off by that much',
    }
  }
  const newest = (await store.read(newestEventAt))?.at ?? 0
  if (newest - after <= TOLERATED_MS)
    return { check: 'clock', status: 'ok', detail: `agrees with the ${store.engine} store` }
  return {
    check: 'clock',
    status: 'warn',
    detail: `the newest event is ${seconds(newest - after)} in the future: the clock was wrong then, or is wrong now`,
    remedy: 'set the clock (`timedatectl set-ntp true`); what is due waits until the clock gets there',
  }
}

/** Without a store there is nothing to compare it with but the watch of whoever reads this. */
export const examineClockAlone = (clock: Clock): Finding => ({
  check: 'clock',
  status: 'ok',
  detail: `says ${new Date(clock.now()).toISOString()}; it was not compared, because the store is not open`,
})

const seconds = (ms: number) => `${(Math.abs(ms) / 1_000).toFixed(1)} s`
