import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { readCommit, treeOf, writeCommit } from './commit.ts'
import type { Git, Sha } from './git.ts'
import { listed, records, shownPath } from './paths.ts'
import type { Repository } from './repository.ts'
import { atDesk } from './room.ts'
import { runGit } from './run-git.ts'

export type OnTop =
  /** The branch is still at the base, or there is nothing that it does not have: the work itself, or the tip, is the candidate. */
  | { readonly kind: 'same'; readonly commit: Sha }
  | { readonly kind: 'rebased'; readonly commit: Sha }
  | { readonly kind: 'conflict'; readonly paths: readonly string[]; readonly count: number }

export interface PutOnTop {
  /** One commit or several on `base`. */
  readonly work: Sha
  readonly base: Sha
  /** The tip of the branch. */
  readonly target: Sha
  readonly at: number
}

/**
 * The work on top of the target. Pure: it makes objects, and moves nothing; the same arguments make the same commit. History is not looked at,
 * however long it is.
 */
export async function putOnTop(git: Git, repo: Repository, options: PutOnTop): Promise<OnTop> {
  const { work, base, target, at } = options
  if (work === base) return { kind: 'same', commit: target }
  if (target === base) return { kind: 'same', commit: work }
  let tip = target
  for (const step of await stepsOf(git, repo, work, base)) {
    const put = await putOne(git, repo, step, tip, at)
    if (typeof put !== 'string') return { kind: 'conflict', paths: listed(put).map(shownPath), count: put.length }
    tip = put
  }
  return tip === target ? { kind: 'same', commit: target } : { kind: 'rebased', commit: tip }
}

interface Step {
  readonly before: Sha
  readonly commit: Sha
}

/** Commit by commit where they follow one another; with merges among them, everything in one. */
async function stepsOf(git: Git, repo: Repository, work: Sha, base: Sha): Promise<Step[]> {
  const { parents } = await readCommit(git, repo, work)
  if (parents.length === 1 && parents[0] === base) return [{ before: base, commit: work }]
  const asked = ['rev-list', '--reverse', '--topo-order', '--parents', `--max-count=${LIMITS.keptCommits + 2}`]
  const { text } = await runGit(git, [...asked, work, `^${base}`], atDesk(repo))
  const all = text.split('\n').map((line) => line.split(' '))
  const follows = all.every(([, ...before], at) => before.length === 1 && before[0] === (all[at - 1]?.[0] ?? base))
  if (!follows) return [{ before: base, commit: work }]
  return all.map(([commit, before]) => ({ before: before!, commit: commit! }))
}

/** Answers the new tip, or the paths that disagree. */
async function putOne(
  git: Git,
  repo: Repository,
  { before, commit }: Step,
  tip: Sha,
  at: number,
): Promise<Sha | string[]> {
  const { author, encoding, message, ...step } = await readCommit(git, repo, commit)
  const tipTree = await treeOf(git, repo, tip)
  // Two children of the commit before the step: so that is what both sides are compared with, whatever the branch's history is.
  const ours = await writeCommit(git, repo, { tree: tipTree, parents: [before], at: 0, message: 'ours' })
  const theirs = await writeCommit(git, repo, { tree: step.tree, parents: [before], at: 0, message: 'theirs' })
  const asked = ['merge-tree', '--write-tree', '-z', '--name-only', '--no-messages', ours, theirs]
  const { code, stdout } = await runGit(git, asked, atDesk(repo), [0, 1])
  const [tree = '', ...paths] = records(stdout)
  if (code === 1) return [...new Set(paths.filter((path) => path !== ''))]
  if (!/^[0-9a-f]{40,64}$/.test(tree))
    throw new HoldfastError('git/failed', `git merge-tree answered ${tree}`, {
      remedy: 'check that git is 2.39 or newer',
    })
  if (tree === tipTree) return tip
  return writeCommit(git, repo, { tree, parents: [tip], at, author, encoding, message })
}
