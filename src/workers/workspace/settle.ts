import { sleep } from '../../base/clock.ts'
import { HoldfastError, describeError } from '../../base/errors.ts'
import type { RunId, WorkerId } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import type { Git } from '../../git/git.ts'
import { giveUp, land, takeBack } from '../../git/land.ts'
import type { Landed, Landing } from '../../git/landing.ts'
import { branchFrom, readRef } from '../../git/refs.ts'
import type { Repository } from '../../git/repository.ts'
import { removeFolder } from '../../git/remove.ts'
import { isOpen } from '../../git/tree.ts'
import { judgeProcess } from '../../processes/identity.ts'
import {
  claimSettling,
  discardedWorkspace,
  keptWorkspace,
  landedWorkspace,
  observedWorkspace,
  postponeSettling,
  quarantineWorkspace,
  readyWorkspace,
  refuseWish,
  renewSettling,
  takeLandingLate,
  unsettledOn,
} from '../../workspace/settle.ts'
import type { Settler } from '../../workspace/settle.ts'
import { UNSETTLED, findWorkspace, refOfRun } from '../../workspace/workspace.ts'
import type { Workspace } from '../../workspace/workspace.ts'
import { endChecks } from './check.ts'
import { commitOf } from './conclude.ts'
import { endLanding, isMade } from './end-landing.ts'
import { landAgain } from './land-again.ts'
import { nameWork, settles } from './name.ts'
import { repositoryOf, treePlace, waitForChange } from './ports.ts'
import type { WorkspacePorts } from './ports.ts'
import { notSeen, settleShadow } from './shadow.ts'
import { isSound, triesOf } from './sound.ts'
import { sweepOne } from './sweep.ts'

/** One that this process has, to be settled. */
export interface Settling {
  readonly ports: WorkspacePorts
  readonly git: Git
  readonly repo: Repository
  readonly workspace: Workspace
}

/**
 * Does what is left to do after the end of a run, or because a person asked for it. Everything here can be done again by
 * anybody: what is recorded says what is to be done, and git's own guards say whether it was. Never throws.
 */
export function settleWorkspace(ports: WorkspacePorts, runId: RunId, dead?: WorkerId): Promise<void> {
  const { settling, warn } = ports
  const busy = settling.get(runId)
  if (busy !== undefined) return busy
  const work = settleOne(ports, runId, dead)
    .catch((error: unknown) => warn(`the workspace of ${runId} will be tried again: ${describeError(error)}`))
    .finally(() => settling.delete(runId))
  settling.set(runId, work)
  return work
}

/** Everything that is left to do on this machine, or in one repository of it. */
export async function settleAll(ports: WorkspacePorts, repo?: string): Promise<void> {
  for (const { runId, settler, identity, isDue, ...each } of await ports.store.read(
    unsettledOn,
    ports.host,
    LIMITS.page,
  )) {
    if (repo !== undefined && each.repo !== repo) continue
    const dead = settler !== null && identity !== null && judgeProcess(identity) === 'dead'
    if (isDue === 1 || dead) await settleWorkspace(ports, runId, dead ? settler : undefined)
  }
}

async function settleOne(ports: WorkspacePorts, runId: RunId, dead: WorkerId | undefined): Promise<void> {
  const { store, workerId, leaseMs } = ports
  const settler = { workerId, leaseMs, ...(dead === undefined ? {} : { dead }) }
  const workspace = await store.apply(claimSettling, runId, settler)
  if (workspace === undefined) return
  const stopRenewing = renewRegularly(ports, runId, settler)
  try {
    await settleClaimed(ports, workspace)
    await ports.point?.('workspace/settled')
  } catch (error) {
    await notNow(ports, workspace, error)
    throw error
  } finally {
    stopRenewing()
  }
  await sweepOne(ports, runId)
}

function renewRegularly({ store, clock, leaseMs, warn }: WorkspacePorts, runId: RunId, settler: Settler): () => void {
  let timer = () => {}
  const renew = () => {
    timer = clock.after(leaseMs / LIMITS.renewalsPerLease, () => {
      void store.apply(renewSettling, runId, settler).catch((error: unknown) => warn(describeError(error)))
      renew()
    })
  }
  renew()
  return () => timer()
}

