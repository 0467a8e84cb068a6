import { stat } from 'node:fs/promises'
import { join } from 'node:path'

import { writeCommit } from './commit.ts'
import { changedPaths } from './diff.ts'
import type { Git, Sha } from './git.ts'
import { listed, shownPath } from './paths.ts'
import type { Repository } from './repository.ts'
import { takeTree, type Taking } from './take.ts'
import type { TreePlace } from './tree.ts'

export interface LeftOut {
  readonly path: string
  readonly why: string
}

export interface Changes {
  /** Paths as text; one that is no UTF-8 or has control characters is quoted as git quotes it. Bounded; `changedCount` is not. */
  readonly changed: readonly string[]
  readonly changedCount: number
  /** Of all of them; binary files have no lines. */
  readonly linesAdded: number
  readonly linesRemoved: number
}

export interface Snapshot extends Changes {
  /** Equal to `parent` when nothing changed. */
  readonly commit: Sha
  readonly tree: Sha
  /** What is not in the commit, and why: nested repositories, filled submodules, special files, files over the limit. Bounded. */
  readonly leftOut: readonly LeftOut[]
  readonly leftOutCount: number
  /** Files and folders (each once) that git ignores: they are not in the commit. */
  readonly ignored: number
}

export interface SnapshotOptions {
  /** What the changes are counted from, and the parent of the new commit. */
  readonly parent: Sha
  readonly message: string
  /** Milliseconds since 1970, from the row: the same work makes the same commit. */
  readonly at: number
  /** The paths that `copy` and `link` brought: never part of the work. */
  readonly apart?: readonly string[]
  readonly largestFile?: number
}

/**
 * One commit of everything that is in the tree now, in the user's object store, on no branch and under no ref yet. Needs only the files and our own
 * index: whatever the agent did to its repository does not matter. Can be taken again and again.
 */
export async function snapshot(
  git: Git,
  repo: Repository,
  place: TreePlace,
  options: SnapshotOptions,
): Promise<Snapshot> {
  const { parent, apart, largestFile } = options
  const taking = {
    workTree: place.tree,
    index: place.index,
    parent,
    ...((await wasTouched(place)) ? { othersIndex: join(place.git, 'index') } : {}),
    ...(apart === undefined ? {} : { apart }),
    ...(largestFile === undefined ? {} : { largestFile }),
  }
  return commitOf(git, repo, taking, options)
}

/** Its own index is as we made it: nothing was added there. `.git` was written after it. */
async function wasTouched(place: TreePlace): Promise<boolean> {
  const time = (path: string) =>
    stat(path, { bigint: true }).then(
      ({ mtimeNs }) => mtimeNs,
      () => undefined,
    )
  const [index, made] = await Promise.all([time(join(place.git, 'index')), time(join(place.tree, '.git'))])
  return index !== undefined && (made === undefined || index > made)
}

export async function commitOf(
  git: Git,
  repo: Repository,
  taking: Taking,
  { parent, message, at }: Pick<SnapshotOptions, 'parent' | 'message' | 'at'>,
): Promise<Snapshot> {
  const { objects } = taking
  const { tree, leftOut, ignored } = await takeTree(git, repo, taking)
  const range = { from: parent, to: tree, ...(objects === undefined ? {} : { objects }) }
  const changes = await changedPaths(git, repo, range)
  const isSame = changes.changedCount === 0
  const commit = isSame ? parent : await writeCommit(git, repo, { tree, parents: [parent], at, message, objects })
  await git.point?.('snapshot/committed')
  return {
    ...changes,
    commit,
    tree,
    leftOut: listed(leftOut).map(({ path, why }) => ({ path: shownPath(path), why })),
    leftOutCount: leftOut.length,
    ignored,
  }
}
