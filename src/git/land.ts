import { existsSync } from 'node:fs'
import { mkdtemp, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { HoldfastError } from '../base/errors.ts'
import { errorCode, named, syncFolder } from '../base/files.ts'
import type { Git, Sha } from './git.ts'
import { lockIndex, stageOf, unlockIndex } from './index-lock.ts'
import { filterIn, obstacleIn } from './landing-obstacles.ts'
import { ready, type Landed, type Landing, type Refused } from './landing.ts'
import { changesBetween, viewOf, type Change, type Site, type View } from './landing-view.ts'
import {
  type Placed,
  begin,
  goBack,
  goForward,
  hasBegun,
  installIndex,
  mendHoles,
  prepare,
  unbegin,
  undo,
} from './landing-steps.ts'
import { shownPath } from './paths.ts'
import { GIVEN_UP, readRef, refuseLocked, setOwnRef, setRef } from './refs.ts'
import { removeFolder, removeGoing } from './remove.ts'
import type { Repository } from './repository.ts'
import { askGit, runGit } from './run-git.ts'
import { Surprise } from './swap.ts'
import { syncObjects } from './sync-objects.ts'
import { gitDirsOf, isBusyWith, topOf, workingTrees } from './working-trees.ts'

/**
 * Moves the branch from `from` to `to`, and with it the working tree that has it checked out. Can be called again after any death, by anybody, until it
 * answers: it looks at what there is. Also for a landing of which nothing is left to do. It is not cancelled half way: what it began it ends.
 *
 * Files first, then the branch, then the index: a death in between leaves files that look like edits, never a state in which a commit of the user's would take the
 * work back.
 */
export async function land(asked: Git, repo: Repository, landing: Landing): Promise<Landed> {
  const { signal: _, ...git } = asked
  try {
    return await goOn(git, repo, landing)
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.retry !== undefined) throw error
    const found = await begunIn(repo, landing.runId).catch(() => undefined)
    if (found?.length === 0) throw error
    // No failure says that it did not land: it is redone until it has ended, or a person gives it up.
    const { code, message, remedy, cause } = error
    throw new HoldfastError(code, message, { ...(remedy === undefined ? {} : { remedy }), cause, retry: AGAIN })
  }
}

const AGAIN = { afterMs: 1_000 }

const givenUp = ({ runId }: Landing) => `${GIVEN_UP}${runId}`

export interface TakenBack {
  /** `landed`: the branch has it. */
  readonly kind: 'landed' | 'back'
  /** Working trees that are not there, in which it was begun: nothing was ended in them. */
  readonly unseen: readonly string[]
}

/**
 * Gives a landing up for ever: whoever is paused in it, or a git command of theirs, moves no branch any more. Can be called again, and then as `takeBack`: either they
 * find our ref when they have the lock of the branch, or we find their lock, or the branch has it.
 */
export async function giveUp(asked: Git, repo: Repository, landing: Landing): Promise<TakenBack> {
  const { signal: _, ...git } = asked
  const { target, from } = landing
  // A branch that is away may come back, and if it is where it was, this commit is there.
  const there = (await readRef(git, repo, target)) ?? ((await isStored(git, repo, from)) ? from : undefined)
  if (there !== undefined) await setOwnRef(git, repo, givenUp(landing), there)
  refuseLocked(repo, target)
  return takeBack(git, repo, landing)
}

/**
 * Ends a landing that a person gives up, or whose end nobody knows: what is in place goes back, or follows HEAD. Can be called again like `land`. A working tree that is
 * not there stays as it is, and whoever finds it again can work in it.
 */
export async function takeBack(asked: Git, repo: Repository, landing: Landing): Promise<TakenBack> {
  const { signal: _, ...git } = asked
  for (const { top, gitDir } of await workingTrees(git, repo)) {
    if (gitDir !== undefined) await named(top, () => retreat(git, repo, { top, gitDir }, landing))
  }
  const left = await begunIn(repo, landing.runId)
  for (const { gitDir, stage } of left) await unlockIndex(gitDir, stage)
  const unseen = await Promise.all(left.map(({ gitDir }) => topOf(repo, gitDir)))
  const tip = await readRef(git, repo, landing.target)
  if (tip === undefined) return { kind: 'back', unseen }
  // Nothing but the branch names it: one that is not there was swept away, so the branch does not have it.
  const hasIt = (await isStored(git, repo, landing.to)) && (await isIn(git, repo, landing.to, tip))
  return { kind: hasIt ? 'landed' : 'back', unseen }
}

