import { join } from 'node:path'

import { errorCode, syncFolder } from '../base/files.ts'
import type { Git, Sha } from './git.ts'
import type { Repository } from './repository.ts'
import { atDesk } from './room.ts'
import { runGit } from './run-git.ts'

/**
 * Git syncs what is in its objects, and not the folders that name them: before something of ours says that a commit is there, or a ref
 * names it, these are synced. Only those that can have changed: a small commit has a few.
 */
export async function syncObjects(
  git: Git,
  repo: Repository,
  { from, to }: { readonly from?: Sha; readonly to: Sha },
): Promise<void> {
  if (from === to) return
  const asked = ['rev-list', '--objects', '--no-object-names', to, ...(from === undefined ? [] : [`^${from}`])]
  const { text } = await runGit(git, asked, atDesk(repo))
  const objects = join(repo.commonDir, 'objects')
  const folders = new Set(text.split('\n').map((sha) => sha.slice(0, 2)))
  await Promise.all([...folders, 'pack'].map((folder) => syncIfThere(join(objects, folder))))
  await syncFolder(objects)
}

/** Packed, or borrowed from another repository: then there is none. */
export async function syncIfThere(folder: string): Promise<void> {
  await syncFolder(folder).catch((error: unknown) => {
    if (!NO_FOLDER.includes(errorCode(error))) throw error
  })
}
const NO_FOLDER: readonly unknown[] = ['ENOENT', 'ENOTDIR', 'files/not-a-folder']
