import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { ensureFolder, named } from '../base/files.ts'
import type { Git } from './git.ts'
import { copyIfThere } from './own-index.ts'
import type { Repository } from './repository.ts'
import { quotedPath, runGit } from './run-git.ts'
import { commitOf, type Snapshot, type SnapshotOptions } from './snapshot.ts'

/** Where a shadow keeps what it sees: nothing of it is in the user's repository. */
export interface ShadowPlace {
  readonly folder: string
}
/** The object folder of a shadow: for `diff` and `checkOut`. */
export const objectsOf = (shadow: ShadowPlace): string => join(shadow.folder, 'objects')

/**
 * The user's working tree as it is now, uncommitted work included, as a commit in the shadow's own object folder; its parent is `parent`.
 * Called before and after the run; `diff({ from: before, to: after, objects })` is what happened meanwhile.
 */
export async function observe(
  git: Git,
  repo: Repository,
  shadow: ShadowPlace,
  options: Omit<SnapshotOptions, 'apart'>,
): Promise<Snapshot> {
  const [objects, index] = [objectsOf(shadow), join(shadow.folder, 'index')]
  await named(shadow.folder, async () => {
    await ensureFolder(shadow.folder)
    await mkdir(join(objects, 'info'), { recursive: true })
    await mkdir(join(objects, 'pack'), { recursive: true })
    // For whoever borrows from it in turn.
    await writeFile(join(objects, 'info/alternates'), `${quotedPath(join(repo.commonDir, 'objects'))}\n`)
    await copyIndex(git, repo, index)
  })
  const { parent, largestFile } = options
  const taking = { workTree: repo.top, index, objects, parent, ...(largestFile === undefined ? {} : { largestFile }) }
  return commitOf(git, repo, taking, options)
}

/** With the user's own: it knows which files it has seen, and only the others are read. Whoever replaces it does so by a rename. */
async function copyIndex(git: Git, repo: Repository, index: string): Promise<void> {
  const end = await runGit(git, ['rev-parse', '--absolute-git-dir'], { cwd: repo.top })
  await rm(index, { force: true })
  await copyIfThere(join(end.text, 'index'), index)
}
