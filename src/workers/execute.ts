import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { sleep } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import { ensureFolder } from '../base/files.ts'
import type { AttemptId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { removeRemains } from '../processes/attempt-folder.ts'
import type { CommandEnd } from '../processes/command.ts'
import { writeInputFile } from '../processes/input-file.ts'
import { startCommand } from '../processes/start-command.ts'
import type { StartOptions } from '../processes/start-command.ts'
import type { Outcome as CommandOutcome, Supervised } from '../processes/supervised.ts'
import { takeBack, takeOver } from '../processes/take-over.ts'
import type { Remains } from '../processes/take-over.ts'
import { sweepByMark } from '../processes/trail.ts'
import { recordStarting } from '../runs/attempt.ts'
import type { AttemptRef } from '../runs/attempt.ts'
import type { Claim } from '../runs/claim.ts'
import { finishRun, keepLateResult } from '../runs/finish.ts'
import type { Finish, Outcome } from '../runs/finish.ts'
import { requeueRun } from '../runs/recover.ts'
import { isTerminal } from '../runs/run.ts'
import type { Run, RunRequest } from '../runs/run.ts'
import type { Store } from '../store/store.ts'
import type { WorkspaceRequest } from '../workspace/workspace.ts'
import { outcomeOfCutOff, outcomeOfEnd } from './command-outcome.ts'
import type { LiveEvent } from './agents/execute-agent.ts'
import { commandFolder, homePaths, isBarred } from './home.ts'
import { tellIfStopped } from './tell-operator.ts'
import type { RunWorkspaces } from './workspace/workspaces.ts'

/** What is under way and can be told to stop; the end follows by itself. */
export type Stoppable = Pick<Supervised, 'stop'>

/** What carrying out a claim needs. */
export interface Executor {
  readonly store: Store
  readonly clock: Clock
  readonly home: string
  readonly graceMs: number
  readonly leaseMs: number
  /** The terminal and environment of a foreground command; absent for detached ones. */
  readonly foreground?: StartOptions & { readonly env: Readonly<Record<string, string>> }
  /** For a detached command that came without any, as over HTTP: it needs a PATH at least. */
  readonly variables?: Readonly<Record<string, string>>
  /** The command is under way: from now on it can be told to stop. */
  readonly onCommand: (attempt: AttemptId, command: Stoppable) => void
  /** False while the worker's lease is about to end and cannot be renewed: what begins now would have to be stopped at once. */
  readonly mayStart?: () => boolean
  readonly warn: (message: string) => void
  readonly live?: (event: LiveEvent) => void
  /** Where runs get the workspace that they ask for. */
  readonly workspaces?: RunWorkspaces
}

export const refOf = ({ run, attempt }: Claim): AttemptRef => ({ id: attempt.id, runId: run.id, fence: run.fence })

/**
 * Carries out a run that was just claimed:
 *
 *   intent in the database ─▶ supervisor, intent on its disk ─▶ command ─▶ end on disk ─▶ finished in the database
 *
 * Whoever dies between two of these, the next worker finds out from what is written which of them was reached.
 */
export async function executeClaim(executor: Executor, claimed: Claim): Promise<void> {
  const place = await placeFor(executor, claimed, claimed.run.request.workspace)
  if (place === undefined) return
  const { claim, ends } = place
  if (ends !== undefined) return void (await finishClaim(executor, claim, ends))
  const ref = refOf(claim)
  const folder = commandFolder(executor.home, claim.attempt.mark)
  // Before the intent: from then on a folder that is not there was removed, and proves nothing.
  try {
    await ensureFolder(folder)
  } catch (error) {
    return void (await finishClaim(executor, claim, { state: 'failed', code: 'spawn', error: describeError(error) }))
  }
  const starting = await untilStored(executor, () => executor.store.apply(recordStarting, ref))
  if (starting === 'superseded') return
  if (starting === 'cancel-requested') return void (await finishClaim(executor, claim, { state: 'cancelled' }))
  // The taker, who may be this worker, proves by the folder that nothing was started, and it begins anew.
  if (executor.mayStart?.() === false) throw new Error('its worker could not renew its lease')
  const outcome = await start(executor, place, folder)
  await settle(executor, claim, folder, outcome)
}

/** Where a run works: as it asked, or in the tree of its workspace. */
export interface Place {
  readonly claim: Claim
  readonly cwd?: string
  /** Its workspace cannot be opened: nothing more is begun, and once what was under way is over the run ends so. */
  readonly ends?: Outcome
}

/** Opens the workspace that the run began with, or else what it asks for, if anything. Undefined: the run is another's. */
export async function placeFor(
  executor: Executor,
  claim: Claim,
  request: WorkspaceRequest | undefined,
): Promise<Place | undefined> {
  const mode = claim.run.workspace ?? request?.mode
  if (mode === undefined) return { claim }
  if (executor.workspaces === undefined) throw new Error('this worker cannot open workspaces')
  const opened = await executor.workspaces.open(executor, claim, request)
  if (opened.kind === 'left') return undefined
  const inside = { ...claim, run: { ...claim.run, workspace: mode } }
  const place = { claim: inside, ...(opened.cwd === undefined ? {} : { cwd: opened.cwd }) }
  return opened.kind === 'ends' ? { ...place, ends: opened.outcome } : place
}

/** Goes on with a run whose worker was lost: by what its command left behind, or is still doing. */
export async function continueTaken(executor: Executor, claim: Claim, folder: string): Promise<void> {
  // Nothing is started before the intent is recorded, and whoever lost the run cannot do that any more: what is on disk can only confirm it.
  const isUnstarted = claim.attempt.startingAt === null && (!existsSync(folder) || isBarred(folder))
  const remains = isUnstarted ? NEVER_STARTED : await remainsOf(executor, claim, folder)
  if (remains.kind !== 'alive') return settle(executor, claim, folder, remains)
  executor.onCommand(claim.attempt.id, remains.command)
  if (claim.run.cancelRequestedAt !== null) remains.command.stop('cancelled')
  await settle(executor, claim, folder, await remains.command.ended)
}

const NEVER_STARTED: CommandOutcome = { kind: 'never-started' }
const NOTHING = { head: '', tail: '', totalBytes: 0, spilledBytes: 0, truncated: false }

/**
 * What is left of a command. Not to be able to look is no answer: it is asked again until there is one. A folder that is
 * gone although the intent was recorded was removed, so nobody can say whether the command ran.
 */
async function remainsOf(executor: Executor, claim: Claim, folder: string, look = takeOver): Promise<Remains> {
  const { mark, workerId, startingAt, fence } = claim.attempt
  if (startingAt !== null && !existsSync(folder)) {
    await untilStored(executor, () => sweepByMark(mark))
    return { kind: 'cut-off', output: { stdout: NOTHING, stderr: NOTHING } }
  }
  return untilStored(executor, () => look(folder, workerId, { mark, fence }))
}

async function start(executor: Executor, { claim, cwd }: Place, folder: string): Promise<CommandOutcome> {
  const { request } = claim.run
  if (request.kind !== 'command') throw new Error(`run ${claim.run.id} is not a command`)
  const { foreground } = executor
  const env = {
    ...variablesFor(foreground?.env ?? request.env ?? executor.variables ?? {}, cwd),
    HOLDFAST_THREAD: claim.run.threadId,
    HOLDFAST_RUN: claim.run.id,
  }
  const spec = {
    argv: request.argv,
    cwd: cwd ?? request.cwd,
    env,
    mark: claim.attempt.mark,
    fence: claim.attempt.fence,
    timeoutMs: request.timeoutMs ?? null,
    graceMs: executor.graceMs,
    lostGraceMs: Math.min(executor.graceMs, executor.leaseMs * LIMITS.lostGraceShare),
  }
  const begin = async () => {
    const stdin = request.input === undefined ? {} : { stdin: { file: await writeInput(folder, request.input) } }
    const onTrouble = (sentence: string) => executor.warn(`run ${claim.run.id}: ${sentence}`)
    const codeCache = homePaths(executor.home).codeCache
    return startCommand(folder, spec, { codeCache, onTrouble, ...foreground, ...stdin })
  }
  let failure: unknown
  const command = await begin().catch((error: unknown) => void (failure = error))
  if (command === undefined) return couldNotStart(executor, claim, folder, failure)
  executor.onCommand(claim.attempt.id, command)
  return await command.ended.catch(() => settledRemains(executor, claim, folder, takeBack))
}

/** Names that tell git, or a shell, of another place than the one it is started in. */
const OTHER_PLACE =
  /^(GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|PREFIX|CEILING_DIRECTORIES)|PWD|OLDPWD)$/

