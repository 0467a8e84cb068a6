import { existsSync, statfsSync } from 'node:fs'
import { platform } from 'node:os'
import { dirname } from 'node:path'

import { systemClock } from '../../base/clock.ts'
import { HoldfastError, describeError } from '../../base/errors.ts'
import type { Git } from '../../git/git.ts'
import { requireGit } from '../../git/repository.ts'
import { detectContainment } from '../../processes/detect-containment.ts'
import { detectSeal } from '../../processes/sealed.ts'
import type { Finding } from './examine.ts'
import { homePaths } from '../home.ts'

/** What can be said without the store. */
export async function examineMachine(home: string, env: Git['env']): Promise<Finding[]> {
  return [
    { check: 'node', status: 'ok', detail: `${process.version} with SQLite ${process.versions.sqlite}` },
    examineDisk(home),
    await examineContainment(),
    await examineGit(home, env),
    await examineChecks(),
  ]
}

/** Below this a busy fleet fills the disk within hours. */
const LOW_DISK_BYTES = 512 * 1024 * 1024

function examineDisk(home: string): Finding {
  const folder = nearestFolder(home)
  let free: number
  try {
    const { bavail, bsize } = statfsSync(folder)
    free = bavail * bsize
  } catch (error) {
    return troubled('disk', 'fail', error, `make ${folder} readable for this user, or choose another (HOLDFAST_HOME)`)
  }
  const detail = `${Math.round(free / 1024 / 1024).toLocaleString('en')} MiB free under ${folder}`
  if (free >= LOW_DISK_BYTES) return { check: 'disk', status: 'ok', detail }
  return { check: 'disk', status: 'warn', detail, remedy: 'free some space, or move the home folder (HOLDFAST_HOME)' }
}

/** A home that could not be made is still meant to be on some disk. */
const nearestFolder = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : nearestFolder(dirname(path))

const CONTAIN =
  'a command that throws its environment away could outlive its cancel: start the daemon in a cgroup of its own ' +
  '(`systemd-run --user --scope -p Delegate=yes holdfast up`), or allow user namespaces and install util-linux (unshare, nsenter)'
const CONTAIN_ELSEWHERE =
  'a command that throws its environment away could outlive its cancel: run what you do not trust on Linux or in a container'

const LOOK = 'look at the folder for temporary files (TMPDIR), and at ulimit -u'

async function examineContainment(): Promise<Finding> {
  try {
    const { kind, detail } = await detectContainment()
    const found = { check: 'containment', detail: `${kind}: ${detail}` }
    if (kind === 'cgroup' || kind === 'pid-namespace') return { ...found, status: 'ok' }
    return { ...found, status: 'warn', remedy: platform() === 'linux' ? CONTAIN : CONTAIN_ELSEWHERE }
  } catch (error) {
    return troubled('containment', 'fail', error, LOOK)
  }
}

/** Nothing but workspaces needs it, so what is missing is worth a word and no failure. */
async function examineGit(home: string, env: Git['env']): Promise<Finding> {
  try {
    await requireGit({ clock: systemClock, env, rooms: homePaths(home).gitRooms })
    return { check: 'git', status: 'ok', detail: 'there, and new enough for workspaces' }
  } catch (error) {
    return troubled('git', 'warn', error, 'install git 2.39 or newer to use workspaces')
  }
}

function troubled(check: string, status: Finding['status'], error: unknown, otherwise: string): Finding {
  const known = error instanceof HoldfastError ? error : undefined
  return { check, status, detail: known?.message ?? describeError(error), remedy: known?.remedy ?? otherwise }
}

/** What a check may touch. */
async function examineChecks(): Promise<Finding> {
  try {
    const { kind, detail } = await detectSeal()
    if (kind === 'sealed')
      return { check: 'checks', status: 'ok', detail: `kept from writing outside of their checkout: ${detail}` }
    const found = `the checks of workspaces can write wherever you can: ${detail}`
    return { check: 'checks', status: 'warn', detail: found, remedy: SEAL }
  } catch (error) {
    return troubled('checks', 'fail', error, LOOK)
  }
}

const SEAL =
  'allow user namespaces (`sysctl kernel.unprivileged_userns_clone=1`, or an AppArmor rule for unshare) if that matters'