/** Nothing was lost. It is tried again, ever more seldom; what says that trying does not help is a person's in the end. */
async function notNow(ports: WorkspacePorts, workspace: Workspace, error: unknown): Promise<void> {
  const { store, workerId, clock } = ports
  const { runId, decidedAt, state, wish } = workspace
  const forMs = clock.now() - (decidedAt ?? clock.now())
  const hopeless = error instanceof HoldfastError && error.retry === undefined && forMs > LIMITS.settleForMs
  // What a person wished and was decided for it holds the repository: others wait for it. Any other wish is taken back, and they can have another one.
  if (hopeless && state !== 'observing') {
    const why = describeError(error)
    if (wish === null || state === 'decided') return void (await store.apply(quarantineWorkspace, runId, workerId, why))
    return void (await store.apply(refuseWish, runId, workerId, why))
  }
  const afterMs = Math.min(Math.max(LIMITS.settleAgainMs, forMs / 2), LIMITS.settleSeldomMs)
  await store.apply(postponeSettling, runId, workerId, describeError(error), Math.round(afterMs))
}

/** What another process of this machine is at: its end is waited for, so that whoever asked can say what became of it. */
export async function untilSettled(ports: WorkspacePorts, runId: RunId): Promise<void> {
  const { store, clock } = ports
  const until = clock.monotonicMs() + LIMITS.settleWaitMs
  for (;;) {
    const workspace = await store.read(findWorkspace, runId)
    const open =
      workspace !== undefined && (UNSETTLED.some((state) => state === workspace.state) || workspace.wish !== null)
    if (!open || workspace.settler === null || clock.monotonicMs() > until) return
    await waitForChange(ports, LIMITS.landingPollMs)
  }
}

async function settleClaimed(ports: WorkspacePorts, workspace: Workspace): Promise<void> {
  const { git, store, workerId } = ports
  const { runId, state, wish } = workspace
  const repo = await repositoryOf(git, workspace).catch((error: unknown) => {
    if ((error as { code?: string }).code !== 'workspace/repository-gone') throw error
    return undefined
  })
  if (repo === undefined) {
    const why = `there is no repository at ${workspace.top} any more`
    if (state === 'observing') return void (await store.apply(observedWorkspace, runId, workerId, notSeen(why)))
    await (wish === null || state === 'decided'
      ? store.apply(quarantineWorkspace, runId, workerId, why)
      : store.apply(refuseWish, runId, workerId, why))
    return
  }
  // Of a settler that died: what it began is begun anew.
  await endChecks(ports, workspace)
  const settling = { ports, git, repo, workspace }
  if (state === 'decided') await landDecided(settling)
  else if (state === 'discarding') await discard(settling)
  else if (state === 'observing') await settleShadow(settling)
  else if (wish === 'land') await landAgain(settling, landDecided)
  else if (wish === 'keep') await keep(settling)
}

/** Redoes the landing until it is there, or says why it cannot be. */
async function landDecided(settling: Settling): Promise<void> {
  const { ports, git, repo } = settling
  const { store, workerId } = ports
  const workspace = await locked(settling)
  const { runId, conflicts, sha, checkedOn, branch } = workspace
  if (conflicts.length > 0) {
    const why = `it and ${branch} both changed ${conflicts.slice(0, 3).join(', ')}${conflicts.length > 3 ? ' …' : ''}`
    return void (await store.apply(readyWorkspace, runId, workerId, why, conflicts))
  }
  if (workspace.work === workspace.base) {
    return void (await store.apply(landedWorkspace, runId, workerId, 'nothing was changed', 0))
  }
  if (!(await isMade(git, repo, workspace))) {
    const why = `the commit that was checked, ${sha}, cannot be made again`
    return void (await store.apply(quarantineWorkspace, runId, workerId, why))
  }
  const landed = await landPatiently(settling, { target: branch, from: checkedOn!, to: sha!, runId })
  await ports.point?.('workspace/landed')
  await (landed.kind === 'landed'
    ? store.apply(landedWorkspace, runId, workerId, null, 0)
    : store.apply(readyWorkspace, runId, workerId, landed.reason))
}