function variablesFor(
  env: Readonly<Record<string, string>>,
  cwd: string | undefined,
): Readonly<Record<string, string>> {
  if (cwd === undefined) return env
  return Object.fromEntries(Object.entries(env).filter(([name]) => !OTHER_PLACE.test(name)))
}

async function writeInput(folder: string, input: string): Promise<string> {
  const file = join(folder, 'input')
  await writeInputFile(file, input)
  return file
}

/** Starting failed on our side (no process, no disk). The folder's fence makes sure that it stays not started. */
async function couldNotStart(
  executor: Executor,
  claim: Claim,
  folder: string,
  error: unknown,
): Promise<CommandOutcome> {
  const outcome = await settledRemains(executor, claim, folder)
  if (outcome.kind !== 'never-started') return outcome
  return { kind: 'ended', end: failedToStart(describeError(error), executor.clock.now()) }
}

async function settledRemains(
  executor: Executor,
  claim: Claim,
  folder: string,
  look = takeOver,
): Promise<CommandOutcome> {
  const remains = await remainsOf(executor, claim, folder, look)
  if (remains.kind !== 'alive') return remains
  executor.onCommand(claim.attempt.id, remains.command)
  return remains.command.ended
}

function failedToStart(message: string, at: number): CommandEnd {
  return {
    exitCode: null,
    signal: null,
    spawnError: { code: 'not-started', message },
    startedAt: at,
    endedAt: at,
    stdout: NOTHING,
    stderr: NOTHING,
    survivorsKilled: 0,
    containment: { kind: 'group', detail: 'not started' },
  }
}