async function isStored(git: Git, repo: Repository, commit: Sha): Promise<boolean> {
  return (await runGit(git, ['cat-file', '-e', commit], { gitDir: repo.commonDir }, [0, 1])).code === 0
}

/** Known again to a database that was restored. Whoever gave it up counts on it that it does not land. */
async function endGivenUp(git: Git, repo: Repository, landing: Landing): Promise<Landed> {
  const { kind, unseen } = await takeBack(git, repo, landing)
  if (unseen.length > 0) {
    const reason = `it was given up, but it has to be taken back in ${unseen.join(', ')}, which is not there`
    throw landingBegun(ready('tree-missing', reason), landing.runId)
  }
  if (kind === 'landed') return { kind, followed: false }
  return ready('given-up', 'its landing was given up, so it does not land any more; it can be kept as a branch')
}

async function goOn(git: Git, repo: Repository, landing: Landing): Promise<Landed> {
  if ((await readRef(git, repo, givenUp(landing))) !== undefined) return endGivenUp(git, repo, landing)
  const trees = await workingTrees(git, repo)
  const having = trees.filter(({ branch }) => branch === landing.target)
  for (const { gitDir } of trees) {
    if (gitDir !== undefined && (await isBusyWith(gitDir, landing.target))) {
      const reason = `${landing.target} is in the middle of a rebase or a bisection`
      return unlessBegun(git, repo, landing, ready('operation', reason))
    }
  }
  for (const { top, gitDir, branch } of trees) {
    if (gitDir === undefined || branch === landing.target) continue
    const refused = await retreat(git, repo, { top, gitDir }, landing)
    if (refused !== undefined) return refused
  }
  if (having.length > 1) {
    const reason = `${landing.target} is checked out in several working trees`
    return unlessBegun(git, repo, landing, ready('several-trees', reason))
  }
  const [tree] = having
  if (tree === undefined) return landBranch(git, repo, landing)
  const { gitDir, top } = tree
  if (gitDir === undefined) {
    const reason = `${landing.target} is checked out in ${top}, which is not there, or is another repository by now`
    return unlessBegun(git, repo, landing, ready('tree-missing', reason))
  }
  return named(top, () => landInTree(git, repo, { top, gitDir }, landing))
}

/**
 * A landing that was begun may have files in place, or the branch: nobody can say that it did not land, so it is redone until what stands in the way has
 * ended. One that came to its end has landed, whatever the user does on top of it.
 */
async function unlessBegun(
  git: Git,
  repo: Repository,
  { target, to, runId }: Landing,
  refused: Refused,
): Promise<Landed> {
  for (const { gitDir, stage } of await begunIn(repo, runId)) {
    // They need the index to end what they are in; what they do to the files meanwhile is seen when it goes on.
    await unlockIndex(gitDir, stage).catch(() => {})
    throw landingBegun(refused, runId)
  }
  const tip = await readRef(git, repo, target)
  return tip !== undefined && (await isIn(git, repo, to, tip)) ? { kind: 'landed', followed: false } : refused
}

/** Also of working trees that are not there. */
export async function begunIn(
  repo: Pick<Repository, 'commonDir'>,
  runId: string,
): Promise<{ readonly gitDir: string; readonly stage: string }[]> {
  const found = []
  for (const gitDir of await gitDirsOf(repo)) {
    const stage = stageOf(gitDir, runId)
    if (await hasBegun(stage)) found.push({ gitDir, stage })
  }
  return found
}

const landingBegun = ({ reason }: Refused, runId: string) =>
  new HoldfastError('git/landing-begun', `a landing was begun, and ${reason}`, {
    remedy: `end that, or bring the working tree back, and the landing goes on by itself; \`holdfast workspace discard ${runId}\` gives it up`,
    retry: AGAIN,
  })

