import { sleep, systemClock } from '../base/clock.ts'
import { cgroupProcesses, isEmptyCgroup, killCgroup, removeCgroup } from './cgroup.ts'
import { findsMark, readNewcomers, readProcessTable, type ProcessRow } from './process-table.ts'

/**
 * What is known about the processes of a command: enough for its supervisor, or for anybody after the supervisor's
 * death, to find every one of them. Plain data, because it is left on disk.
 */
export interface Trail {
  readonly mark: string
  /** No process of the command started before this (in the unit of `ProcessRow.startTime`). */
  readonly since: number
  /** The first process of the command. */
  readonly leader: Root | null
  readonly cgroup: string | null
  /** The first of the processes that hold a PID namespace open; they are ours, not the command's. */
  readonly holder: Root | null
}

/** A process that leads a group and a session of its own. */
export interface Root {
  readonly pid: number
  readonly startTime: number
}

interface Look {
  /** Whoever is known to live, where the table is only of some. */
  readonly all?: readonly ProcessRow[]
  /** Gets who could not be judged. */
  readonly unclear?: Set<number>
}

/** Every living process of the command in a table, the holders of its namespace included. */
export function findProcesses(
  trail: Trail,
  table: readonly ProcessRow[] = readProcessTable(),
  { all = table, unclear = new Set() }: Look = {},
): ProcessRow[] {
  const candidates = table.filter((row) => !row.dead && row.pid !== process.pid && row.startTime >= trail.since)
  const inCgroup = new Set(trail.cgroup === null ? [] : cgroupProcesses(trail.cgroup))
  const roots = trustedRoots(trail, all)
  return withDescendants(candidates, (row) => {
    return (
      inCgroup.has(row.pid) || roots.has(row.group) || roots.has(row.session) || findsMark(row.pid, trail.mark, unclear)
    )
  })
}

/**
 * The kernel does not reuse a number while a group or session bears it, but does so afterwards: a number that now
 * belongs to a stranger says nothing about groups any more.
 */
function trustedRoots({ leader, holder }: Trail, table: readonly ProcessRow[]): Set<number> {
  const roots = [leader, holder].filter((root) => root !== null)
  const isStranger = (root: Root) => table.some((row) => row.pid === root.pid && row.startTime !== root.startTime)
  return new Set(roots.filter((root) => !isStranger(root)).map((root) => root.pid))
}

/** The rows for which `isSeed` holds, and what hangs below them by parent or by session. */
export function withDescendants(rows: readonly ProcessRow[], isSeed: (row: ProcessRow) => boolean): ProcessRow[] {
  const found = new Map(rows.filter(isSeed).map((row) => [row.pid, row]))
  for (let before = -1; before !== found.size;) {
    before = found.size
    for (const row of rows) {
      if (found.has(row.parent) || found.has(row.session)) found.set(row.pid, row)
    }
  }
  return [...found.values()]
}

/** The processes that are the command's own: in a PID namespace, what entered it, without its holders. */
export function commandProcesses(trail: Trail): ProcessRow[] {
  return findProcesses(trail).filter((row) => isCommands(row, trail))
}

const isCommands = (row: ProcessRow, { holder, leader }: Trail) =>
  holder === null || (row.group !== holder.pid && row.pid !== leader?.pid)

/**
 * Asks every process to end, each once: a second TERM would hit the clean-up that the first one set off. Groups are
 * signalled as a whole, because a process that is being forked just now is in its group but not yet in our list.
 */
export function askToEnd(trail: Trail): void {
  const members = commandProcesses(trail)
  const leaders = new Set(members.map((row) => row.pid))
  if (trail.holder === null && trail.leader !== null) leaders.add(trail.leader.pid)
  const targets = new Set(members.map((row) => (leaders.has(row.group) ? -row.group : row.pid)))
  for (const target of targets) {
    signal(target, 'SIGTERM')
    // A stopped process would take notice of TERM only when somebody continues it.
    signal(target, 'SIGCONT')
  }
  wakeGuide(trail)
}

