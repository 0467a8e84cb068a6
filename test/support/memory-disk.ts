import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  statfsSync,
} from 'node:fs'
import { join } from 'node:path'

const MEMORY_DISK = '/dev/shm'
const PREFIX = 'holdfast-tests-'
/** All that a run of everything has at one time is below one; a container's memory disk often has 64 megabytes in all. */
const ENOUGH_BYTES = 4e9
/** The processes of another container are not seen from here, and its tests do not take so long. */
const STALE_MS = 2 * 3_600_000

/**
 * Every commit, and every file of a run, waits for its disk; no test here cuts the power. So the temporary files of the tests
 * are in memory where there is some, in a folder that goes with them, whatever they were killed in the middle of.
 */
export default function setup(): (() => void) | undefined {
  if (process.env.TMPDIR !== undefined || !isUsable()) return undefined
  removeStale()
  const folder = mkdtempSync(join(MEMORY_DISK, `${PREFIX}${process.pid}-`))
  // As the usual folder: for the user of PostgreSQL too, which does not run as root.
  chmodSync(folder, 0o1777)
  process.env.TMPDIR = folder
  return () => {
    delete process.env.TMPDIR
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

function isUsable(): boolean {
  try {
    accessSync(MEMORY_DISK, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY_DISK)
    // Some tests start programs that they have written.
    const mount = readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === MEMORY_DISK)
    return bavail * bsize > ENOUGH_BYTES && mount !== undefined && !mount.includes('noexec')
  } catch {
    return false
  }
}

/** Those of runs that were killed: memory is not given back by itself. */
function removeStale(): void {
  for (const name of readdirSync(MEMORY_DISK).filter((each) => each.startsWith(PREFIX))) {
    const folder = join(MEMORY_DISK, name)
    const age = Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
    const [pid = ''] = name.slice(PREFIX.length).split('-')
    if (age > STALE_MS && !existsSync(`/proc/${pid}`)) removeIfPossible(folder)
  }
}

/** A test of a full disk that was killed leaves a mount behind, which cannot be removed: that keeps nobody from testing. */
function removeIfPossible(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {
    // It stays.
  }
}
