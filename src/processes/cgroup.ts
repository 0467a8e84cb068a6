import { unlessGone } from './process-table.ts'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The folder of our own cgroup in the version 2 tree, from the texts of /proc/self/mountinfo and /proc/self/cgroup. */
export function ownCgroup(mountinfo: string, membership: string): string | undefined {
  const mount = mountinfo.split('\n').flatMap((line) => parseCgroup2Mount(line) ?? [])[0]
  const own = /^0::(\/.*)$/m.exec(membership)?.[1]
  if (mount === undefined || own === undefined || own.startsWith('/..')) return undefined
  // In a container the mount may show only a part of the tree, whose root is then a prefix of our path.
  if (mount.root !== '/' && own !== mount.root && !own.startsWith(`${mount.root}/`)) return undefined
  return join(mount.point, mount.root === '/' ? own : own.slice(mount.root.length))
}

function parseCgroup2Mount(line: string): { root: string; point: string } | undefined {
  const match = /^\d+ \d+ \S+ (\S+) (\S+) .* - cgroup2 /.exec(line)
  return match === null ? undefined : { root: unescape(match[1] ?? ''), point: unescape(match[2] ?? '') }
}

// mountinfo writes blanks and backslashes in paths as octal numbers.
const unescape = (path: string) =>
  path.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

export function findOwnCgroup(): string | undefined {
  try {
    return ownCgroup(readFileSync('/proc/self/mountinfo', 'utf8'), readFileSync('/proc/self/cgroup', 'utf8'))
  } catch {
    return undefined
  }
}

/** The cgroup that we live in, and the one for a command: below it, and of this supervisor alone. */
export interface CgroupPlan {
  readonly own: string
  /** Two supervisors that race for one attempt must not remove each other's, hence the number in its name. */
  readonly forCommand: string
}

/** To be asked once and early: while we are stepping through the command's cgroup, that looks like our own. */
export function planCgroup(mark: string): CgroupPlan | undefined {
  const own = findOwnCgroup()
  return own === undefined ? undefined : { own, forCommand: join(own, `holdfast-${mark}-${process.pid}`) }
}

/** Removes what supervisors left that died, or lost the race, before they started anything; one in use stays. */
export function removeUnusedCgroups(mark: string): void {
  const own = findOwnCgroup()
  const names = own === undefined ? [] : readdirSync(own).filter((name) => name.startsWith(`holdfast-${mark}-`))
  for (const name of names) removeCgroup(join(own ?? '', name))
}

/**
 * Creates the cgroup and proves that we can move in and out again. The first move may wait some 10 ms for the kernel's
 * readers (RCU), so it is made asynchronously, beside the syncing of `starting.json`. Returns why not.
 */
export async function prepareCgroup({ own, forCommand: cgroup }: CgroupPlan): Promise<string | undefined> {
  try {
    mkdirSync(cgroup)
    if (!existsSync(join(cgroup, 'cgroup.kill'))) throw new Error('the kernel is older than 5.14, without cgroup.kill')
    await writeFile(join(cgroup, 'cgroup.procs'), '0')
    await writeFile(join(own, 'cgroup.procs'), '0')
    return undefined
  } catch (error) {
    removeCgroup(cgroup)
    return error instanceof Error ? error.message : String(error)
  }
}

/**
 * A process inherits the cgroup of its parent at birth. So we step in, spawn, and step out: unlike with a wrapping
 * shell there is no instant in which the command is outside, and its environment and exit status pass untouched.
 */
export function inCgroup<T>({ own, forCommand }: CgroupPlan, spawn: () => T): T {
  writeFileSync(join(forCommand, 'cgroup.procs'), '0')
  try {
    return spawn()
  } finally {
    writeFileSync(join(own, 'cgroup.procs'), '0')
  }
}

export function cgroupProcesses(cgroup: string): number[] {
  return [cgroup, ...childCgroups(cgroup)].flatMap((folder) => readPids(join(folder, 'cgroup.procs')))
}

/** Kills the cgroup and those below it; a process that is being forked is included. */
export function killCgroup(cgroup: string): void {
  try {
    writeFileSync(join(cgroup, 'cgroup.kill'), '1')
  } catch {
    // Never created, or already removed.
  }
}

/** The kernel's own word that no process is left in it or below; a cgroup that is not there has none. */
export function isEmptyCgroup(cgroup: string): boolean {
  try {
    return /^populated 0$/m.test(readFileSync(join(cgroup, 'cgroup.events'), 'latin1'))
  } catch (error) {
    unlessGone(error)
    return true
  }
}

export function removeCgroup(cgroup: string): void {
  for (const folder of [...childCgroups(cgroup).toReversed(), cgroup]) {
    try {
      rmdirSync(folder)
    } catch {
      // Not there. If it could not be removed, an empty cgroup costs nothing.
    }
  }
}

function childCgroups(cgroup: string): string[] {
  try {
    const folders = readdirSync(cgroup, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    return folders.flatMap(({ name }) => [join(cgroup, name), ...childCgroups(join(cgroup, name))])
  } catch {
    return []
  }
}

function readPids(path: string): number[] {
  try {
    // A process outside of our PID namespace is listed as 0.
    return readFileSync(path, 'latin1')
      .split('\n')
      .map(Number)
      .filter((pid) => pid > 0)
  } catch (error) {
    unlessGone(error)
    return []
  }
}
