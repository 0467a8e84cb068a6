import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { describeError, HoldfastError } from '../base/errors.ts'
import { errorCode } from '../base/files.ts'
import { harmlessVariables } from '../base/variables.ts'
import type { ToolContext, ToolOutcome } from '../loop/ports.ts'
import { describeEnd } from '../processes/command.ts'
import type { CommandEnd, CommandSpec } from '../processes/command.ts'
import { startCommand } from '../processes/start-command.ts'
import type { StartOptions } from '../processes/start-command.ts'
import type { Outcome, Supervised } from '../processes/supervised.ts'
import { takeOver } from '../processes/take-over.ts'
import { outcomeOfCutOff } from './command-outcome.ts'

/*
 * A tool's command lives in a folder that belongs to one try of one action: whoever takes over finds out there what
 * became of it, and fences it if nothing did. So a second try needs a second folder and a second mark, while its key
 * stays the same.
 */

export type Argv = readonly [string, ...string[]]

/** What the commands of tools are given by the process that has them. */
export interface CommandPlace {
  /** The working folder. */
  readonly cwd: string
  /** What a person who approves knows it by; the path of a run's tree is another one whenever the tree is made anew. */
  readonly known?: string
  /** All of the process' own variables; only the harmless ones are passed on. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly codeCache?: string
  /** From TERM to KILL. */
  readonly graceMs?: number
}

/** No secrets, which a model could print. */
function commandEnvironment(env: CommandPlace['env'], context: ToolContext): Record<string, string> {
  return {
    ...harmlessVariables(env),
    HOLDFAST_ACTION_KEY: context.key,
    HOLDFAST_THREAD: context.threadId,
    HOLDFAST_RUN: context.runId,
  }
}

/** Which command: in a folder of its own, with a mark of its own. */
export interface Start {
  readonly folder: string
  readonly mark: string
  readonly argv: Argv
  readonly timeoutMs: number
  /** Relative to the place's own. */
  readonly cwd?: string
  readonly stdin?: StartOptions['stdin']
}

/** Runs it to its end. The signal stops it, and it is over only when all of its processes are dead. */
export async function runCommand(
  place: CommandPlace,
  context: ToolContext,
  start: Start,
  signal = context.signal,
): Promise<Outcome> {
  if (signal.aborted) return { kind: 'never-started' }
  const { mark, argv, timeoutMs } = start
  const cwd = resolve(place.cwd, start.cwd ?? '.')
  const grace = place.graceMs === undefined ? {} : { graceMs: place.graceMs }
  const env = commandEnvironment(place.env, context)
  const spec: CommandSpec = { argv, cwd, mark, fence: context.fence, timeoutMs, env, ...grace }
  const cache = place.codeCache === undefined ? {} : { codeCache: place.codeCache }
  const command = await startCommand(start.folder, spec, { stdin: start.stdin ?? 'none', ...cache }).catch(
    describeError,
  )
  return typeof command === 'string' ? couldNotStart(start, context, command, signal) : untilEnded(command, signal)
}

/** Starting failed on our side. The fence makes sure that it stays so, and finds out if it did start after all. */
async function couldNotStart(
  { folder, mark }: Start,
  { fence }: ToolContext,
  why: string,
  signal: AbortSignal,
): Promise<Outcome> {
  const remains = await takeOver(folder, 'its own tool', { mark, fence })
  if (remains.kind === 'alive') return untilEnded(remains.command, signal)
  if (remains.kind !== 'never-started') return remains
  return cannotStart(why)
}

/** For what fails before there is anything that could run. */
export function cannotStart(cause: unknown): never {
  throw new HoldfastError('tools/cannot-start', `it could not be started: ${describeError(cause)}`, { cause })
}

/** What became of a command whose worker died; waits for what still runs, and stops it when the signal says so. */
export async function recoverCommand(context: ToolContext, folder: string, mark: string): Promise<Outcome> {
  const remains = await takeOver(folder, context.key, { mark, fence: context.fence })
  return remains.kind === 'alive' ? untilEnded(remains.command, context.signal) : remains
}

async function untilEnded(command: Supervised, signal: AbortSignal): Promise<Outcome> {
  const stop = () => command.stop(signal.reason === 'lease-lost' ? 'lease-lost' : 'cancelled')
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await command.ended
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

export type Judge = (end: CommandEnd, why: string) => ToolOutcome

/** `never-started` is told apart: after a crash the action can be tried again, in a call it has failed. */
export function judgeOutcome(
  outcome: Outcome,
  signal: AbortSignal,
  judge: Judge,
): ToolOutcome | { readonly kind: 'never-started' } {
  if (outcome.kind === 'never-started') return outcome
  if (outcome.kind === 'cut-off') return outcomeOfCutOff(outcome.output)
  if (outcome.kind === 'ended') return judge(outcome.end, whyItEnded(outcome.end, signal))
  // Not a doubt: it may still be running there, and a doubt that is settled by a probe would be settled too early.
  throw new HoldfastError('tools/unreachable', `its supervisor, on ${outcome.owner.host}, cannot be seen from here`, {
    remedy: 'let a worker on that host go on with it',
    retry: { afterMs: 5_000 },
  })
}

/** In a call, as opposed to after a crash: what was not started has failed. Other errors say nothing about the action. */
export async function asPerformed(
  signal: AbortSignal,
  work: () => Promise<ToolOutcome | { readonly kind: 'never-started' }>,
): Promise<ToolOutcome> {
  try {
    const outcome = await work()
    if (outcome.kind !== 'never-started') return outcome
    return {
      kind: 'failed',
      error: signal.aborted ? `${reasonOf(signal)} before it was started` : 'it was not started',
      unbegun: true,
    }
  } catch (error) {
    if (errorCode(error) !== 'tools/cannot-start') throw error
    return { kind: 'failed', error: describeError(error), unbegun: true }
  }
}

function whyItEnded(end: CommandEnd, signal: AbortSignal): string {
  return end.stopped?.why === 'cancelled' && signal.aborted ? reasonOf(signal) : describeEnd(end)
}

/** Who aborts with words of his own ("timed out after 30m") is quoted; a bare abort is a cancel. */
export function reasonOf({ reason }: AbortSignal): string {
  if (typeof reason === 'string' && reason !== '') return reason
  return reason instanceof Error && reason.name !== 'AbortError' && reason.message !== '' ? reason.message : 'cancelled'
}

/**
 * The supervisor outlives its worker, so it must know the turn's deadline too. In whole seconds: the milliseconds that
 * passed on the way here would otherwise be in "timed out after 10s".
 */
export function timeLeft(timeoutMs: number, { deadline, clock }: ToolContext): number {
  const left = Math.ceil((deadline - clock.now()) / 1_000) * 1_000
  return Math.min(timeoutMs, Math.max(left, 1_000))
}

/** A command beside the main one (a probe, one of several) is swept by its own mark, which can be found again. */
export const derivedMark = (mark: string, name: string): string =>
  createHash('sha256').update(`${mark}/${name}`).digest('hex').slice(0, 32)