/** Nobody has it checked out: the branch is all there is to move. */
async function landBranch(git: Git, repo: Repository, landing: Landing): Promise<Landed> {
  const tip = await readRef(git, repo, landing.target)
  if (tip === undefined) return ready('branch-gone', `there is no ${landing.target} any more`)
  if (await isIn(git, repo, landing.to, tip)) return { kind: 'landed', followed: false }
  if (tip !== landing.from) return branchMoved(landing)
  const set = await moveBranch(git, repo, landing, repo.commonDir)
  return set === 'set' ? { kind: 'landed', followed: false } : branchMoved(landing)
}

interface Tree {
  readonly top: string
  readonly gitDir: string
}

/** If it was checked out there when this began, and the user has gone to another branch: the files follow that one. */
async function retreat(
  git: Git,
  repo: Repository,
  { top, gitDir }: Tree,
  landing: Landing,
): Promise<Landed | undefined> {
  const stage = stageOf(gitDir, landing.runId)
  const begun = await hasBegun(stage)
  if (!begun && !existsSync(dirname(stage))) return undefined
  if (begun) {
    // They may have taken away the lock of the one that died; without one, what they stage meanwhile would be lost.
    const refused = await takeIndex(git, { top, gitDir }, landing.runId)
    if (refused !== undefined) return refused
    try {
      const own = await mkdtemp(join(stage, 'try-'))
      const changes = await changesBetween(git, repo, landing.from, landing.to)
      await followHead(git, { repo, top, gitDir, stage, own }, changes, landing)
    } catch (error) {
      // It is redone, perhaps much later, and what they do on their branch does not wait for that.
      await unlockIndex(gitDir, stage).catch(() => {})
      throw error
    }
  }
  await clean(git, gitDir, stage)
  return undefined
}

/** Git's own lock of the index, or why there is none to be had. Throws where something was begun under one and the index is busy. */
async function takeIndex(git: Git, { top, gitDir }: Tree, runId: string): Promise<Landed | undefined> {
  const stage = stageOf(gitDir, runId)
  const locked = await lockIndex(git, gitDir, stage)
  if (locked === 'locked') return undefined
  const begun = await hasBegun(stage)
  if (!begun) await removeFolder(git, stage)
  if (locked === 'busy') {
    const reason = `another git command is at work in ${top}: there is an index.lock`
    if (!begun) return { kind: 'busy', reason }
    // The branch may have moved already: nobody can say that the work did not land, so it is redone until it has ended.
    throw new HoldfastError('git/index-locked', `a landing was begun, and ${reason}`, {
      remedy: 'wait until that command has ended; if none is running, remove that file',
      retry: AGAIN,
    })
  }
  const refused = ready('file-system', `the file system of ${top} has no hard links, so files cannot be put in place`)
  if (begun) throw landingBegun(refused, runId)
  return refused
}

async function followHead(git: Git, site: Site, changes: readonly Change[], landing: Landing): Promise<void> {
  const { repo, gitDir } = site
  const head = await askGit(git, ['rev-parse', '--verify', '-q', 'HEAD^{commit}'], { gitDir })
  const tip = head.code === 0 ? head.text : undefined
  if (tip !== undefined && (await isIn(git, repo, landing.to, tip)))
    await finish(git, site, changes, { ...landing, tip })
  else await goBack(git, site, changes, { ...landing, tip })
}

const branchMoved = ({ target, from }: Landing) =>
  ready('branch-moved', `${target} is not at ${from.slice(0, 12)} any more`)

async function moveBranch(git: Git, repo: Repository, landing: Landing, gitDir: string): Promise<'set' | 'moved'> {
  const { target, from, to, runId } = landing
  await syncObjects(git, repo, { from, to })
  await git.point?.('land/branch-moving')
  const change = { to, old: from, message: `holdfast: run ${runId}`, gitDir, unless: givenUp(landing) }
  const set = await setRef(git, repo, target, change)
  if (set === 'barred') throw new Overtaken('another one has given this landing up')
  return set
}

