import { lstat, readdir, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

import { sleep } from '../base/clock.ts'
import { errorCode } from '../base/files.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { runCaptured } from '../processes/captured-command.ts'
import type { Git } from './git.ts'

/** What is on its way out: a folder whose name starts so may be removed by anybody at any time. */
const GOING = '.going-'

/**
 * Removes a folder of ours (or a file), whole or not at all as far as others see: it is renamed first, so a half removed one is never mistaken for what it
 * was. Nothing there is fine.
 */
export async function removeFolder(git: Git, folder: string): Promise<void> {
  const aside = await setAside(folder)
  if (aside === undefined) return
  await git.point?.('remove/aside')
  await removeNow(git, [aside])
}

/** Only a rename: on a full disk there is no room for anything else. */
async function setAside(folder: string): Promise<string | undefined> {
  for (let at = 0; ; at += 1) {
    const aside = join(dirname(folder), `${GOING}${basename(folder)}-${at}`)
    const isTaken = await lstat(aside).then(
      () => true,
      () => false,
    )
    if (isTaken) continue
    try {
      await rename(folder, aside)
      return aside
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined
      if (errorCode(error) !== 'ENOTEMPTY' && errorCode(error) !== 'EEXIST') throw error
    }
  }
}

/** Goes on with removals in this folder that a death cut off. */
export async function removeGoing(git: Git, parent: string): Promise<void> {
  const names = await readdir(parent).catch(() => [])
  await removeNow(
    git,
    names.filter((name) => name.startsWith(GOING)).map((name) => join(parent, name)),
  )
}

/** By `rm`: it is several times as quick as removing file by file from here. */
async function removeNow(git: Git, folders: readonly string[]): Promise<void> {
  if (folders.length === 0) return
  for (let tries = 1; ; tries += 1) {
    const end = await run(git, ['rm', '-rf', '--', ...folders])
    if (end.code === 0) return
    if (end.cut === 'cancelled') {
      throw new HoldfastError('git/cancelled', 'removing a folder was cancelled', {
        remedy: 'what is left of it is removed at the next try',
      })
    }
    if (tries === MOST_TRIES) throw notRemoved(folders, end.stderr)
    // A folder that its owner may not write, as package caches make them, keeps what is in it.
    await run(git, ['chmod', '-R', 'u+rwX', '--', ...folders])
    // And a git command of a process that was killed may still write into it.
    if (tries > 1) await sleep(git.clock, AGAIN_MS)
  }
}

const MOST_TRIES = 5
const AGAIN_MS = 100

const notRemoved = (folders: readonly string[], said: string) =>
  new HoldfastError('files/not-removed', `${folders.join(', ')} could not be removed: ${said.trim()}`, {
    remedy: 'look who owns what is in it; it is removed at the next try',
  })

const run = (git: Git, argv: readonly [string, ...string[]]) =>
  runCaptured(argv, {
    clock: git.clock,
    cwd: '/',
    env: { PATH: git.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C' },
    timeoutMs: LIMITS.gitMs,
    signal: git.signal,
    maxBytes: 64 * 1024,
  })
