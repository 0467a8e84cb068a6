import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { LIMITS } from '../base/limits.ts'
import { treeOf, writeCommit } from './commit.ts'
import type { Git, Sha } from './git.ts'
import type { Repository } from './repository.ts'
import { atDesk } from './room.ts'
import { askGit, failureOf, runGit, tryGit, type GitOptions } from './run-git.ts'
import type { Snapshot } from './snapshot.ts'
import type { TreePlace } from './tree.ts'

export type Kept =
  | { readonly kind: 'kept'; readonly commit: Sha; /** The agent's own. */ readonly count: number }
  | { readonly kind: 'none'; readonly why: string }

export interface KeepCommits {
  readonly base: Sha
  readonly snapshot: Snapshot
  readonly message: string
  readonly at: number
}

/**
 * The agent's own commits, brought over into the user's object store, and one more on top for what it did not commit. `none`: its HEAD does not descend from
 * the base, or is the base, or its repository cannot be read; use the snapshot as it is.
 */
export async function keptCommits(git: Git, repo: Repository, place: TreePlace, options: KeepCommits): Promise<Kept> {
  const { base, snapshot, message, at } = options
  const asked = ['rev-parse', '--verify', '-q', 'HEAD^{commit}']
  const head = await tryGit(git, asked, { gitDir: place.git })
  // Absent is the folder, not git: the agent has removed it.
  if (head.code === null && head.cut !== 'absent') throw await failureOf(asked, head, {})
  if (head.code !== 0) return none('its repository cannot be read any more')
  const tip = head.stdout.toString().trim()
  if (tip === base) return none('it made no commit')
  const objects = join(place.git, 'objects')
  const ancestor = await askGit(git, ['merge-base', '--is-ancestor', base, tip], atDesk(repo, { objects }))
  if (ancestor.code !== 0) return none('its commits do not go on from the base')
  const most = ['rev-list', '--count', `--max-count=${LIMITS.keptCommits + 1}`, tip, `^${base}`]
  const count = Number((await runGit(git, most, atDesk(repo, { objects }))).text)
  if (count > LIMITS.keptCommits) return none(`it made more than ${LIMITS.keptCommits} commits`)
  const brought = await bringOver(git, repo, place, { tip, base })
  if (brought !== undefined) return none(brought)
  if ((await treeOf(git, repo, tip)) === snapshot.tree) return { kind: 'kept', commit: tip, count }
  const commit = await writeCommit(git, repo, { tree: snapshot.tree, parents: [tip], at, message })
  return { kind: 'kept', commit, count }
}

const none = (why: string): Kept => ({ kind: 'none', why })

/** Whether git took it. That the disk is full says nothing about what it was given. */
async function isDone(git: Git, args: readonly string[], options: GitOptions): Promise<boolean> {
  const end = await askGit(git, args, options)
  if (end.code === 0) return true
  const failure = await failureOf(args, end, options)
  if (failure.code === 'files/full') throw failure
  return false
}

/** As a pack, every object of it looked at: what an agent made may be anything. Says what is wrong with it. */
async function bringOver(
  git: Git,
  repo: Repository,
  place: TreePlace,
  { tip, base }: { readonly tip: Sha; readonly base: Sha },
): Promise<string | undefined> {
  const folder = join(place.folder, 'transfer')
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
  try {
    const desk = atDesk(repo, { objects: join(place.git, 'objects') })
    const packing = { ...desk, input: `${tip}\n^${base}\n` }
    if (!(await isDone(git, ['pack-objects', '--revs', '-q', join(folder, 'pack')], packing)))
      return 'its repository is damaged'
    for (const name of (await readdir(folder)).filter((each) => each.endsWith('.pack'))) {
      const input = { file: join(folder, name) }
      if (!(await isDone(git, ['index-pack', '--stdin', '--strict'], { ...atDesk(repo), input })))
        return 'git does not accept what is in its commits'
    }
    return undefined
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
