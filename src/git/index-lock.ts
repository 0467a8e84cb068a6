import { link, lstat, mkdir, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { sleep } from '../base/clock.ts'
import { errorCode } from '../base/files.ts'
import { LIMITS } from '../base/limits.ts'
import type { Git } from './git.ts'

/*
 * While a landing works in a working tree it holds git's own lock of the index, so that the user's commands that would change something say so and do
 * nothing. The lock is a second name of a file of ours: after a death, the same inode proves that it is ours to remove.
 */

export const LOCK = 'index.lock'
/** In the git folder of a working tree: `holdfast/RUN/`. */
export const stageOf = (gitDir: string, runId: string) => join(gitDir, 'holdfast', runId)
const ownName = (stage: string) => join(stage, 'lock')

export type Locked = 'locked' | 'busy' | 'no-links'

export async function lockIndex(git: Git, gitDir: string, stage: string): Promise<Locked> {
  await mkdir(stage, { recursive: true })
  await writeFile(ownName(stage), '', { flag: 'a' })
  const until = git.clock.monotonicMs() + LIMITS.indexLockWaitMs
  for (;;) {
    const got = await tryLock(gitDir, stage)
    if (got !== 'busy' || git.clock.monotonicMs() >= until) return got
    await sleep(git.clock, 25)
  }
}

async function tryLock(gitDir: string, stage: string): Promise<Locked> {
  try {
    await link(ownName(stage), join(gitDir, LOCK))
    return 'locked'
  } catch (error) {
    const code = errorCode(error) ?? ''
    if (code === 'EEXIST') return (await isOurLock(gitDir, stage)) ? 'locked' : 'busy'
    if (['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS'].includes(code)) return 'no-links'
    throw error
  }
}

export async function isOurLock(gitDir: string, stage: string): Promise<boolean> {
  const found = (path: string) => lstat(path, { bigint: true }).catch(() => undefined)
  const [own, lock] = await Promise.all([found(ownName(stage)), found(join(gitDir, LOCK))])
  return own !== undefined && lock !== undefined && own.ino === lock.ino && own.dev === lock.dev
}

export async function unlockIndex(gitDir: string, stage: string): Promise<void> {
  if (await isOurLock(gitDir, stage)) await unlink(join(gitDir, LOCK))
}