/** The process that brought the command into its namespace stops when the command stops, and must see it end. */
function wakeGuide({ holder, leader }: Trail): void {
  if (holder !== null && leader !== null) signal(leader.pid, 'SIGCONT')
}

/**
 * Kills until nothing is left and returns how many processes of the command that took. A cgroup or a namespace is
 * emptied by the kernel at one stroke; what is found by its mark may fork while we look, so there it takes two looks
 * in a row that find nothing. It does not return while a process refuses to die (uninterruptible I/O): nothing may
 * say "stopped" before it is.
 */
export async function killAll(trail: Trail): Promise<number> {
  const killed = new Set<string>()
  const looks = trail.leader !== null && (trail.cgroup !== null || trail.holder !== null) ? 1 : 2
  for (let quiet = 0, round = 1; quiet < looks; round += 1) {
    const table = readProcessTable()
    const unclear = new Set<number>()
    const found = findProcesses(trail, table, { unclear })
    killOnce(trail, found, round)
    if (looks > 1) found.push(...killNewborn(trail, table, unclear))
    for (const row of found) if (isCommands(row, trail)) killed.add(`${row.pid}:${row.startTime}`)
    const isClear = looks === 1 || unclear.size === 0 || round > UNCLEAR_ROUNDS
    quiet = found.length === 0 && isClear && isGone(trail.cgroup) ? quiet + 1 : 0
    if (quiet === 0) await sleep(systemClock, Math.min(round * 2, 50))
  }
  if (trail.cgroup !== null) removeCgroup(trail.cgroup)
  return killed.size
}

// Some two seconds: whoever is between two programs for longer hangs on a disk, and may be anybody's.
const UNCLEAR_ROUNDS = 60

const isGone = (cgroup: string | null) => cgroup === null || isEmptyCgroup(cgroup)

function killOnce(trail: Trail, found: readonly ProcessRow[], round: number): void {
  if (trail.cgroup !== null) killCgroup(trail.cgroup)
  for (const row of found) if (round > GUIDE_ROUNDS || !isGuide(row, trail)) signal(row.pid, 'SIGKILL')
  if (found.length > 0) wakeGuide(trail)
}

// On a machine where others start processes all the time there is always one more; each round takes about a millisecond.
const NEWBORN_ROUNDS = 20

/**
 * One that forks and ends at once is somebody else whenever we come to it. So what was born since the look is looked at, again and
 * again, until there is nobody new: whoever is alive then was seen, and is a stranger.
 */
function killNewborn(trail: Trail, table: readonly ProcessRow[], unclear: Set<number>): ProcessRow[] {
  const seen = new Set(table.map((row) => row.pid))
  // A stranger who has the number of the leader may be among those: what it starts now is none of ours.
  const all = [...table]
  const killed: ProcessRow[] = []
  for (let round = 0; round < NEWBORN_ROUNDS; round += 1) {
    const born = readNewcomers(seen)
    if (born === undefined) break
    all.push(...born)
    for (const row of findProcesses(trail, born, { all, unclear })) {
      signal(row.pid, 'SIGKILL')
      killed.push(row)
    }
  }
  return killed
}

// The guide ends with the command, whose parent it is. Killed first, it would leave the command to the machine's first
// process, and a namespace is not gone until that has collected it: with some this takes a second or two.
const GUIDE_ROUNDS = 40
const isGuide = (row: ProcessRow, { holder, leader }: Trail) => holder !== null && row.pid === leader?.pid

/** Ends everything that carries the mark; the last net under an attempt whose files are gone. */
export const sweepByMark = (mark: string): Promise<number> =>
  killAll({ mark, since: 0, leader: null, cgroup: null, holder: null })

function signal(target: number, name: NodeJS.Signals): void {
  try {
    process.kill(target, name)
  } catch {
    // It ended between the look and the signal.
  }
}
