import { readdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'

import type { Git } from './git.ts'
import { isOurLock, LOCK, unlockIndex } from './index-lock.ts'
import { GIVEN_UP, deleteRef, listOurs } from './refs.ts'
import { removeFolder, removeGoing } from './remove.ts'
import type { Repository } from './repository.ts'
import { workingTrees } from './working-trees.ts'

export interface Swept {
  readonly refs: readonly string[]
  readonly locks: readonly string[]
  readonly folders: readonly string[]
}

const TRANSACTIONS = 'refs/holdfast/tx/'

/**
 * Removes what is provably ours and of no run that is known: refs below `refs/holdfast/tx/`, staging folders in the git folders of all working
 * trees, and an `index.lock` that is a second name of the lock of such a folder. `known` says whether a run still owns its things here, `barred`
 * whether somebody could still be paused in a landing of it that was given up.
 */
export async function sweep(
  git: Git,
  repo: Repository,
  known: (runId: string) => boolean,
  barred: (runId: string) => boolean = known,
): Promise<Swept> {
  const refs: string[] = []
  const isNeeded = (ref: string) =>
    ref.startsWith(GIVEN_UP)
      ? barred(ref.slice(GIVEN_UP.length))
      : !ref.startsWith(TRANSACTIONS) || known(ref.slice(TRANSACTIONS.length))
  for (const { ref } of await listOurs(git, repo)) {
    if (isNeeded(ref)) continue
    await deleteRef(git, repo, ref)
    refs.push(ref)
  }
  const [locks, folders]: [string[], string[]] = [[], []]
  for (const { gitDir } of await workingTrees(git, repo)) {
    if (gitDir === undefined) continue
    const all = join(gitDir, 'holdfast')
    await removeGoing(git, all)
    for (const runId of await readdir(all).catch(() => [])) {
      if (known(runId)) continue
      const stage = join(all, runId)
      if (await isOurLock(gitDir, stage)) locks.push(join(gitDir, LOCK))
      await unlockIndex(gitDir, stage)
      await removeFolder(git, stage)
      folders.push(stage)
    }
    // Empty, unless others land here.
    await rmdir(all).catch(() => {})
  }
  return { refs, locks, folders }
}
