import type { Clock } from '../base/clock.ts'
import { LIMITS } from '../base/limits.ts'
import { secretsAt } from '../secrets/folders.ts'
import type { Worker } from './worker.ts'

/** Looks after what is lost or due, as often as leases are renewed. The timer also keeps a process alive that has nothing to do. */
export function tendRegularly(
  { clock, leaseMs, home }: { readonly clock: Clock; readonly leaseMs: number; readonly home?: string },
  worker: Worker,
): () => void {
  let stopped = false
  let cancel = () => {}
  const again = () => {
    if (stopped) return
    // One that was put into its file meanwhile must be hidden before it is met.
    if (home !== undefined) secretsAt(home)?.known.refresh()
    cancel = clock.after(leaseMs / LIMITS.renewalsPerLease, () => void worker.tend().then(again), { ref: true })
  }
  again()
  return () => {
    stopped = true
    cancel()
  }
}
