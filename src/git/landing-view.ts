import { rm } from 'node:fs/promises'
import { join } from 'node:path'

import { sleep } from '../base/clock.ts'
import type { Git, Sha } from './git.ts'
import { setEntries, type Entry } from './index-entries.ts'
import { copyIfThere } from './own-index.ts'
import { records, type RawPath } from './paths.ts'
import type { Repository } from './repository.ts'
import { atDesk } from './room.ts'
import { runGit, type GitOptions } from './run-git.ts'
import { lookAt, type Mark, type There } from './swap.ts'

/** One path that a landing changes. */
export interface Change {
  readonly path: RawPath
  /** Null: it is not there on that side. */
  readonly old: Entry | null
  readonly new: Entry | null
}

export async function changesBetween(git: Git, repo: Repository, from: Sha, to: Sha): Promise<Change[]> {
  const asked = ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--full-index', '--no-ext-diff', from, to]
  const fields = records((await runGit(git, asked, atDesk(repo))).stdout)
  const changes: Change[] = []
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [oldMode = '', newMode = '', oldSha = '', newSha = ''] = fields[at]!.slice(1).split(' ')
    changes.push({ path: fields[at + 1]!, old: entry(oldMode, oldSha), new: entry(newMode, newSha) })
  }
  return changes
}

const entry = (mode: string, sha: Sha): Entry | null => (mode === '000000' ? null : { mode, sha })

/** Where a landing happens: a working tree, and the folder of this try. */
export interface Site {
  readonly repo: Repository
  readonly top: string
  readonly gitDir: string
  /** `holdfast/RUN` in the git folder. */
  readonly stage: string
  /** Below it, of this process alone: a child of one that was killed may still write into the one before. */
  readonly own: string
}

/** On whose side a path is now; `from` where the two cannot be told apart. */
export type Side = 'from' | 'to' | 'other'

export interface View {
  readonly sides: ReadonlyMap<RawPath, Side>
  /** What was at each path just before its content was compared: as long as it is the same, so is the content. */
  readonly marks: ReadonlyMap<RawPath, Mark | undefined>
  /** On whose side the user's index is, path by path. */
  readonly staged: ReadonlyMap<RawPath, Side>
  /** Anything tracked, of the landing or not, that is not as `from` has it: in the files, or in the index. */
  readonly dirty: readonly RawPath[]
  /** Something that git does not track is where a new file belongs. */
  readonly inTheWay: readonly RawPath[]
}

/** Looks at the user's tree and index, by content, and changes nothing: what is written is in a folder of ours. */
export async function viewOf(
  git: Git,
  site: Site,
  changes: readonly Change[],
  { from, to }: { readonly from: Sha; readonly to: Sha },
): Promise<View> {
  const there = await lookAtAll(git, site, changes)
  const desk = (index: string) => atDesk(site.repo, { workTree: site.top, index })
  const [old, next] = [join(site.own, 'index.from'), join(site.own, 'index.to')]
  await copyIndex(site, old)
  await copyIndex(site, next)
  const [stagedFrom, stagedTo] = [await notStaged(git, desk(old), from), await notStaged(git, desk(old), to)]
  await setEntries(
    git,
    site.repo,
    desk(old),
    changes.map(({ path, old: side }) => ({ path, entry: side })),
  )
  await setEntries(
    git,
    site.repo,
    desk(next),
    changes.map(({ path, new: side }) => ({ path, entry: side })),
  )
  const [unlikeFrom, unlikeTo] = await Promise.all([unlike(git, desk(old)), unlike(git, desk(next))])
  const sides = new Map<RawPath, Side>()
  const inTheWay: RawPath[] = []
  for (const change of changes) {
    const is = there.get(change.path)!
    sides.set(change.path, sideOf(change, is, unlikeFrom, unlikeTo))
    if (change.old === null && (is.kind === 'file' || isBlocked(is, changes))) inTheWay.push(change.path)
  }
  const marks = new Map([...there].map(([path, is]) => [path, is.kind === 'file' ? is.mark : undefined]))
  const staged = new Map(changes.map(({ path }) => [path, stagedSide(path, stagedFrom, stagedTo)]))
  return { sides, marks, staged, dirty: [...new Set([...unlikeFrom, ...stagedFrom])], inTheWay }
}

async function lookAtAll(git: Git, site: Site, changes: readonly Change[]): Promise<Map<RawPath, There>> {
  const all = new Map<RawPath, There>()
  for (const { path } of changes) {
    all.set(path, lookAt(site.top, path))
    // Others have their turn in between.
    if (all.size % 256 === 0) await sleep(git.clock, 0)
  }
  return all
}

/** A tracked file above, which the landing removes, makes room by that. */
const isBlocked = (is: There, changes: readonly Change[]) =>
  is.kind === 'blocked' && !changes.some(({ path, new: side }) => path === is.by && side === null)

function sideOf(change: Change, is: There, unlikeFrom: Set<RawPath>, unlikeTo: Set<RawPath>): Side {
  const isAbsent = is.kind !== 'file'
  const isFrom = change.old === null ? isAbsent : !unlikeFrom.has(change.path)
  if (isFrom) return 'from'
  const isTo = change.new === null ? isAbsent : !unlikeTo.has(change.path)
  return isTo ? 'to' : 'other'
}

const stagedSide = (path: RawPath, notFrom: Set<RawPath>, notTo: Set<RawPath>): Side => {
  if (!notFrom.has(path)) return 'from'
  return notTo.has(path) ? 'other' : 'to'
}

/** No index at all: nothing is staged, as after a `git rm --cached` of everything. */
export async function copyIndex(site: Site, to: string): Promise<void> {
  await rm(to, { force: true })
  await copyIfThere(join(site.gitDir, 'index'), to)
}

/** Paths whose entry in the index is not that of the commit. */
async function notStaged(git: Git, desk: GitOptions, commit: Sha): Promise<Set<RawPath>> {
  const asked = ['diff-index', '--cached', '-z', '--name-only', '--no-renames', '--ignore-submodules=none', commit]
  return new Set(records((await runGit(git, asked, desk)).stdout))
}

/** Tracked paths whose file is not as the index says. What is newly entered is read; the rest only if it was touched. */
async function unlike(git: Git, desk: GitOptions): Promise<Set<RawPath>> {
  // 1: something is not as the index says. Any other: what it could not look at would count as an edit.
  await runGit(git, ['update-index', '-q', '--refresh', '--ignore-submodules'], desk, [0, 1])
  const asked = ['diff-files', '-z', '--name-only', '--no-renames', '--ignore-submodules=all']
  return new Set(records((await runGit(git, asked, desk)).stdout))
}
