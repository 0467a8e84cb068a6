import { LIMITS } from '../base/limits.ts'
import { HoldfastError } from '../base/errors.ts'
import type { Git, Sha } from './git.ts'
import { listed, records, shownPath, type RawPath } from './paths.ts'
import type { Repository } from './repository.ts'
import { atDesk } from './room.ts'
import { failureOf, runGit, tryGit } from './run-git.ts'
import type { Changes } from './snapshot.ts'

export interface Range {
  /** Commits or trees. */
  readonly from: Sha
  readonly to: Sha
  /** Of a shadow. */
  readonly objects?: string
}

const PLAIN = ['--no-ext-diff', '--no-textconv', '--no-color'] as const

/** From one to the other, as `git diff` says it, cut after `maxBytes`. */
export async function diff(
  git: Git,
  repo: Repository,
  { from, to, objects }: Range,
  maxBytes: number = LIMITS.diffBytes,
): Promise<{ readonly text: string; readonly cut: boolean }> {
  const asked = ['diff-tree', '-r', '-p', '-M', '--stat', '--summary', '--full-index', ...PLAIN, from, to]
  const options = { ...atDesk(repo, { objects }), maxBytes }
  const end = await tryGit(git, asked, options)
  if (end.cut === 'output') return { text: end.stdout.toString(), cut: true }
  if (end.cut !== undefined || end.code === null) throw await failureOf(asked, end, options)
  if (end.code !== 0) {
    throw new HoldfastError(
      'git/failed',
      `the difference of ${from} and ${to} is not to be had: ${end.stderr.trim()}`,
      {
        remedy: 'check the repository with git fsck',
      },
    )
  }
  return { text: end.stdout.toString(), cut: false }
}

export async function changedPaths(git: Git, repo: Repository, { from, to, objects }: Range): Promise<Changes> {
  const asked = ['diff-tree', '-r', '-z', '--numstat', '--no-renames', ...PLAIN, from, to]
  const all = records((await runGit(git, asked, atDesk(repo, { objects }))).stdout).map(counted)
  return {
    changed: listed(all).map(({ path }) => shownPath(path)),
    changedCount: all.length,
    linesAdded: all.reduce((sum, { added }) => sum + added, 0),
    linesRemoved: all.reduce((sum, { removed }) => sum + removed, 0),
  }
}

/** `12\t3\tpath`; of a binary file `-\t-\tpath`. */
function counted(record: RawPath): { readonly added: number; readonly removed: number; readonly path: RawPath } {
  const [added = '', removed = ''] = record.split('\t', 2)
  return {
    added: Number(added) || 0,
    removed: Number(removed) || 0,
    path: record.slice(added.length + removed.length + 2),
  }
}

/** Whether one path is the same in both. */
export async function samePath(
  git: Git,
  repo: Repository,
  { from, to, objects }: Range,
  path: string,
): Promise<boolean> {
  const asked = ['diff-tree', '-r', '-z', '--name-only', '--no-renames', ...PLAIN, from, to, '--', path]
  return (await runGit(git, asked, atDesk(repo, { objects }))).stdout.length === 0
}
