import { existsSync } from 'node:fs'
import { lstat, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { sleep } from '../base/clock.ts'
import { HoldfastError, invariant } from '../base/errors.ts'
import { syncFolder } from '../base/files.ts'
import { LIMITS } from '../base/limits.ts'
import type { Git, Sha } from './git.ts'
import type { Repository } from './repository.ts'
import { askGit, failureOf, runGit, tryGit } from './run-git.ts'
import { syncIfThere } from './sync-objects.ts'

/** Everything of ours in a user's repository is below this. */
export const OURS = 'refs/holdfast/'

/** Of runs whose landing was given up. */
export const GIVEN_UP = `${OURS}given-up/`

/** What a ref (or HEAD) is now. */
export async function readRef(git: Git, repo: Repository, ref: string): Promise<Sha | undefined> {
  const asked = ['rev-parse', '--verify', '-q', '--end-of-options', `${ref}^{commit}`]
  const { text } = await runGit(git, asked, { gitDir: repo.commonDir }, [0, 1])
  return text === '' ? undefined : text
}

export interface RefChange {
  readonly to: Sha
  /** Null: it must not be there. */
  readonly old: Sha | null
  /** For the reflog. */
  readonly message?: string
  /** Of the working tree that has it checked out, so that its HEAD remembers, too. */
  readonly gitDir?: string
  /** One of ours that must not be there, looked up when the lock of this one is taken. */
  readonly unless?: string
}

/** Sets a ref whose value is `old`. `moved`: it was something else. `barred`: that which must not be there is. Set already: `set`. */
export async function setRef(
  git: Git,
  repo: Repository,
  ref: string,
  change: RefChange,
): Promise<'set' | 'moved' | 'barred'> {
  const { to, old, message = 'holdfast', gitDir = repo.commonDir, unless } = change
  const none = '0'.repeat(to.length)
  const bar = unless === undefined ? '' : `verify ${unless} ${none}\n`
  const input = `update ${ref} ${to} ${old ?? none}\n${bar}`
  const [args, options] = [['update-ref', '-m', message, '--stdin'], { gitDir }]
  const end = await tryGit(git, args, { ...options, input, at: git.clock.now() })
  const now = end.code === 0 ? to : await readRef(git, repo, ref)
  if (now === to) {
    await syncName(repo.commonDir, ref)
    return 'set'
  }
  if (unless !== undefined && (await readRef(git, repo, unless)) !== undefined) return 'barred'
  if (now !== (old ?? undefined)) return 'moved'
  // The lock of ours that a killed git left. One that is still at it has that of the branch as well, which stays.
  if (unless !== undefined && (await removeStaleLock(git, join(repo.commonDir, `${unless}.lock`))))
    return setRef(git, repo, ref, change)
  throw lockedBy(ref, end.stderr) ?? (await failureOf(args, end, options))
}

/**
 * Git syncs what a ref says, and not the folders that name it, of which it may have made some: whoever is told of a branch finds it
 * there after a power loss, also where the repository is not on the disk of the database.
 */
async function syncName(commonDir: string, ref: string): Promise<void> {
  // A ref that is kept in another way has no folder: packed, or in tables, where `refs/heads` is a file and `reftable` names them all.
  const tables = join(commonDir, 'reftable')
  if (existsSync(tables)) await syncFolder(tables)
  for (let name = dirname(ref); name !== '.'; name = dirname(name)) await syncIfThere(join(commonDir, name))
}

/** Sets one of our own refs, whatever it was. */
export async function setOwnRef(git: Git, repo: Repository, ref: string, to: Sha): Promise<void> {
  invariant(ref.startsWith(OURS), `${ref} is not a ref of ours`)
  await changeOwn(git, repo, ref, ['update-ref', ref, to])
  await syncName(repo.commonDir, ref)
}

/** A git of ours that was killed in the middle leaves its lock. Below `refs/holdfast/` nobody else has any, but for the moment in which refs are packed. */
async function changeOwn(git: Git, repo: Repository, ref: string, args: readonly string[]): Promise<void> {
  const options = { gitDir: repo.commonDir, at: git.clock.now() }
  const end = await tryGit(git, args, options)
  if (end.cut === undefined && end.code === 0) return
  if (end.cut !== undefined || !(await removeStaleLock(git, join(repo.commonDir, `${ref}.lock`))))
    throw await failureOf(args, end, options)
  await runGit(git, args, options)
}

/** One that stays the same for so long is nobody's any more. */
async function removeStaleLock(git: Git, lock: string): Promise<boolean> {
  const look = () => lstat(lock, { bigint: true }).catch(() => undefined)
  const before = await look()
  if (before === undefined) return false
  await sleep(git.clock, LIMITS.indexLockWaitMs, git.signal)
  const after = await look()
  if (git.signal?.aborted === true || (after !== undefined && after.ino !== before.ino)) return false
  await rm(lock, { force: true })
  return true
}

/** Removes a ref, if it is what is expected (or whatever it is, for our own). Nothing there is fine. */
export async function deleteRef(git: Git, repo: Repository, ref: string, old?: Sha): Promise<void> {
  invariant(old !== undefined || ref.startsWith(OURS), `${ref} is not a ref of ours`)
  const args = ['update-ref', '-d', ref, ...(old === undefined ? [] : [old])]
  if (ref.startsWith(OURS)) await changeOwn(git, repo, ref, args)
  else await runGit(git, args, { gitDir: repo.commonDir })
}

/** All refs below `refs/holdfast/`. */
export async function listOurs(git: Git, repo: Repository): Promise<{ readonly ref: string; readonly commit: Sha }[]> {
  const { text } = await runGit(git, ['for-each-ref', '--format=%(objectname) %(refname)', OURS], {
    gitDir: repo.commonDir,
  })
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [commit = '', ref = ''] = line.split(' ')
      return { ref, commit }
    })
}

/** A new branch; `name` as people say it. Throws `git/bad-branch` for a name that git does not take. `same`: it is there with that commit. */
export async function branchFrom(
  git: Git,
  repo: Repository,
  name: string,
  commit: Sha,
): Promise<'made' | 'same' | 'taken'> {
  const ref = `refs/heads/${name}`
  const checked = await askGit(git, ['check-ref-format', '--branch', name])
  if (checked.code !== 0 || name.startsWith('-')) {
    throw new HoldfastError('git/bad-branch', `git takes no branch with the name ${name}`, { remedy: 'choose another' })
  }
  const before = await readRef(git, repo, ref)
  if (before !== undefined) return before === commit ? 'same' : 'taken'
  const set = await setRef(git, repo, ref, { to: commit, old: null, message: 'branch: kept from a run of holdfast' })
  return set === 'set' ? 'made' : 'taken'
}

/** Throws while somebody's git is about to set a ref: what that has looked up may be older than what was written since. */
export function refuseLocked({ commonDir }: Repository, ref: string): void {
  const lock = join(commonDir, `${ref}.lock`)
  if (existsSync(lock)) throw refLocked(ref, lock)
}

function lockedBy(ref: string, said: string): HoldfastError | undefined {
  const [, lock] = /'([^']*\.lock)': File exists/.exec(said) ?? []
  return lock === undefined ? undefined : refLocked(ref, lock)
}

function refLocked(ref: string, lock: string): HoldfastError {
  return new HoldfastError('git/ref-locked', `${ref} could not be set: ${lock} is there`, {
    remedy: 'wait until the git command that made it has ended; if none is running, remove that file',
    retry: { afterMs: 1_000 },
  })
}