async function settle(executor: Executor, claim: Claim, folder: string, outcome: CommandOutcome): Promise<void> {
  const ref = refOf(claim)
  if (outcome.kind === 'unreachable')
    throw new Error(`its supervisor, on ${outcome.owner.host}, cannot be seen from here`)
  if (outcome.kind === 'never-started') {
    // The folder stays: its fence is what keeps a paused worker, when it wakes, from starting the command after all.
    const answer = await untilStored(executor, () => executor.store.apply(requeueRun, ref))
    if (answer.kind === 'finished' && answer.run.workspace !== null) await executor.workspaces?.settle(answer.run.id)
    return
  }
  const reported = await outcomeFor(executor, claim, folder, outcome)
  if (reported === undefined) return
  const run = await finishClaim(executor, claim, reported)
  if (run !== undefined && isTerminal(run.state) && !hasSpilledMore(outcome)) await removeRemains(folder)
}

/** What its end means for the run. Undefined: it goes back to the queue, to begin anew. */
async function outcomeFor(
  executor: Executor,
  claim: Claim,
  folder: string,
  outcome: Extract<CommandOutcome, { kind: 'ended' | 'cut-off' }>,
): Promise<Outcome | undefined> {
  const { request } = claim.run
  const seen = outcome.kind === 'ended' ? outcomeOfEnd(outcome.end, turnOf(request)) : outcomeOfCutOff(outcome.output)
  if (request.kind !== 'command' || request.client === undefined) return seen
  const ports = { store: executor.store, stored: <T>(write: () => Promise<T>) => untilStored(executor, write) }
  const { concludeTurn, printedIn } = await import('./agents/client-turn.ts')
  const printed = await printedIn(folder, outcome.kind === 'ended' ? outcome.end : outcome.output)
  return concludeTurn(ports, claim, { ...request, client: request.client }, { outcome: seen, printed })
}

function turnOf(request: RunRequest): Parameters<typeof outcomeOfEnd>[1] {
  if (request.kind !== 'command' || request.isTurn !== true) return undefined
  return { setBy: request.client === undefined ? 'command' : 'program' }
}

/** What does not fit into the row is left on disk for whoever wants to read all of it. */
function hasSpilledMore(outcome: CommandOutcome): boolean {
  const output = outcome.kind === 'ended' ? outcome.end : outcome.kind === 'cut-off' ? outcome.output : undefined
  return output !== undefined && (output.stdout.truncated || output.stderr.truncated)
}

/**
 * The end of a run and of what it did to files. Success has to pass the check first; after the end, what was decided with it is
 * carried out. Undefined: another worker has it.
 */
export async function finishClaim(executor: Executor, claim: Claim, outcome: Outcome): Promise<Run | undefined> {
  const { workspaces } = executor
  const { workspace } = claim.run
  if (workspace === null || workspaces === undefined) return finish(executor, refOf(claim), outcome)
  const lands = workspace === 'transaction' && outcome.state === 'succeeded'
  const concluded = lands ? await workspaces.conclude(executor, claim, outcome) : outcome
  if (concluded === undefined) return undefined
  const run = await finish(executor, refOf(claim), concluded)
  if (isTerminal(run.state)) await workspaces.settle(run.id)
  return run
}

export async function finish(executor: Executor, ref: AttemptRef, outcome: Outcome): Promise<Run> {
  const answer = await untilStored(executor, () => executor.store.apply(finishRun, ref, outcome))
  if (answer.kind === 'finished') {
    await tellIfStopped(executor.store, answer.run, executor.warn)
    return answer.run
  }
  return reconcile(executor, ref, outcome, answer)
}

/** Somebody else's end is the true one. Ours is kept beside it, unless the next worker will record it itself. */
async function reconcile(executor: Executor, ref: AttemptRef, outcome: Outcome, { run }: Finish): Promise<Run> {
  if (run.state === 'running' && run.fence === ref.fence) {
    // Nobody asked for a cancel, so somebody ended the supervisor by hand.
    const error = 'its supervisor was told to stop by something other than Holdfast'
    return finish(executor, ref, { ...outcome, state: 'failed', code: 'killed', error })
  }
  if (isTerminal(run.state)) await untilStored(executor, () => executor.store.apply(keepLateResult, ref, outcome))
  return run
}

const FIRST_WAIT_MS = 100
const LONGEST_WAIT_MS = 5_000

/** A finished result is kept until it is recorded: a full or busy store is waited for, not given up on. */
export async function untilStored<T>(
  { clock, warn }: Pick<Executor, 'clock' | 'warn'>,
  write: () => Promise<T>,
): Promise<T> {
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      return await write()
    } catch (error) {
      if ((error as { code?: string }).code === 'store/closed') throw error
      warn(`it will be tried again: ${describeError(error)}`)
      await sleep(clock, wait)
    }
  }
}