async function landInTree(git: Git, repo: Repository, { top, gitDir }: Tree, landing: Landing): Promise<Landed> {
  if ((await stat(top)).dev !== (await stat(gitDir)).dev) {
    const reason = `${top} is on another file system than its git folder, so files cannot be put in place`
    return unlessBegun(git, repo, landing, ready('file-system', reason))
  }
  const stage = stageOf(gitDir, landing.runId)
  const refused = await takeIndex(git, { top, gitDir }, landing.runId)
  if (refused !== undefined) return refused
  await git.point?.('land/locked')
  const own = await mkdtemp(join(stage, 'try-'))
  try {
    const landed = await landLocked(git, { repo, top, gitDir, stage, own }, landing)
    await clean(git, gitDir, stage)
    await git.point?.('land/cleaned')
    return landed
  } catch (error) {
    // What has begun is redone, with its lock still there; before that there is nothing to redo.
    if (!(await hasBegun(stage).catch(() => true))) await clean(git, gitDir, stage).catch(() => {})
    throw error
  }
}

/** With the lock in our hands: nobody's git command changes the index or switches the branch meanwhile. */
async function landLocked(git: Git, site: Site, landing: Landing): Promise<Landed> {
  const { repo, stage } = site
  const { target, from, to } = landing
  const tip = await readRef(git, repo, target)
  const begun = await hasBegun(stage)
  const changes = await changesBetween(git, repo, from, to)
  if (tip !== undefined && (await isIn(git, repo, to, tip))) {
    if (begun) await finish(git, site, changes, { ...landing, tip })
    return { kind: 'landed', followed: true }
  }
  if (tip === from) return attempt(git, site, changes, { ...landing, begun })
  if (begun) await goBack(git, site, changes, { from, to, tip })
  return tip === undefined ? ready('branch-gone', `there is no ${target} any more`) : branchMoved(landing)
}

async function attempt(
  git: Git,
  site: Site,
  changes: readonly Change[],
  landing: Landing & { readonly begun: boolean },
): Promise<Landed> {
  const { begun } = landing
  if (begun) await mendHoles(site, changes)
  const obstacle = begun ? undefined : await obstacleIn(git, site, changes)
  if (obstacle !== undefined) return obstacle
  const view = await viewOf(git, site, changes, landing)
  const theirs = begun ? changedSince(view) : ((await filterIn(git, site, changes)) ?? notClean(view))
  await git.point?.('land/looked')
  if (theirs !== undefined) {
    if (begun) await goBack(git, site, changes, { ...landing, tip: landing.from })
    return theirs
  }
  await prepare(git, site, changes)
  await git.point?.('land/staged')
  if (!begun) await begin(stageOf(site.gitDir, landing.runId))
  await git.point?.('land/begun')
  const moved = await placeAndMove(git, site, changes, view, landing)
  if (moved !== undefined) return moved
  await git.point?.('land/branch-moved')
  if (!(await isOnBranch(git, site, landing))) {
    await followHead(git, site, changes, landing)
    return { kind: 'landed', followed: false }
  }
  await installIndex(git, site, changes, view)
  await git.point?.('land/index-installed')
  return { kind: 'landed', followed: true }
}

/** Files, then the branch. Whatever goes wrong, what was placed is put back; answers why it did not come to it. */
async function placeAndMove(
  git: Git,
  site: Site,
  changes: readonly Change[],
  view: View,
  landing: Landing & { readonly begun: boolean },
): Promise<Landed | undefined> {
  let failure: unknown
  const placed: Placed[] = []
  try {
    await goForward(git, site, changes, view, { placed, surprised: 'throw' })
    await git.point?.('land/placed')
    if (!(await isOnBranch(git, site, landing))) throw new BranchLeft()
    await git.point?.('land/moving')
    if (!existsSync(site.own)) throw new Overtaken('another one has ended this landing')
    if ((await moveBranch(git, site.repo, landing, site.gitDir)) === 'set') return undefined
  } catch (error) {
    if (error instanceof Overtaken) throw error
    failure = error
  }
  await undo(git, site, placed)
  // What a try before this one had placed.
  if (landing.begun) await goBack(git, site, changes, { ...landing, tip: landing.from })
  // A child of a process that died before us may have moved it at the last moment.
  const tip = await readRef(git, site.repo, landing.target)
  if (tip === landing.to) {
    await finish(git, site, changes, { ...landing, tip })
    return { kind: 'landed', followed: true }
  }
  await unbegin(site.stage)
  if (failure === undefined) return branchMoved(landing)
  return reasonOf(failure, landing)
}

