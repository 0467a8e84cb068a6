import { constants } from 'node:fs'
import { cp, lstat, mkdir, realpath, symlink } from 'node:fs/promises'
import { dirname, join, normalize, sep } from 'node:path'

import { HoldfastError } from '../base/errors.ts'

export interface Extras {
  /** Paths from the top of the user's working tree, as a rule ignored ones, that a tree of ours gets a copy of, or a link to. */
  readonly copy?: readonly string[]
  readonly link?: readonly string[]
}

export const extrasOf = ({ copy = [], link = [] }: Extras): readonly string[] => [...copy, ...link].map(plain)

const plain = (path: string) => normalize(path).replace(/\/+$/, '')

const refuse = (path: string, why: string) =>
  new HoldfastError('git/no-such-extra', `${path} cannot be brought into the workspace: ${why}`, {
    remedy: 'name files or folders by their path from the top of the repository that git does not track',
  })

/** Before anything is made: a mistake in the configuration is told at once. */
export async function checkExtras(top: string, extras: Extras): Promise<void> {
  for (const path of extrasOf(extras)) {
    const parts = path.split(sep)
    if (path.startsWith(sep) || parts.includes('..') || path === '.') throw refuse(path, 'it is not inside of it')
    if (parts.some((part) => part.toLowerCase() === '.git')) throw refuse(path, 'it is part of a repository')
    await lstat(join(top, path)).catch(() => {
      throw refuse(path, 'there is no such file or folder')
    })
  }
}

export async function bringExtras(top: string, tree: string, extras: Extras): Promise<void> {
  const real = await realpath(tree)
  for (const path of (extras.copy ?? []).map(plain)) {
    const to = await placeFor(real, path)
    // Where the file system can, nothing is copied but the name. Links are copied as links.
    const mode = constants.COPYFILE_FICLONE
    await cp(join(top, path), to, { recursive: true, verbatimSymlinks: true, errorOnExist: true, force: false, mode })
  }
  for (const path of (extras.link ?? []).map(plain)) await symlink(join(top, path), await placeFor(real, path))
}

/** A tracked link in the way could lead out of the tree. */
async function placeFor(tree: string, path: string): Promise<string> {
  const to = join(tree, path)
  const isTaken = await lstat(to).then(
    () => true,
    () => false,
  )
  if (isTaken) throw refuse(path, 'git tracks it, so it is there already')
  await mkdir(dirname(to), { recursive: true })
  const parent = await realpath(dirname(to))
  if (parent !== tree && !parent.startsWith(`${tree}${sep}`)) throw refuse(path, 'a link leads out of the tree there')
  return to
}
