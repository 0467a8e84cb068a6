import { realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { HoldfastError } from '../base/errors.ts'
import type { Git, Sha } from './git.ts'
import { records } from './paths.ts'
import { atDesk, makeRoom, readSettings, type Settings } from './room.ts'
import { askGit, failureOf, runGit, tryGit } from './run-git.ts'

/** Enough to work with a repository; a row keeps `commonDir` and `top`, `repositoryAt` makes this of them. */
export interface Repository {
  /** The git folder that all working trees of it share, with no links in its path: its identity on this machine. */
  readonly commonDir: string
  /** The working tree that the run was started in. */
  readonly top: string
  readonly format: 'sha1' | 'sha256'
  /** An empty git folder of ours, with the settings of the user's that say how files look and none that runs anything. */
  readonly room: string
}

export type Head =
  | { readonly kind: 'branch'; /** As `refs/heads/main`. */ readonly ref: string; readonly name: string }
  | { readonly kind: 'detached' }

export interface OpenedRepository extends Repository {
  /** The git folder of this working tree: the common one, or one below it. */
  readonly gitDir: string
  /** The folder inside of the working tree, without slashes around it; empty at the top. */
  readonly prefix: string
  readonly head: Head
  /** What HEAD is now: the base of a transaction. */
  readonly commit: Sha
  /** Tracked files that differ from it, and untracked files and folders that are not ignored: none of it is in the base. */
  readonly uncommitted: number
}

/** Where a folder is, before anybody asks what is committed there. */
export interface Found extends Repository {
  readonly gitDir: string
  readonly prefix: string
}

/**
 * The repository that a folder is in. Throws what a person can act on: `git/no-repository` (remedy: `--init`), `git/bare`,
 * `git/no-commit` (nothing was committed yet), `git/inside` (a git folder is no working tree), `git/partial` (objects would have to be
 * fetched), `git/missing` and `git/too-old` (of git itself), `git/not-trusted` (somebody else's, and git was not told that it is fine).
 */
export async function openRepository(git: Git, folder: string): Promise<OpenedRepository> {
  await requireGit(git)
  const found = await findRepository(git, folder)
  if (found === undefined) {
    throw new HoldfastError('git/no-repository', `${folder} is in no git repository`, {
      remedy: 'add --init to make it one with a first commit of what is there, or run without a workspace',
    })
  }
  const { gitDir } = found
  const head = await askGit(git, ['rev-parse', 'HEAD^{commit}', '--symbolic-full-name', 'HEAD'], { gitDir })
  if (head.code !== 0) {
    throw new HoldfastError('git/no-commit', `nothing was committed yet in the repository of ${folder}`, {
      remedy: 'commit something, or add --init for a first commit of what is there',
    })
  }
  const [commit = '', ref = ''] = head.stdout.toString().split('\n')
  return { ...found, head: headOf(ref), commit, uncommitted: await countUncommitted(git, found, commit) }
}

/** The same later, from what a row has; `undefined` where there is no repository any more. */
export async function repositoryAt(
  git: Git,
  place: { readonly commonDir: string; readonly top: string },
): Promise<Repository | undefined> {
  const { commonDir, top } = place
  const found = await stat(join(commonDir, 'objects')).catch(() => undefined)
  if (found?.isDirectory() !== true) return undefined
  const settings = await readSettings(git, commonDir)
  return { commonDir, top, format: formatOf(settings), room: await makeRoom(git, commonDir, settings) }
}

/** A file of a commit: for the captured check. `undefined`: there is none, or it is no regular file. */
export async function fileAt(
  git: Git,
  repo: Repository,
  commit: Sha,
  path: string,
): Promise<{ readonly blob: Sha; readonly executable: boolean } | undefined> {
  const { stdout } = await runGit(git, ['ls-tree', '-z', '--full-tree', commit, '--', path], atDesk(repo))
  const [, mode, blob] = /^(100644|100755) blob ([0-9a-f]+)\t/.exec(stdout.toString()) ?? []
  return blob === undefined ? undefined : { blob, executable: mode === '100755' }
}

export async function readBlob(git: Git, repo: Repository, blob: Sha, maxBytes: number): Promise<Buffer> {
  return (await runGit(git, ['cat-file', 'blob', blob], { ...atDesk(repo), maxBytes })).stdout
}

/** The oldest that has what is needed: `merge-tree --write-tree`, `worktree list -z`, synced writes in batches. */
const OLDEST = [2, 39] as const

export async function requireGit(git: Git): Promise<void> {
  const { text } = await runGit(git, ['version'])
  const [, major, minor] = (/(\d+)\.(\d+)/.exec(text) ?? []).map(Number)
  const isOld = major === undefined || major < OLDEST[0] || (major === OLDEST[0] && (minor ?? 0) < OLDEST[1])
  if (!isOld) return
  throw new HoldfastError('git/too-old', `this is ${text}, and workspaces need git ${OLDEST.join('.')}`, {
    remedy: 'upgrade git, or run without a workspace',
  })
}

/** Where the folder's repository is; `undefined`: in none. */
export async function findRepository(git: Git, folder: string): Promise<Found | undefined> {
  const looked = await look(git, folder)
  if (looked === undefined) return undefined
  const [inside, bare, gitDir = '', common = '', top = '', prefix = ''] = looked
  if (inside === 'true') {
    throw new HoldfastError('git/inside', `${folder} is inside of a git folder, which has no files to work on`, {
      remedy: 'name the working tree instead',
    })
  }
  if (bare === 'true') {
    throw new HoldfastError('git/bare', `the repository of ${folder} is bare: it has no files to work on`, {
      remedy: 'name a clone or a working tree of it',
    })
  }
  const settings = await readSettings(git, gitDir)
  refusePartial(folder, settings)
  const commonDir = await realpath(resolve(folder, common))
  const room = await makeRoom(git, commonDir, settings)
  return { commonDir, top, format: formatOf(settings), room, gitDir, prefix: prefix.replace(/\/$/, '') }
}

type Trust = Readonly<Record<string, readonly string[]>>

const ASKED = ['--is-inside-git-dir', '--is-bare-repository', '--absolute-git-dir', '--git-common-dir']

/** Git refuses folders of other people, unless its user told it otherwise. We do what its user told it. */
async function look(git: Git, folder: string): Promise<readonly string[] | undefined> {
  for (const ask of [async (): Promise<Trust> => ({}), () => trusted(git)]) {
    const asked = ['rev-parse', ...ASKED, '--show-toplevel', '--show-prefix']
    const end = await tryGit(git, asked, { cwd: folder, settings: await ask() })
    const lines = end.stdout.toString().split('\n')
    // Where there is no working tree it ends after what says so.
    if (end.code === 0 || lines.length > ASKED.length) return lines
    if (end.cut === 'absent')
      throw new HoldfastError('git/no-folder', `there is no folder ${folder}`, { remedy: 'name one that is there' })
    if (end.code !== null && /not a git repository/.test(end.stderr)) return undefined
    if (end.code === null || !/dubious ownership/.test(end.stderr)) throw await failureOf(asked, end, {})
  }
  throw new HoldfastError('git/not-trusted', `git does not use the repository of ${folder}: it is somebody else's`, {
    remedy: `git config --global --add safe.directory ${folder}`,
  })
}

async function trusted(git: Git): Promise<Trust> {
  const ask = (...how: string[]) =>
    askGit(git, ['config', '-z', ...how, '--get-all', 'safe.directory'], { asUser: true })
  // `~/x` is said out here: where it is used nobody has a home. One with a home that nobody knows spoils the answer, and is left as it is.
  const paths = await ask('--type=path')
  const end = paths.code === 0 ? paths : await ask()
  // All of them, in their order: an empty one takes back what was said before it.
  return { 'safe.directory': end.stdout.toString().split('\0').slice(0, -1) }
}

const formatOf = (settings: Settings) =>
  settings.get('extensions.objectformat') === 'sha256' ? ('sha256' as const) : ('sha1' as const)

function refusePartial(folder: string, settings: Settings): void {
  const isPartial =
    settings.has('extensions.partialclone') ||
    [...settings].some(([key, value]) => key.endsWith('.promisor') && value !== 'false')
  if (!isPartial) return
  throw new HoldfastError('git/partial', `the repository of ${folder} is a partial clone: objects are missing in it`, {
    remedy: 'use a full clone (git fetch --refetch --no-filter, then unset remote.NAME.promisor)',
  })
}

const headOf = (ref: string): Head =>
  ref.startsWith('refs/heads/') ? { kind: 'branch', ref, name: ref.slice('refs/heads/'.length) } : { kind: 'detached' }

async function countUncommitted(git: Git, found: Found, commit: Sha): Promise<number> {
  const desk = atDesk(found, { workTree: found.top, index: join(found.gitDir, 'index') })
  const plain = ['--no-ext-diff', '--no-textconv', '--ignore-submodules=all', '--no-renames']
  const [tracked, others] = await Promise.all([
    runGit(git, ['diff', '-z', '--name-only', ...plain, commit], desk),
    runGit(git, ['ls-files', '-z', '-o', '--exclude-standard', '--directory', '--no-empty-directory'], desk),
  ])
  return records(tracked.stdout).length + records(others.stdout).length
}