function reasonOf(failure: unknown, landing: Landing): Landed {
  if (failure instanceof Surprise) {
    return ready('edited-meanwhile', `${shownPath(failure.path)} was changed while the work was put in place`)
  }
  if (failure instanceof BranchLeft) {
    return ready('branch-moved', `another branch than ${landing.target} was checked out meanwhile`)
  }
  const [code = '', said] = [errorCode(failure), failure instanceof Error ? failure.message : '']
  if (code === 'EXDEV') return ready('file-system', `a part of the working tree is on another file system: ${said}`)
  if (REFUSALS.includes(code)) return ready('unwritable', `a file could not be put in place: ${said}`)
  throw failure
}

/** Of the system, about one place; trying again would not help. */
const REFUSALS = ['EACCES', 'EPERM', 'EROFS', 'EBUSY', 'ELOOP', 'ENAMETOOLONG']

class BranchLeft extends Error {}

/** By somebody who took this for dead while it was paused, and removed its folder: the files are theirs to answer for. */
class Overtaken extends Error {}

/** The lock of the index does not keep the user from a new branch at the same commit. */
async function isOnBranch(git: Git, { gitDir }: Site, { target }: Landing): Promise<boolean> {
  return (await runGit(git, ['symbolic-ref', '-q', 'HEAD'], { gitDir }, [0, 1])).text === target
}

/** At the first look everything has to be as the branch has it. */
function notClean({ dirty, inTheWay }: View): Landed | undefined {
  const [blocked] = inTheWay
  if (blocked !== undefined) {
    return ready('in-the-way', `${shownPath(blocked)} is there already, and git does not know it`)
  }
  const [first] = dirty
  if (first === undefined) return undefined
  const others = dirty.length === 1 ? '' : ` and ${dirty.length - 1} more`
  return ready('dirty', `there are changes that are not committed: ${shownPath(first)}${others}`)
}

/** Later only what the landing itself is about matters. */
function changedSince({ sides, staged }: View): Landed | undefined {
  const [path] = [...sides, ...staged].find(([, side]) => side === 'other') ?? []
  if (path === undefined) return undefined
  return ready('edited-meanwhile', `${shownPath(path)} was changed while the work was put in place`)
}

/** The branch is there: the files and the index follow, except where somebody has gone on from it. */
async function finish(
  git: Git,
  site: Site,
  changes: readonly Change[],
  { from, to, tip }: { readonly from: Sha; readonly to: Sha; readonly tip: Sha },
): Promise<void> {
  const since = new Set((await changesBetween(git, site.repo, to, tip)).map(({ path }) => path))
  const ours = changes.filter(({ path }) => !since.has(path))
  await mendHoles(site, ours)
  const view = await viewOf(git, site, ours, { from, to })
  await prepare(git, site, ours)
  await goForward(git, site, ours, view, { placed: [], surprised: 'leave' })
  await installIndex(git, site, ours, view)
}

async function isIn(git: Git, repo: Repository, commit: Sha, tip: Sha): Promise<boolean> {
  if (commit === tip) return true
  const end = await askGit(git, ['merge-base', '--is-ancestor', commit, tip], { gitDir: repo.commonDir })
  if (end.code === 0 || end.code === 1) return end.code === 0
  throw new HoldfastError('git/failed', `it cannot be told whether ${commit} is in ${tip}: ${end.stderr.trim()}`, {
    remedy: 'check the repository with git fsck',
  })
}

async function clean(git: Git, gitDir: string, stage: string): Promise<void> {
  await unlockIndex(gitDir, stage)
  await git.point?.('land/unlocked')
  // With what else is named there by now, as the index. A lock that a power loss brings back is ours to remove only as long as this folder is there.
  await syncFolder(gitDir)
  await removeFolder(git, stage)
  await removeGoing(git, join(gitDir, 'holdfast'))
  // Empty, unless others land here.
  await rmdir(join(gitDir, 'holdfast')).catch(() => {})
}
