import { lstat, readFile, readdir, realpath } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'

import { errorCode } from '../base/files.ts'
import type { Git } from './git.ts'
import type { Repository } from './repository.ts'
import { runGit } from './run-git.ts'

/** A working tree of the user's repository. */
export interface WorkingTree {
  readonly top: string
  /** Its own git folder; `undefined`: the folder is gone, on a disk that is not there, or another repository's. */
  readonly gitDir: string | undefined
  readonly branch: string | undefined
}

export async function workingTrees(git: Git, repo: Repository): Promise<WorkingTree[]> {
  const { stdout } = await runGit(git, ['worktree', 'list', '--porcelain', '-z'], { gitDir: repo.commonDir })
  const entries = stdout
    .toString()
    .split('\0\0')
    .map((entry) => new Map(entry.split('\0').map((line) => split(line))))
    .filter((entry) => entry.has('worktree') && !entry.has('bare'))
  // A link may lead there since.
  const common = await realpath(repo.commonDir)
  return Promise.all(
    entries.map(async (entry, at): Promise<WorkingTree> => {
      const listed = entry.get('worktree')!
      // Of the main one git only guesses the folder, from where its git folder is.
      const top = at === 0 && (await gitDirOf(repo.top)) === common ? repo.top : listed
      const found = await gitDirOf(top)
      // Where one was removed by hand there may be another repository by now.
      const isOurs = found === common || found?.startsWith(join(common, 'worktrees', sep)) === true
      return { top, gitDir: isOurs ? found : undefined, branch: entry.get('branch') }
    }),
  )
}

const split = (line: string): [string, string] => {
  const gap = line.indexOf(' ')
  return gap === -1 ? [line, ''] : [line.slice(0, gap), line.slice(gap + 1)]
}

/** The git folder of a working tree, read from its `.git`. */
async function gitDirOf(top: string): Promise<string | undefined> {
  const place = join(top, '.git')
  try {
    if ((await lstat(place)).isFile()) {
      const [, named = ''] = /^gitdir: (.*)\n?$/.exec(await readFile(place, 'utf8')) ?? []
      return await realpath(resolve(top, named))
    }
    return await realpath(place)
  } catch {
    return undefined
  }
}

/** Of all working trees, also of those whose folder is not there. */
export async function gitDirsOf({ commonDir }: Pick<Repository, 'commonDir'>): Promise<string[]> {
  const linked = join(commonDir, 'worktrees')
  const found = await readdir(linked, { withFileTypes: true }).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  })
  return [commonDir, ...found.filter((each) => each.isDirectory()).map(({ name }) => join(linked, name))]
}

/** Where the working tree of such a folder was, by its own word. */
export async function topOf({ commonDir, top }: Repository, gitDir: string): Promise<string> {
  if (gitDir === commonDir) return top
  const named = await readFile(join(gitDir, 'gitdir'), 'utf8').catch(() => '')
  return named === '' ? gitDir : dirname(resolve(gitDir, named.trimEnd()))
}

/** A branch that is in the middle of a rebase or a bisection belongs to it, though HEAD is elsewhere. */
export async function isBusyWith(gitDir: string, target: string): Promise<boolean> {
  const short = target.replace(/^refs\/heads\//, '')
  const places = ['rebase-merge/head-name', 'rebase-apply/head-name', 'BISECT_START']
  const named = await Promise.all(places.map((place) => readFile(join(gitDir, place), 'utf8').catch(() => '')))
  return named.some((name) => name.trim() === target || name.trim() === short)
}

const OPERATIONS: Readonly<Record<string, string>> = {
  MERGE_HEAD: 'a merge',
  'rebase-merge': 'a rebase',
  'rebase-apply': 'a rebase',
  CHERRY_PICK_HEAD: 'a cherry-pick',
  REVERT_HEAD: 'a revert',
  sequencer: 'a cherry-pick or revert',
  BISECT_LOG: 'a bisection',
}

/** What the user is in the middle of. */
export async function operationIn(gitDir: string): Promise<string | undefined> {
  for (const [name, what] of Object.entries(OPERATIONS)) {
    const found = await lstat(join(gitDir, name)).catch(() => undefined)
    if (found !== undefined) return what
  }
  return undefined
}