/** Only the one that holds the lock of its repository lands there. */
async function locked({ ports, workspace }: Settling): Promise<Workspace> {
  if (workspace.landing) return workspace
  const { store, workerId } = ports
  const taken = await store.apply(takeLandingLate, workspace.runId, workerId)
  if (taken === undefined) throw new Error('another one is landing in its repository')
  return taken
}

async function landPatiently(
  { ports, git, repo }: Settling,
  landing: Landing,
): Promise<Exclude<Landed, { kind: 'busy' }>> {
  const { clock } = ports
  const until = clock.monotonicMs() + LIMITS.busyTreeMs
  for (;;) {
    const landed = await land(git, repo, landing)
    if (landed.kind !== 'busy') return landed
    if (clock.monotonicMs() > until) return { kind: 'ready', code: 'operation', reason: landed.reason }
    await sleep(clock, LIMITS.busyTreePollMs)
  }
}

const branchOf = ({ branch }: Workspace) => branch.replace(/^refs\/heads\//, '')

const begunWords = (trees: readonly string[]) => `its landing was begun in ${trees.join(', ')}, which is not there`

const FOLLOWS = 'its index follows when that is back, and a commit there before would undo the work'

const unseenWords = (trees: readonly string[]) => ({
  error: `${trees.join(', ')} is not there`,
  why: `${begunWords(trees)}: what it had put in place there could not be taken back`,
})

/** What is there is kept under our ref before anything is removed. */
async function discard(settling: Settling): Promise<void> {
  const { ports, git, repo, workspace } = settling
  const { store, workerId } = ports
  const ended = await endLanding(settling, giveUp)
  if (ended.kind === 'landed') {
    const { unseen } = ended
    const later = unseen.length === 0 ? '' : `; ${begunWords(unseen)}: ${FOLLOWS}`
    const why = `${branchOf(workspace)} had it already${later}`
    return void (await store.apply(landedWorkspace, workspace.runId, workerId, why, 0))
  }
  const { runId, folder, request, opening, work } = workspace
  const keptMs = request.keepMs ?? LIMITS.discardedKeptMs
  const isThere = opening !== null && (await isOpen(treePlace(workspace, opening)))
  // What a power loss left of a tree is worth keeping only where there is nothing else.
  const isBest = isThere && (work === null || (await isSound(workspace, triesOf(ports, workspace))))
  const found = isBest ? await commitOf(ports, git, repo, workspace) : undefined
  if (found !== undefined) await nameWork(ports, repo, workspace, found.work, () => settles(ports, workspace))
  await ports.point?.('workspace/snapshot-kept')
  const prepared = found === undefined ? undefined : { ...found.taken, work: found.work }
  const kept = prepared !== undefined || work !== null
  const unseen = ended.unseen.length === 0 ? null : unseenWords(ended.unseen)
  await store.apply(discardedWorkspace, runId, workerId, prepared, kept ? keptMs : 0, unseen)
  await removeFolder(git, folder)
}

async function keep(settling: Settling): Promise<void> {
  const { ports, git, repo, workspace } = settling
  const { store, workerId } = ports
  const { runId, keptAs, state } = workspace
  if (state === 'quarantined' && (await endLanding(settling, takeBack)).kind === 'landed') {
    const why = `${branchOf(workspace)} has it already; \`holdfast workspace retry ${runId}\` records that`
    return void (await store.apply(refuseWish, runId, workerId, why))
  }
  const commit = workspace.work ?? (await readRef(git, repo, refOfRun(runId)))
  if (commit === undefined || commit === null) {
    return void (await store.apply(refuseWish, runId, workerId, 'there is no work that could be kept'))
  }
  const made = await branchFrom(git, repo, keptAs ?? `holdfast/${runId}`, commit).catch((error: unknown) => {
    if ((error as { code?: string }).code === 'git/bad-branch') return describeError(error)
    throw error
  })
  if (made === 'made' || made === 'same') return void (await store.apply(keptWorkspace, runId, workerId))
  const why = made === 'taken' ? `there is a branch ${keptAs} already` : made
  await store.apply(refuseWish, runId, workerId, why)
}
