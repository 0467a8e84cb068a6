import type { Writable } from 'node:stream'

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
  /** Asks once; the end follows by itself, through `ended`, when every process is dead. */
  stop(why: Exclude<StopReason, 'timeout'>): void
  readonly ended: Promise<Outcome>
  /** What it reads, for one that was started with a pipe. */
  readonly input?: Writable
}

export const STOP_SIGNALS = { cancelled: 'SIGTERM', 'lease-lost': 'SIGUSR2' } as const
