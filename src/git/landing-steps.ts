import { chmod, lstat, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { sleep } from '../base/clock.ts'
import { errorCode, syncFolder } from '../base/files.ts'
import type { Git, Sha } from './git.ts'
import { setEntries } from './index-entries.ts'
import { changesBetween, copyIndex, viewOf, type Change, type Site, type View } from './landing-view.ts'
import { asRecords, onDisk, parentOf, parentsOf, type RawPath } from './paths.ts'
import { atDesk } from './room.ts'
import { runGit, tryGit } from './run-git.ts'
import { giveName, isAsTaken, lookAt, markAt, Surprise, swap, syncPath, type Mark, type Swap } from './swap.ts'

/** That something may have been put in place: from here on a landing is redone, or put back. */
const BEGUN = 'begun'

export const hasBegun = (stage: string): Promise<boolean> =>
  stat(join(stage, BEGUN)).then(
    () => true,
    (error: unknown) => {
      if (errorCode(error) === 'ENOENT') return false
      throw error
    },
  )

export async function begin(stage: string): Promise<void> {
  await writeFile(join(stage, BEGUN), '', { flush: true })
  // And its own name, and that of the folder above: both may be new.
  await Promise.all([stage, dirname(stage), dirname(dirname(stage))].map(syncFolder))
}

/** Everything is as it was: there is nothing to redo. */
export const unbegin = (stage: string): Promise<void> => rm(join(stage, BEGUN), { force: true })

const [NEW, OLD, TAKEN, UNDONE] = ['new', 'old', 'taken', 'undone']

/** The files of the new side, as git writes them, and room for what goes: after this no step needs space on the disk. */
export async function prepare(git: Git, site: Site, changes: readonly Change[]): Promise<void> {
  const paths = changes.flatMap((each) => (each.new === null ? [] : [each.path]))
  await stageSide(git, site, { folder: NEW, index: 'index.to', paths })
  await makeRoomFor(
    join(site.own, TAKEN),
    changes.flatMap((each) => (each.old === null ? [] : [each.path])),
  )
  await makeRoomFor(join(site.own, UNDONE), paths)
}

async function makeRoomFor(folder: string, paths: readonly RawPath[]): Promise<void> {
  for (const parent of new Set(paths.map(parentOf))) await mkdir(onDisk(folder, parent), { recursive: true })
}

async function stageSide(
  git: Git,
  site: Site,
  side: { readonly folder: string; readonly index: string; readonly paths: readonly RawPath[] },
): Promise<void> {
  const folder = join(site.own, side.folder)
  await mkdir(folder, { recursive: true })
  if (side.paths.length === 0) return
  // In an empty folder, so that git takes the attributes from that side's index, and not from the user's files.
  const desk = atDesk(site.repo, { workTree: folder, index: join(site.own, side.index) })
  await runGit(git, ['checkout-index', '-f', '-z', '--stdin'], { ...desk, input: asRecords(side.paths) })
  await together(side.paths, (path) => syncPath(onDisk(folder, path)))
}

const TOGETHER = 16

async function together<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < all.length; at += TOGETHER) await Promise.all(all.slice(at, at + TOGETHER).map(work))
}

/** What goes makes room for what comes. */
const inOrder = (changes: readonly Change[]) => changes.toSorted((a, b) => rank(a) - rank(b))
const rank = ({ old, new: next }: Change) => (next === null ? 0 : old === null ? 2 : 1)

/** A change that is in place, and how it looked then. */
export interface Placed {
  readonly change: Change
  readonly mark: Mark | undefined
}

export interface Forward {
  /** Filled as it goes: what has to go back if something goes wrong. */
  readonly placed: Placed[]
  /** What to do about somebody else's change in the middle: once the branch has moved, it is left as it is. */
  readonly surprised: 'throw' | 'leave'
}

/** Puts the new side in place, path by path, where the old one is. */
export async function goForward(
  git: Git,
  site: Site,
  changes: readonly Change[],
  { sides, marks }: View,
  { placed, surprised }: Forward,
): Promise<void> {
  const todo = inOrder(changes).filter(({ path }) => sides.get(path) === 'from')
  for (const change of todo) {
    const { path } = change
    await git.point?.('land/placing')
    if (placed.length % 64 === 63) await sleep(git.clock, 0)
    const between = git.point === undefined ? undefined : () => git.point?.('land/taken')
    const source = change.new === null ? undefined : onDisk(join(site.own, NEW), path)
    const expected = change.old === null ? undefined : marks.get(path)
    await swapOrLeave(site.top, join(site.own, TAKEN), { path, expected, source, between }, surprised)
    placed.push({ change, mark: source === undefined ? undefined : markAt(site.top, path) })
  }
  await syncFolders(site, todo)
  if (surprised === 'leave') return
  for (const { path } of todo) {
    const mark = marks.get(path)
    if (mark !== undefined && !isAsTaken(join(site.own, TAKEN), path, mark)) throw new Surprise(path)
  }
}

