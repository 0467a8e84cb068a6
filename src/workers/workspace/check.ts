import { chmod, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { formatDuration } from '../../base/duration.ts'
import { ensureFolder } from '../../base/files.ts'
import { LIMITS } from '../../base/limits.ts'
import { harmlessVariables } from '../../base/variables.ts'
import { samePath } from '../../git/diff.ts'
import type { Git } from '../../git/git.ts'
import { readBlob } from '../../git/repository.ts'
import type { Repository } from '../../git/repository.ts'
import { changedIn, checkOut } from '../../git/tree.ts'
import { readOwner } from '../../processes/attempt-folder.ts'
import { describeEnd } from '../../processes/command.ts'
import type { CommandEnd, OutputText } from '../../processes/command.ts'
import { thisPlace } from '../../processes/identity.ts'
import { detectSeal } from '../../processes/sealed.ts'
import { startCommand } from '../../processes/start-command.ts'
import type { Outcome as CommandOutcome } from '../../processes/supervised.ts'
import { takeOver } from '../../processes/take-over.ts'
import type { CapturedCheck, CheckResult, Workspace } from '../../workspace/workspace.ts'
import { checkPlace, checksOf, extrasOf, removeCheck } from './ports.ts'
import type { Brake, WorkspacePorts } from './ports.ts'

/** What is checked: a commit, and where its objects are if they are not in the repository. */
export interface Checked {
  readonly commit: string
  /** The work on its base: what the run itself did to the check counts, not what others committed. */
  readonly base: string
  readonly work: string
  readonly objects?: string
}

/** One try: its processes' mark, and whether what it is for is still this worker's. */
interface Try {
  readonly mark: string
  readonly isMine: () => Promise<boolean>
}

export const NO_CHECK: CheckResult = { verdict: 'none', exitCode: null, output: '' }

/** Whether the run left the check alone; otherwise it is not even started. */
async function tampered(
  git: Git,
  repo: Repository,
  validator: CapturedCheck,
  { base, work, objects }: Checked,
): Promise<CheckResult | undefined> {
  const { file } = validator
  const range = { from: base, to: work, ...(objects === undefined ? {} : { objects }) }
  if (file === undefined || (await samePath(git, repo, range, file))) return undefined
  return { verdict: 'not_validated', exitCode: null, output: '', why: `the run changed ${file}, which is its check` }
}

/**
 * Runs the check on exactly that commit, in a checkout of its own, under a supervisor that outlives this process; whoever takes
 * over finds its end under the mark, or ends it and runs it again under another. Undefined: nobody can say, it has to be run again.
 */
export async function runCheck(
  ports: WorkspacePorts,
  repo: Repository,
  workspace: Workspace,
  checked: Checked,
  attempt: Try,
  brake: Brake,
): Promise<CheckResult | undefined> {
  const { validator } = workspace
  const { mark } = attempt
  if (validator === null) return NO_CHECK
  const git = { ...ports.git, signal: brake.signal }
  const refused = await tampered(git, repo, validator, checked)
  if (refused !== undefined) return refused
  const outcome =
    (await leftBehind(ports, checkPlace(workspace, mark).command, mark, brake)) ??
    (await start(ports, repo, workspace, checked, attempt, brake))
  await ports.point?.('workspace/check-ended')
  if (outcome.kind !== 'ended' || wasStopped(outcome.end)) return undefined
  const verdict = verdictOf(outcome.end, workspace)
  if (verdict.verdict !== 'passed') return verdict
  // Nobody syncs what it is checked out in: after a power loss its files say nothing of what the check did to them.
  if (!isOfThisBoot(checkPlace(workspace, mark).command)) return undefined
  const touched = await changedIn(git, repo, placeOf(workspace, checked, mark))
  const others = touched.filter((path) => path !== validator.file)
  return others.length === 0 ? verdict : { ...verdict, verdict: 'not_validated', why: wrote(others) }
}

function isOfThisBoot(folder: string): boolean {
  const owner = readOwner(folder)
  return owner?.kind === 'supervisor' && owner.identity.boot === thisPlace().boot
}

/** Only its time is its own. Who else stopped it says nothing of the work: a machine that goes down, or somebody who came back late. */
const wasStopped = ({ stopped }: CommandEnd) => stopped !== undefined && stopped.why !== 'timeout'

const placeOf = (workspace: Workspace, { objects }: Checked, mark: string) => ({
  ...checkPlace(workspace, mark),
  ...(objects === undefined ? {} : { objects }),
})

const wrote = (paths: readonly string[]) =>
  `the check changed tracked files: ${paths.slice(0, 3).join(', ')}${paths.length > 3 ? ' …' : ''}`

/** What an earlier worker's try under this mark became. */
async function leftBehind(
  { workerId }: WorkspacePorts,
  folder: string,
  mark: string,
  brake: Brake,
): Promise<CommandOutcome | undefined> {
  if (!existsSync(folder)) return undefined
  const remains = await takeOver(folder, workerId, { mark, ...fenceOf(brake) })
  if (remains.kind !== 'alive') return remains
  brake.holds(remains.command)
  return remains.command.ended
}

async function start(
  ports: WorkspacePorts,
  repo: Repository,
  workspace: Workspace,
  checked: Checked,
  { mark, isMine }: Try,
  brake: Brake,
): Promise<CommandOutcome> {
  const git = { ...ports.git, signal: brake.signal }
  const place = placeOf(workspace, checked, mark)
  await checkOut(git, repo, place, checked.commit, extrasOf(workspace))
  await putCaptured(git, repo, workspace, place.folder)
  await ensureFolder(place.command)
  await ports.point?.('workspace/checking')
  // One that was paused has made a tree of a run that may be over. From here on it is removed under this one, which then cannot start.
  if (!(await isMine())) throw new Error(`${workspace.runId} is another worker's by now`)
  const command = await startCommand(place.command, await specOf(ports, workspace, place, mark, brake), {
    codeCache: ports.codeCache,
  })
  brake.holds(command)
  await ports.point?.('workspace/check-started')
  return command.ended
}

/** What runs is what was captured, also where the branch has another one by now. */
async function putCaptured(git: Git, repo: Repository, { validator }: Workspace, folder: string): Promise<void> {
  if (validator?.file === undefined || validator.blob === undefined) return
  const path = join(folder, validator.file)
  await ensureFolder(dirname(path))
  await writeFile(path, await readBlob(git, repo, validator.blob, LIMITS.checkFileBytes))
  await chmod(path, 0o755)
}

/** It writes in its checkout and in a temporary folder of its own; nowhere else, where the kernel allows to say so. */
async function specOf(
  ports: WorkspacePorts,
  workspace: Workspace,
  place: ReturnType<typeof placeOf>,
  mark: string,
  brake: Brake,
) {
  const { validator, request, prefix } = workspace
  const { folder, temporary } = place
  const argv: readonly [string, ...string[]] =
    validator?.kind === 'file' ? [join(folder, validator.file)] : ['/bin/sh', '-c', validator?.command ?? 'true']
  const cwd = join(folder, validator?.kind === 'file' ? '' : prefix)
  await ensureFolder(temporary)
  const seal = await detectSeal()
  const writable = [folder, place.git, temporary].filter((each) => existsSync(each))
  return {
    argv: seal.kind === 'sealed' ? seal.wrap(argv, { cwd, writable }) : argv,
    cwd,
    env: { ...harmlessVariables(ports.git.env), TMPDIR: temporary },
    mark,
    ...fenceOf(brake),
    timeoutMs: request.checkTimeoutMs ?? LIMITS.checkMs,
    graceMs: ports.graceMs,
    output: { headBytes: LIMITS.checkOutputBytes, tailBytes: LIMITS.checkOutputBytes, spillBytes: 0 },
  }
}

function verdictOf(end: CommandEnd, { request }: Workspace): CheckResult {
  const { exitCode, startedAt, endedAt } = end
  const result = { exitCode, output: outputOf(end), durationMs: endedAt - startedAt }
  if (end.stopped?.why === 'timeout') {
    const why = `the check took longer than ${formatDuration(request.checkTimeoutMs ?? LIMITS.checkMs)}`
    return { ...result, verdict: 'timed_out', why }
  }
  if (exitCode === 0 && end.spawnError === undefined) return { ...result, verdict: 'passed' }
  return { ...result, verdict: 'failed', why: `the check ${describeEnd(end)}` }
}

/** Errors last: that is where a person looks. */
function outputOf({ stdout, stderr }: CommandEnd): string {
  const text = [stdout, stderr].map(tailOf).filter((part) => part !== '')
  return text.join('\n').slice(-LIMITS.checkOutputBytes)
}

const tailOf = ({ head, tail, truncated }: OutputText) => (truncated ? `…${tail}` : head + tail).trimEnd()

/** What the check's supervisor left, once the verdict is recorded. */
export async function forgetCheck({ git }: WorkspacePorts, workspace: Workspace): Promise<void> {
  if (workspace.checkMark !== null) await removeCheck(git, workspace, workspace.checkMark)
}

/**
 * Ends these checks of a workspace, whoever began them, or all: nobody waits for them any more, and their processes must be dead before
 * that is said. Nothing on disk asks whose they are: so whoever may still be overtaken ends only those of before a step that it took by its claim.
 */
export async function endChecks(ports: WorkspacePorts, workspace: Workspace, marks?: readonly string[]): Promise<void> {
  for (const mark of marks ?? (await checksOf(workspace))) await endCheck(ports, workspace, mark)
}

async function endCheck({ git, workerId }: WorkspacePorts, workspace: Workspace, mark: string): Promise<void> {
  const { command } = checkPlace(workspace, mark)
  if (existsSync(command)) {
    const remains = await takeOver(command, workerId, { mark })
    if (remains.kind === 'alive') remains.command.stop('cancelled')
    if (remains.kind === 'alive') await remains.command.ended
  }
  await removeCheck(git, workspace, mark)
}

/** Whether there is something on disk to go on with: what runs, has ended, or was begun and never will. */
export const hasBegun = (workspace: Workspace): boolean =>
  workspace.checkMark !== null && existsSync(checkPlace(workspace, workspace.checkMark).command)

const fenceOf = ({ fence }: Brake) => (fence === undefined ? {} : { fence })
