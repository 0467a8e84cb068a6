import { resolve } from 'node:path'
import { formatDuration } from '../base/duration.ts'
import type { Place } from './identity.ts'

/** One command of one attempt: what is asked for, and what is left on disk when it is over. */
export interface CommandSpec {
  readonly argv: readonly [string, ...string[]]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Random hexadecimal digits: every process of the command carries them in its environment. */
  readonly mark: string
  /** Of the claim that it is started for, if there is one; who takes it over comes with a higher one. */
  readonly fence?: number
  readonly timeoutMs: number | null
  /** Between asking the processes to end (TERM) and ending them (KILL). */
  readonly graceMs?: number
  /** The same when the worker has lost its claim: all must be dead before its lease ends. */
  readonly lostGraceMs?: number
  readonly containment?: ContainmentChoice
  readonly output?: Partial<OutputLimits>
  /** It is of use to its worker alone and ends with it, however that dies. The worker must read its standard output. */
  readonly leash?: boolean
}

export interface OutputLimits {
  /** Kept from the start of each stream and recorded with the end. */
  readonly headBytes: number
  /** Kept from the end of each stream. */
  readonly tailBytes: number
  /** Written to disk of each stream, from its start. */
  readonly spillBytes: number
}

export type ContainmentKind = 'cgroup' | 'pid-namespace' | 'mark' | 'group'
export type ContainmentChoice = 'auto' | ContainmentKind

/** How the processes of a command are held together, and why not better. */
export interface Containment {
  readonly kind: ContainmentKind
  readonly detail: string
}

export type StopReason = 'timeout' | 'cancelled' | 'lease-lost'
export type StreamName = 'stdout' | 'stderr'

export interface OutputText {
  readonly head: string
  /** What follows the head without a gap, unless `truncated`. */
  readonly tail: string
  readonly totalBytes: number
  readonly spilledBytes: number
  /** The middle is not in head and tail; it may be in the spill file. */
  readonly truncated: boolean
  /** Why the spill file ends early, as an error code. */
  readonly spillError?: string
}

export interface CommandEnd {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly spawnError?: { readonly code: string; readonly message: string }
  readonly stopped?: { readonly why: StopReason; readonly afterMs: number }
  readonly startedAt: number
  readonly endedAt: number
  readonly stdout: OutputText
  readonly stderr: OutputText
  /** Processes that were still there when the command was over, or that ignored being asked to end. */
  readonly survivorsKilled: number
  readonly containment: Containment
}

export type StoredSpec = Required<Omit<CommandSpec, 'output'>> & {
  readonly output: OutputLimits
  /** Which streams somebody reads live, on descriptors 3 and 4. */
  readonly live: Readonly<Record<StreamName, boolean>>
  /** Whether what it printed is sealed on disk. */
  readonly sealed: boolean
  /** Where the supervisor will be: where its worker is. */
  readonly place: Place
}

export const DEFAULT_GRACE_MS = 5_000
export const DEFAULT_LOST_GRACE_MS = 1_000
// Head and tail go into one database row with the end: 64 KiB each is what a model can still read.
export const DEFAULT_OUTPUT: OutputLimits = { headBytes: 64 * 1024, tailBytes: 64 * 1024, spillBytes: 64 * 1024 * 1024 }

export function completeSpec(
  spec: CommandSpec,
  { live, place, sealed }: Pick<StoredSpec, 'live' | 'place' | 'sealed'>,
): StoredSpec {
  return {
    argv: spec.argv,
    cwd: resolve(spec.cwd),
    env: spec.env,
    mark: spec.mark,
    fence: spec.fence ?? 0,
    timeoutMs: spec.timeoutMs,
    graceMs: spec.graceMs ?? DEFAULT_GRACE_MS,
    lostGraceMs: spec.lostGraceMs ?? DEFAULT_LOST_GRACE_MS,
    containment: spec.containment ?? 'auto',
    output: { ...DEFAULT_OUTPUT, ...spec.output },
    leash: spec.leash ?? false,
    live,
    place,
    sealed,
  }
}

/** The sentence that says how a command ended. A stop of ours is never described by the signal it used. */
export function describeEnd(end: Pick<CommandEnd, 'exitCode' | 'signal' | 'spawnError' | 'stopped'>): string {
  if (end.stopped !== undefined) return describeStop(end.stopped)
  if (end.spawnError !== undefined) return end.spawnError.message
  return end.signal === null ? `exited with status ${end.exitCode}` : `killed by ${end.signal}`
}

function describeStop({ why, afterMs }: { readonly why: StopReason; readonly afterMs: number }): string {
  if (why === 'timeout') return `timed out after ${formatDuration(afterMs)}`
  return why === 'cancelled' ? 'cancelled' : 'stopped because its worker lost the claim'
}
