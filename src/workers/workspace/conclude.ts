import { rm } from 'node:fs/promises'

import { HoldfastError, describeError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import type { Git } from '../../git/git.ts'
import { copyIndexFile } from '../../git/index-file.ts'
import { putOnTop } from '../../git/on-top.ts'
import { readRef } from '../../git/refs.ts'
import type { Repository } from '../../git/repository.ts'
import { keptCommits } from '../../git/kept.ts'
import { snapshot } from '../../git/snapshot.ts'
import type { Snapshot } from '../../git/snapshot.ts'
import type { AttemptRef } from '../../runs/attempt.ts'
import type { Claim } from '../../runs/claim.ts'
import type { Outcome } from '../../runs/finish.ts'
import { checkpointWorkspace } from '../../workspace/open.ts'
import type { Progress } from '../../workspace/open.ts'
import { beginCheck, concludeCheck, landingHolder, prepareWorkspace, takeLanding } from '../../workspace/prepare.ts'
import type { Candidate } from '../../workspace/prepare.ts'
import { findWorkspace } from '../../workspace/workspace.ts'
import type { CheckResult, Workspace } from '../../workspace/workspace.ts'
import { refOf, untilStored } from '../execute.ts'
import type { Executor } from '../execute.ts'
import { endChecks, forgetCheck, hasBegun, runCheck } from './check.ts'
import { holdsRun, nameWork } from './name.ts'
import { cutShort, isSound, keep, triesOf, writtenOut } from './sound.ts'
import { Brake, apartOf, checksOf, messageOf, repositoryOf, treePlace, waitForChange } from './ports.ts'
import type { WorkspacePorts } from './ports.ts'

/** Somebody else has the run, or it is being cancelled: nothing here may go on. */
class Interrupted extends Error {
  readonly by: 'superseded' | 'cancel-requested'

  constructor(by: Interrupted['by']) {
    super(by)
    this.by = by
  }
}

interface Concluding {
  readonly executor: Executor
  readonly ports: WorkspacePorts
  readonly ref: AttemptRef
  readonly git: Git
  readonly repo: Repository
  readonly brake: Brake
  readonly isAgent: boolean
}

/**
 * The command or the agent says that it has succeeded. Before the run may end so:
 *
 *   active ─▶ prepared (one commit, no branch moved) ─▶ the landing lock ─▶ on top of the branch, checked there ─▶ checked
 *
 * Whoever takes over goes on from what is recorded. Answers how the run may end; undefined if it is another's now.
 */
export async function concludeWork(
  ports: WorkspacePorts,
  executor: Executor,
  claim: Claim,
  outcome: Outcome,
): Promise<Outcome | undefined> {
  const brake = new Brake(claim.run.fence)
  executor.onCommand(claim.attempt.id, brake)
  try {
    const found = await untilStored(executor, () => ports.store.read(findWorkspace, claim.run.id))
    if (found === undefined) return outcome
    await ports.point?.('workspace/worked')
    const git = { ...ports.git, signal: brake.signal }
    const repo = await repositoryOf(git, found)
    const isAgent = claim.run.request.kind === 'agent'
    const checked = await bringToChecked({ executor, ports, ref: refOf(claim), git, repo, brake, isAgent }, found)
    return checked.passed ? outcome : notValidated(outcome, checked.verdict)
  } catch (error) {
    if (error instanceof Interrupted && error.by === 'superseded') return undefined
    if (error instanceof Interrupted || brake.why === 'cancelled') return cancelled(ports, claim, outcome)
    if (brake.why !== undefined || !isFinal(error)) throw error
    return { ...outcome, state: 'failed', code: 'validation', error: describeError(error) }
  }
}

/** The end itself sees to it that only a cancel can win now, and keeps what came too late; but not before all is dead. */
async function cancelled(ports: WorkspacePorts, { run }: Claim, outcome: Outcome): Promise<Outcome> {
  const workspace = await ports.store.read(findWorkspace, run.id)
  if (workspace !== undefined) await endChecks(ports, workspace)
  return outcome
}

/** What says what is wrong and that trying again does not help; the rest is tried again, within the bound of recoveries. */
const isFinal = (error: unknown) => error instanceof HoldfastError && error.retry === undefined

function notValidated(outcome: Outcome, verdict: CheckResult | null): Outcome {
  const why = verdict?.why ?? 'the check did not pass'
  const output = verdict?.output === undefined || verdict.output === '' ? '' : `:\n${verdict.output}`
  return { ...outcome, state: 'failed', code: 'validation', error: `${why}${output}` }
}

async function bringToChecked(concluding: Concluding, found: Workspace): Promise<Workspace> {
  if (found.state === 'checked') return found
  const prepared = found.state === 'prepared' ? found : await prepare(concluding, found)
  const locked = await takeLock(concluding)
  if (locked.state === 'checked') return locked
  return check(concluding, { ...prepared, ...locked })
}

/** Everything that is in the tree becomes one commit, under our ref; the same again after a crash. */
async function prepare(concluding: Concluding, workspace: Workspace): Promise<Workspace> {
  const { executor, ports, ref, git, repo, isAgent } = concluding
  const place = treePlace(workspace, workspace.opening!)
  const tries = () => untilStored(executor, triesOf(ports, workspace))
  if (!(await isSound(workspace, tries))) throw cutShort(place)
  const before = isAgent ? await tries() : undefined
  const { work, taken } = await commitOf(ports, git, repo, workspace)
  await nameWork(ports, repo, workspace, work, () => holdsRun(ports, ref))
  const { changed, changedCount, linesAdded, linesRemoved, leftOut, leftOutCount } = taken
  const prepared = { work, changed, changedCount, linesAdded, linesRemoved, leftOut, leftOutCount }
  const done = went(await untilStored(executor, () => ports.store.apply(prepareWorkspace, ref, prepared)))
  // An agent that has to go on from here, after a power loss, may begin with this.
  if (before !== undefined) await keep(ports, workspace, before, { work })
  await ports.point?.('workspace/prepared')
  return done
}

/** The commit of what is there now: the agent's own below it, if they are to be kept. */
export async function commitOf(
  { random }: WorkspacePorts,
  git: Git,
  repo: Repository,
  workspace: Workspace,
): Promise<{ readonly work: string; readonly taken: Snapshot }> {
  const { base, openedAt: at, request } = workspace
  const message = messageOf(workspace)
  const found = treePlace(workspace, workspace.opening!)
  // A copy of our index: two of us may look at once, after a takeover, and git locks what it works with.
  const place = { ...found, index: `${found.index}.${random.hex(8)}` }
  await copyIndexFile(found.index, place.index)
  const { largestFile } = request
  const limits = largestFile === undefined ? {} : { largestFile }
  const options = { parent: base, message, at, apart: apartOf(workspace), ...limits }
  const taken = await snapshot(git, repo, place, options)
  await forget(place.index)
  if (request.commits !== 'keep') return { work: taken.commit, taken }
  const kept = await keptCommits(git, repo, place, { base, snapshot: taken, message, at })
  return { work: kept.kind === 'kept' ? kept.commit : taken.commit, taken }
}

/** What a failed try leaves goes with its folder. */
const forget = (index: string) => rm(index, { force: true })

/** Those that wait land one after the other. The holder may have died: then its work is taken up here. */
async function takeLock(concluding: Concluding): Promise<Workspace> {
  const { ports, repo, brake } = concluding
  const { clock } = ports
  let looked = clock.monotonicMs()
  for (;;) {
    const locked = await tryLock(concluding)
    if (locked !== undefined) return locked
    await waitForChange(ports, LIMITS.landingPollMs, brake.signal)
    if (brake.signal.aborted) throw new Error(`stopped: ${brake.why}`)
    if (clock.monotonicMs() - looked < LIMITS.landingPollMs) continue
    looked = clock.monotonicMs()
    await ports.lookAfterOthers(repo.commonDir)
  }
}

/** Only a look while another has it: writes would wake those who wait, and they one another. */
async function tryLock({ executor, ports, ref }: Concluding): Promise<Workspace | undefined> {
  const { store } = ports
  const holder = await untilStored(executor, () => store.read(landingHolder, ref.runId))
  if (holder !== undefined && holder.runId !== ref.runId) return undefined
  const landing = await untilStored(executor, () => store.apply(takeLanding, ref))
  if (landing.kind === 'waiting') return undefined
  const locked = went(landing)
  await ports.point?.('workspace/locked')
  return locked
}

/** On top of the branch as it is now; once more, if it moved while the check ran. */
async function check(concluding: Concluding, prepared: Workspace): Promise<Workspace> {
  let workspace = prepared
  for (let round = 1; ; round += 1) {
    const candidate = await candidateOf(concluding, workspace)
    workspace = await intendCheck(concluding, workspace, candidate, round === 1)
    const verdict = await verdictOn(concluding, workspace)
    if (verdict === undefined && round < LIMITS.checkRounds) continue
    if (verdict === undefined) throw new Error('its check was cut off again and again')
    const moved = (await readRef(concluding.git, concluding.repo, workspace.branch)) !== candidate.tip
    if (moved && verdict.verdict === 'passed' && round < LIMITS.checkRounds) continue
    return conclude(concluding, workspace, verdict)
  }
}

interface Found extends Omit<Candidate, 'mark'> {
  /** Where the branch is; undefined if it is gone. */
  readonly tip: string | undefined
}

async function candidateOf({ git, repo }: Concluding, workspace: Workspace): Promise<Found> {
  const { branch, base, openedAt: at } = workspace
  const work = workspace.work!
  const tip = await readRef(git, repo, branch)
  if (tip === undefined) return { tip, checkedOn: base, sha: work, conflicts: [] }
  const onTop = await putOnTop(git, repo, { work, base, target: tip, at })
  if (onTop.kind !== 'conflict') return { tip, checkedOn: tip, sha: onTop.commit, conflicts: [] }
  // What a person will have to put together is checked as it is.
  return { tip, checkedOn: tip, sha: work, conflicts: onTop.paths }
}

/**
 * A try that somebody else began is gone on with, if it is about the same commit and its command has a folder: a worker that was paused
 * before that may still be writing the tree. Otherwise what is left of it is ended, once another has taken its place by our claim: before
 * that, or of those that were begun after it, it could be that of whoever took over.
 */
async function intendCheck(
  concluding: Concluding,
  workspace: Workspace,
  found: Found,
  mayGoOn: boolean,
): Promise<Workspace> {
  const { executor, ports, ref } = concluding
  const same = workspace.sha === found.sha && workspace.checkedOn === found.checkedOn
  if (mayGoOn && workspace.checkMark !== null && same && hasBegun(workspace)) return workspace
  const before = await checksOf(workspace)
  const { checkedOn, sha, conflicts } = found
  const candidate = { checkedOn, sha, conflicts, mark: ports.random.hex(16) }
  const begun = went(await untilStored(executor, () => ports.store.apply(beginCheck, ref, candidate)))
  await endChecks(ports, workspace, before)
  return begun
}

async function verdictOn(concluding: Concluding, workspace: Workspace): Promise<CheckResult | undefined> {
  const { executor, ports, ref, repo, brake } = concluding
  const { sha, base, work, checkMark } = workspace
  const attempt = { mark: checkMark!, isMine: () => untilStored(executor, () => holdsRun(ports, ref)) }
  const verdict = await runCheck(ports, repo, workspace, { commit: sha!, base, work: work! }, attempt, brake)
  if (brake.signal.aborted) throw new Error(`stopped: ${brake.why}`)
  return verdict
}

async function conclude(concluding: Concluding, workspace: Workspace, verdict: CheckResult): Promise<Workspace> {
  const { executor, ports, ref } = concluding
  const done = went(await untilStored(executor, () => ports.store.apply(concludeCheck, ref, workspace.sha!, verdict)))
  await ports.point?.('workspace/checked')
  await forgetCheck(ports, workspace)
  return done
}

function went(progress: Progress): Workspace {
  if (progress.kind === 'done') return progress.workspace
  throw new Interrupted(progress.kind)
}

/** The run is about to wait: what is there is kept under our ref, in case its tree is gone when it goes on, and the tree is written out. */
export async function checkpoint(
  ports: WorkspacePorts,
  executor: Executor,
  claim: Claim,
): Promise<Progress | undefined> {
  const workspace = await untilStored(executor, () => ports.store.read(findWorkspace, claim.run.id))
  if (workspace?.state !== 'active' || workspace.mode === 'shadow') return undefined
  const repo = await repositoryOf(ports.git, workspace)
  const before = await untilStored(executor, triesOf(ports, workspace))
  const { work } = await commitOf(ports, ports.git, repo, workspace)
  await nameWork(ports, repo, workspace, work, () => holdsRun(ports, refOf(claim)))
  const done = await untilStored(executor, () => ports.store.apply(checkpointWorkspace, refOf(claim), work))
  if (done.kind === 'done')
    await keep(ports, workspace, before, { work, ...(await writtenOut(ports, workspace, before)) })
  return done
}