/** Gives everything that this process has placed its old place back, with what was taken, and needs no space for it. */
export async function undo(git: Git, site: Site, placed: readonly Placed[]): Promise<void> {
  for (const { change, mark } of placed.toReversed()) {
    const { path } = change
    await git.point?.('back/placing')
    const between = git.point === undefined ? undefined : () => git.point?.('back/taken')
    const source = change.old === null ? undefined : onDisk(join(site.own, TAKEN), path)
    const expected = change.new === null ? undefined : mark
    await swapOrLeave(site.top, join(site.own, UNDONE), { path, expected, source, between }, 'leave')
  }
  const changes = placed.map(({ change }) => change)
  await mendHoles(site, changes)
  await syncFolders(site, changes)
  await git.point?.('back/placed')
}

async function swapOrLeave(top: string, taken: string, one: Swap, surprised: 'throw' | 'leave'): Promise<void> {
  try {
    await swap(top, taken, one)
  } catch (error) {
    if (!(error instanceof Surprise) || surprised === 'throw') throw error
  }
}

async function syncFolders(site: Site, changes: readonly Change[]): Promise<void> {
  // Those above, too: a folder that came with its first file, or went with its last one, is named there.
  const folders = [...new Set(changes.flatMap(({ path }) => ['', ...parentsOf(path)]))]
  await together(folders, (folder) =>
    syncPath(onDisk(site.top, folder)).catch((error: unknown) => {
      if (errorCode(error) !== 'ENOENT' && errorCode(error) !== 'ENOTDIR') throw error
    }),
  )
}

/**
 * Puts the old side back wherever the new one is, unless the branch has something else there by now or somebody has edited it. What was taken away is
 * given back itself, so it is the same to the byte.
 */
export async function goBack(
  git: Git,
  site: Site,
  changes: readonly Change[],
  { from, to, tip }: { readonly from: Sha; readonly to: Sha; readonly tip: Sha | undefined },
): Promise<void> {
  const since = new Set((await changesBetween(git, site.repo, from, tip ?? from)).map(({ path }) => path))
  const ours = changes.filter(({ path }) => !since.has(path))
  await mendHoles(site, ours)
  const { sides, marks } = await viewOf(git, site, ours, { from, to })
  const todo = inOrder(ours)
    .toReversed()
    .filter(({ path }) => sides.get(path) === 'to')
  const paths = todo.flatMap((each) => (each.old ? [each.path] : []))
  await stageSide(git, site, { folder: OLD, index: 'index.from', paths })
  for (const change of todo) {
    const { path } = change
    await git.point?.('back/placing')
    const between = git.point === undefined ? undefined : () => git.point?.('back/taken')
    const kept = await findKept(site, path, TAKEN)
    const source = change.old === null ? undefined : (kept ?? onDisk(join(site.own, OLD), path))
    const expected = change.new === null ? undefined : marks.get(path)
    await swapOrLeave(site.top, join(site.own, UNDONE), { path, expected, source, between }, 'leave')
  }
  await syncFolders(site, todo)
  await git.point?.('back/placed')
}

/** A death between taking one file and naming the other leaves nothing there: what was taken gets its name back. */
export async function mendHoles(site: Site, changes: readonly Change[]): Promise<void> {
  for (const { path, old, new: next } of changes) {
    if (old === null || next === null || lookAt(site.top, path).kind !== 'nothing') continue
    const kept = (await findKept(site, path, TAKEN)) ?? (await findKept(site, path, UNDONE))
    if (kept === undefined) continue
    await mkdir(onDisk(site.top, parentOf(path)), { recursive: true })
    try {
      giveName(kept, onDisk(site.top, path), path)
    } catch (error) {
      if (!(error instanceof Surprise)) throw error
    }
  }
}

/** In this try or one before it. */
async function findKept(site: Site, path: RawPath, kind: string): Promise<Buffer | undefined> {
  const tries = (await readdir(site.stage)).filter((name) => name.startsWith('try-'))
  for (const each of tries) {
    const place = onDisk(join(site.stage, each, kind), path)
    const found = await lstat(place).catch(() => undefined)
    if (found !== undefined && !found.isDirectory()) return place
  }
  return undefined
}

/** The user's index with the new side, where it has the old one; everything else in it stays. */
export async function installIndex(git: Git, site: Site, changes: readonly Change[], view: View): Promise<void> {
  const entries = changes
    .filter(({ path }) => view.staged.get(path) === 'from')
    .map(({ path, new: entry }) => ({ path, entry }))
  if (entries.length === 0) return
  const [index, installed] = [join(site.own, 'index'), join(site.gitDir, 'index')]
  const desk = atDesk(site.repo, { workTree: site.top, index })
  await copyIndex(site, index)
  const { mode } = await stat(installed)
  await setEntries(git, site.repo, desk, entries)
  await tryGit(git, ['update-index', '-q', '--refresh', '--ignore-submodules'], desk)
  await chmod(index, mode & 0o777)
  await syncPath(index)
  // Its name is synced when the lock is gone, too.
  await rename(index, installed)
}
