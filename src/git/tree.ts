import { lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { ensureFolder, errorCode, named, syncFolder, writeFileAtomic } from '../base/files.ts'
import { thisPlace } from '../processes/identity.ts'
import { copyIndexFile } from './index-file.ts'
import { bringExtras, checkExtras, type Extras } from './extras.ts'
import type { Git, Sha } from './git.ts'
import { onOwnIndex } from './own-index.ts'
import { listed, records, shownPath } from './paths.ts'
import { makePrivate } from './private-repository.ts'
import { removeFolder } from './remove.ts'
import type { Repository } from './repository.ts'
import { atDesk } from './room.ts'
import { runGit, tryGit } from './run-git.ts'

/** What is where in the folder of one transaction. */
export interface TreePlace {
  readonly folder: string
  /** The files. */
  readonly tree: string
  /** The private repository. */
  readonly git: string
  /** Our index: it is there when, and only when, the tree was completed. */
  readonly index: string
  /** When the machine was started in which it was made, or taken up. */
  readonly boot: string
}
export const placeIn = (folder: string): TreePlace => ({
  folder,
  tree: join(folder, 'tree'),
  git: join(folder, 'git'),
  index: join(folder, 'index'),
  boot: join(folder, 'boot'),
})

export interface OpenTree extends Extras {
  readonly base: Sha
  /** As people say it: `holdfast/RUN`. */
  readonly branch: string
  /** A checkpoint on the base, whose files are wanted: they are changes that the agent did not commit. */
  readonly content?: Sha
}

/**
 * A private repository at `base`, checked out, on a branch of its own. What an earlier try left half made is removed first. Throws
 * `git/no-such-extra` for a copy or link of what is not there, is outside, or is tracked. Complete means: no death of a process can leave less. After a
 * power loss files may be missing: then it is opened again, or given up.
 */
export async function openTree(git: Git, repo: Repository, place: TreePlace, options: OpenTree): Promise<void> {
  await checkExtras(repo.top, options)
  await named(place.folder, () => makeTree(git, repo, place, options))
}

async function makeTree(git: Git, repo: Repository, place: TreePlace, options: OpenTree): Promise<void> {
  const { base, branch, content = base } = options
  await ensureFolder(place.folder)
  await rm(place.index, { force: true })
  await removeFolder(git, place.tree)
  await removeFolder(git, place.git)
  await git.point?.('open/begun')
  await mkdir(place.tree)
  await makePrivate(git, repo, place.git, { head: { branch, commit: base }, extras: options })
  await writeFile(place.boot, thisPlace().boot)
  await git.point?.('open/repository-made')
  await onOwnIndex(place.index, 'empty', async (index) => {
    await fillFolder(git, repo, { folder: place.tree, index }, content)
    await giveIndex(git, place, index, content === base ? undefined : base)
    await writeFile(join(place.tree, '.git'), 'gitdir: ../git\n')
    await git.point?.('open/files-out')
    await bringExtras(repo.top, place.tree, options)
  })
  await syncFolder(place.folder)
  await git.point?.('open/complete')
}

/** The agent's own index: with what git knows about the files, so that its first `git status` does not read them all. */
async function giveIndex(git: Git, place: TreePlace, index: string, base: Sha | undefined): Promise<void> {
  await copyIndexFile(index, join(place.git, 'index'))
  if (base === undefined) return
  await runGit(git, ['read-tree', '--reset', base], { gitDir: place.git, workTree: place.tree })
}

/** Whether `openTree` came to its end. */
export const isOpen = (place: TreePlace): Promise<boolean> =>
  lstat(place.index).then(
    (found) => found.isFile(),
    () => false,
  )

/** Whole or not at all: half a note would be another boot's. */
export async function noteBoot(place: TreePlace): Promise<void> {
  const { boot } = thisPlace()
  if ((await bootOf(place)) !== boot) await writeFileAtomic(place.boot, boot)
}

/**
 * Whether the machine went on since it was made, or taken up. Otherwise files may be missing in it, or be empty: nobody syncs what is written there.
 * One that says nothing was made before anybody asked.
 */
export async function isOfThisBoot(place: TreePlace): Promise<boolean> {
  const boot = await bootOf(place)
  return boot === undefined || boot === thisPlace().boot
}

const bootOf = (place: TreePlace): Promise<string | undefined> =>
  readFile(place.boot, 'utf8').catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  })

/** Where a check runs: a folder of its own, its index (ours), and its repository, all three beside each other. */
export interface CheckPlace {
  readonly folder: string
  readonly index: string
  readonly git: string
  /** Of a shadow: where its objects are. */
  readonly objects?: string
}
export const checkIn = (folder: string): CheckPlace => ({
  folder: join(folder, 'check'),
  index: join(folder, 'check-index'),
  git: join(folder, 'check-git'),
})

/** The tree of a commit in a folder of its own, made anew, with a private repository whose HEAD is that commit. */
export async function checkOut(
  git: Git,
  repo: Repository,
  place: CheckPlace,
  commit: Sha,
  extras: Extras = {},
): Promise<void> {
  await checkExtras(repo.top, extras)
  await named(place.folder, () => makeCheckOut(git, repo, place, commit, extras))
}

async function makeCheckOut(git: Git, repo: Repository, place: CheckPlace, commit: Sha, extras: Extras): Promise<void> {
  await removeCheckOut(git, place)
  await ensureFolder(place.folder)
  await makePrivate(git, repo, place.git, { head: { commit }, extras, objects: place.objects })
  await onOwnIndex(place.index, 'empty', (index) => fillFolder(git, repo, { ...place, index }, commit))
  await writeFile(join(place.folder, '.git'), `gitdir: ${place.git}\n`)
  await copyIndexFile(place.index, join(place.git, 'index'))
  await bringExtras(repo.top, place.folder, extras)
}

export async function removeCheckOut(git: Git, place: CheckPlace): Promise<void> {
  await rm(place.index, { force: true })
  await removeFolder(git, place.folder)
  await removeFolder(git, place.git)
}

/** Tracked files of such a folder that are not as the commit has them, up to a bound; new files are no change. */
export async function changedIn(git: Git, repo: Repository, place: CheckPlace): Promise<readonly string[]> {
  const { folder, objects } = place
  return onOwnIndex(place.index, 'as-it-is', async (index) => {
    const desk = atDesk(repo, { workTree: folder, index, objects })
    await tryGit(git, ['update-index', '-q', '--refresh'], desk)
    const { stdout } = await runGit(git, ['diff-files', '-z', '--name-only', '--ignore-submodules=all'], desk)
    return listed(records(stdout)).map(shownPath)
  })
}

/** Every core writes: with two, fifty thousand files take two thirds of the time. */
const ALL_CORES = { 'checkout.workers': '0', 'checkout.thresholdForParallelism': '100' }

async function fillFolder(
  git: Git,
  repo: Repository,
  place: { readonly folder: string; readonly index: string; readonly objects?: string },
  commit: Sha,
): Promise<void> {
  const { folder, index, objects } = place
  const desk = atDesk(repo, { workTree: folder, index, objects })
  await runGit(git, ['read-tree', '--reset', '-u', commit], { ...desk, settings: ALL_CORES })
}
