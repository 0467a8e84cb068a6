import { isOwnBoot } from './boots.ts'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { childProcess } from './node-parts.ts'
import { readProcess } from './process-table.ts'

/** A process that cannot be mistaken for another one that got its number later, here or elsewhere. */
export interface ProcessIdentity {
  readonly host: string
  readonly boot: string
  readonly pidNamespace: string
  readonly pid: number
  readonly startTime: number
}

/** Where a process number means something. */
export type Place = Pick<ProcessIdentity, 'host' | 'boot' | 'pidNamespace'>

/** `unreachable`: it lives, or lived, where we can neither see nor kill it. */
export type Verdict = 'alive' | 'dead' | 'unreachable'

let here: Place | undefined

/** Where a machine has no id of its own: what its name ends with instead of one. */
const NO_MACHINE_ID = 'no-machine-id'

/** By its name alone a machine is not known: another one may be called the same, as containers are. */
export const isKnownByName = ({ host }: Place): boolean => host.endsWith(`-${NO_MACHINE_ID}`)

export const thisPlace = (): Place => (here ??= readPlace())

export function processIdentity(pid: number = process.pid, place = thisPlace()): ProcessIdentity | undefined {
  const row = readProcess(pid)
  return row === undefined || row.dead ? undefined : { ...place, pid, startTime: row.startTime }
}

export function judgeProcess(identity: ProcessIdentity): Verdict {
  return judgeFrom(thisPlace(), identity, readProcess(identity.pid))
}

/**
 * Boot comes before namespace: after a reboot nothing of the old namespaces is left on this host. Two machines that have the same name and no id are one
 * host by that, and each has a boot of its own: another boot is an earlier one only if somebody here has seen it.
 */
export function judgeFrom(
  place: Place,
  identity: ProcessIdentity,
  found: { readonly startTime: number; readonly dead: boolean } | undefined,
): Verdict {
  if (identity.host !== place.host) return 'unreachable'
  if (identity.boot !== place.boot) return isKnownByName(place) && !isOwnBoot(identity.boot) ? 'unreachable' : 'dead'
  if (identity.pidNamespace !== place.pidNamespace) return 'unreachable'
  return found !== undefined && !found.dead && found.startTime === identity.startTime ? 'alive' : 'dead'
}

/** Whether its terminal listens to it, and not to a shell to which somebody suspended it. Unknown counts as yes. */
export function isInForeground(identity: ProcessIdentity | null): boolean {
  const found = identity === null ? undefined : readProcess(identity.pid)
  // Without a terminal the kernel says -1.
  return found?.foreground === undefined || found.foreground < 0 || found.foreground === found.group
}

/** Signals this very process; false when it is no longer there, or not ours to reach. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (judgeProcess(identity) !== 'alive') return false
  try {
    return process.kill(identity.pid, signal)
  } catch {
    return false
  }
}

export const killProcess = (identity: ProcessIdentity): boolean => signalProcess(identity, 'SIGKILL')

function readPlace(): Place {
  return process.platform === 'darwin' ? readDarwinPlace() : readLinuxPlace()
}

function readLinuxPlace(): Place {
  return {
    host: hostId(readOr('/etc/machine-id', '')),
    boot: readOr('/proc/sys/kernel/random/boot_id', 'unknown'),
    pidNamespace: readlinkSync('/proc/self/ns/pid'),
  }
}

function readDarwinPlace(): Place {
  const sysctl = (name: string) =>
    childProcess().execFileSync('/usr/sbin/sysctl', ['-n', name], { encoding: 'utf8' }).trim()
  return { host: hostId(sysctl('kern.uuid')), boot: sysctl('kern.bootsessionuuid'), pidNamespace: 'darwin' }
}

// Cloned machines share a name or a machine id, seldom both. The machine id is confidential, so only a hash is shown.
function hostId(machineId: string): string {
  // As an image has it that was never started.
  if (machineId === '' || machineId === 'uninitialized') return `${hostname()}-${NO_MACHINE_ID}`
  // Loaded here and not above: it takes 7 ms, and a supervisor is told its place by the worker.
  const { createHash } = process.getBuiltinModule('node:crypto')
  return `${hostname()}-${createHash('sha256').update(`holdfast:${machineId}`).digest('hex').slice(0, 12)}`
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return otherwise
  }
}
