import type { Clock } from '../base/clock.ts'
import { sweepNotes } from './notes.ts'
import { replaySpool } from './spool.ts'
import type { Spooler } from './spool.ts'

/** What a daemon does for hooks once a tick: what they left while nobody could be told, and what they left behind. */
export function hookTender(spooler: Spooler & { readonly clock: Clock }): () => Promise<void> {
  let swept = false
  return async () => {
    await replaySpool(spooler)
    if (swept) return
    swept = true
    await sweepNotes(spooler.home, spooler.clock)
  }
}
