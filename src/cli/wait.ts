import type { RunId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { findRun, isTerminal } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import type { Runtime } from '../runtime.ts'

/** Waits for the run's end by listening for commits, at most `atMostMs`; returns the run as it is then. */
export async function untilEnded(
  runtime: Runtime,
  id: RunId,
  atMostMs = Number.POSITIVE_INFINITY,
): Promise<Run | undefined> {
  const deadline = runtime.clock.monotonicMs() + atMostMs
  for (;;) {
    const changed = nextChange(runtime, Math.min(deadline - runtime.clock.monotonicMs(), LIMITS.changePollMs * 2))
    const run = await runtime.store.read(findRun, id)
    if (run === undefined || isTerminal(run.state) || runtime.clock.monotonicMs() >= deadline) {
      changed.forget()
      return run
    }
    await changed.heard
  }
}

/** Subscribed before the look at the database, so that a commit in between is not missed. */
export function nextChange(
  { store, clock }: Runtime,
  atMostMs: number,
): { readonly heard: Promise<void>; forget(): void } {
  let forget = () => {}
  const heard = new Promise<void>((resolve) => {
    const cancelTimer = clock.after(Math.max(0, atMostMs), () => forget(), { ref: true })
    const stopListening = store.onChange(() => forget())
    forget = () => {
      cancelTimer()
      stopListening()
      resolve()
    }
  })
  return { heard, forget: () => forget() }
}
