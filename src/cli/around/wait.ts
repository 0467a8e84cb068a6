import type { RunId } from '../../base/ids.ts'
import type { Clock } from '../../base/clock.ts'
import { LIMITS } from '../../base/limits.ts'
import { findRun, isTerminal } from '../../runs/run.ts'
import type { Run } from '../../runs/run.ts'
import type { Runtime } from '../../runtime.ts'

/** Waits for the run's end by listening for commits, at most `atMostMs`; returns the run as it is then. */
export async function untilEnded(
  runtime: Runtime,
  id: RunId,
  atMostMs = Number.POSITIVE_INFINITY,
): Promise<Run | undefined> {
  const deadline = runtime.clock.monotonicMs() + atMostMs
  for (;;) {
    const changed = nextChange(
      { clock: runtime.clock, local: { runtime } },
      Math.min(deadline - runtime.clock.monotonicMs(), LIMITS.changePollMs * 2),
    )
    const run = await runtime.store.read(findRun, id)
    if (run === undefined || isTerminal(run.state) || runtime.clock.monotonicMs() >= deadline) {
      changed.forget()
      return run
    }
    await changed.heard
  }
}

/** What can say that something changed; a daemon elsewhere is asked again after a while. */
interface Place {
  readonly clock: Clock
  readonly local?: { readonly runtime: Pick<Runtime, 'store'> } | undefined
}

/** Subscribed before the look at the database, so that a commit in between is not missed. */
export function nextChange(
  { clock, local }: Place,
  atMostMs: number,
): { readonly heard: Promise<void>; forget(): void } {
  let forget = () => {}
  const heard = new Promise<void>((resolve) => {
    const longest = local === undefined ? Math.min(atMostMs, LIMITS.changePollMs) : atMostMs
    const cancelTimer = clock.after(Math.max(0, longest), () => forget(), { ref: true })
    const stopListening = local?.runtime.store.onChange(() => forget()) ?? (() => {})
    forget = () => {
      cancelTimer()
      stopListening()
      resolve()
    }
  })
  return { heard, forget: () => forget() }
}
