import type { Writable } from 'node:stream'

import { askToStop } from './attempt-folder.ts'
import type { OutputText, CommandEnd, StopReason, StreamName } from './command.ts'
import type { ProcessIdentity } from './identity.ts'

/** What became of a command, as far as it can be known. */
export type Outcome =
  | { readonly kind: 'ended'; readonly end: CommandEnd }
  /** Proved: it was not started and never will be. */
  | { readonly kind: 'never-started' }
  /** It may have run, nobody knows how far; all of its processes are dead, and this is what it had printed. */
  | { readonly kind: 'cut-off'; readonly output: Readonly<Record<StreamName, OutputText>> }
  /** Its supervisor lives, or lived, on another host or in another PID namespace. */
  | { readonly kind: 'unreachable'; readonly owner: ProcessIdentity }

/** A command that a supervisor is looking after. */
export interface Supervised {
  /** The supervisor. */
  readonly identity: ProcessIdentity
  /** Asks once; the end follows by itself, through `ended`, when every process is dead. After a takeover only the taker is heard. */
  stop(why: Exclude<StopReason, 'timeout'>): void
  readonly ended: Promise<Outcome>
  /** What it reads, for one that was started with a pipe. */
  readonly input?: Writable
}

/**
 * A cancel is final for its run, so it counts whoever passes it on. That a lease was lost is a matter of one worker: it is written down under
 * its fence, and the signal says only that there is something to look at. So a worker that comes back late stops nothing that another
 * has taken over, even if its signal was under way already.
 */
export function tellToStop(
  { folder, fence }: { readonly folder: string; readonly fence: number | undefined },
  why: Exclude<StopReason, 'timeout'>,
  send: (signal: NodeJS.Signals) => void,
): void {
  if (why === 'lease-lost' && fence !== undefined) askToStop(folder, fence)
  send(why === 'cancelled' ? 'SIGTERM' : 'SIGUSR2')
  // One that is paused would hear of it only when somebody lets it go on.
  send('SIGCONT')
}
