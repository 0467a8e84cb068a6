import { closeSync, existsSync, openSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createFileOnce, errorCode, explainTrouble, writeFileAtomic } from '../base/files.ts'
import { openedFrom, sealedFor } from '../secrets/folders.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { CommandEnd, Containment, StoredSpec, StreamName } from './command.ts'
import type { ProcessIdentity } from './identity.ts'
import type { Trail } from './trail.ts'

/*
 * The folder of one attempt, in the order in which its files appear:
 *
 *   spec.json      the worker: what to run, but for its environment, and with secrets sealed (handover.ts has them)
 *   owner.json     whoever creates it first: a supervisor, or a taker that thereby proves that nothing will ever run
 *   starting.json  the supervisor: from here on the command may have run
 *   command.json   the supervisor: which processes, for this boot only
 *   *.spill        the output so far, with secrets sealed
 *   holder-N       a worker that took it over, under the fence N: whoever has an older one cannot stop it any more
 *   stop-N         a worker that lost the lease of its fence N: the command has to end, unless somebody newer holds it
 *   end.json       the supervisor: how it ended, every process being dead; with secrets sealed
 */

export type Owner =
  | {
      readonly kind: 'supervisor'
      readonly identity: ProcessIdentity
      readonly mark: string
      readonly cgroup: string | null
      /** Of the claim that it was started for; absent from a version that knew none. */
      readonly fence?: number
    }
  | { readonly kind: 'fenced'; readonly by: string }

export interface RunningCommand {
  readonly startedAt: number
  readonly trail: Trail
  readonly containment: Containment
}

/** Files appear complete. Only a power loss can tear one that was not synced, and it is then as good as not there. */
const read = <T>(folder: string, name: string): T | undefined => {
  try {
    const text = readFileSync(join(folder, name), 'utf8')
    return JSON.parse(openedFrom(folder, text)) as T
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw explainTrouble(error, join(folder, name), 'read')
  }
}

const write = (folder: string, name: string, content: unknown, durable = true, secrets?: Secrets) =>
  writeFileAtomic(join(folder, name), sealedFor(folder, JSON.stringify(content), secrets), { mode: 0o600, durable })

// After a reboot nothing is left to be run from the spec, so it is not synced: that would only delay the start.
export const writeSpec = (folder: string, spec: StoredSpec) => write(folder, 'spec.json', { ...spec, env: {} }, false)
export const readSpec = (folder: string) => read<StoredSpec>(folder, 'spec.json')

/**
 * The compare-and-set on disk: one owner for ever. It need not be synced: a power loss that takes it away has ended
 * every process as well, and whether the command may have run is what `starting.json` says, which is synced.
 */
export async function claimOwner(folder: string, owner: Owner): Promise<{ won: boolean; owner: Owner }> {
  // Who only wants to know needs no room on the disk.
  const known = readOwner(folder)
  if (known !== undefined) return { won: false, owner: known }
  const created = await createFileOnce(join(folder, 'owner.json'), JSON.stringify(owner), { durable: false })
  return created === 'created'
    ? { won: true, owner }
    : { won: false, owner: read<Owner>(folder, 'owner.json') ?? owner }
}

export const readOwner = (folder: string) => read<Owner>(folder, 'owner.json')

/**
 * Names, and not one file that is replaced: the highest counts, so a taker that was paused and comes late takes nothing back. A disk that is
 * full does not keep anybody from adopting: at worst a worker that comes back from a pause stops what it had started, and that is seen.
 */
export async function takeHold(folder: string, fence: number): Promise<void> {
  await createFileOnce(join(folder, `holder-${fence}`), '', { durable: false }).catch(() => {})
}

/**
 * At once, because the lease is about to end. Where there is no room for a new file, or none that can be opened, a taker's own is given another
 * name. If the disk refuses that too, or it is the first owner's, the signal that follows counts as the first owner's: see isToStop.
 */
export function askToStop(folder: string, fence: number): void {
  const request = join(folder, `stop-${fence}`)
  try {
    closeSync(openSync(request, 'w', 0o600))
  } catch {
    try {
      renameSync(join(folder, `holder-${fence}`), request)
    } catch {
      // There is nothing else to try.
    }
  }
}

/**
 * For the supervisor, told to look: whether the one that holds the command now wants it to end. A request of an older one was overtaken,
 * whenever it was written and however late its signal comes. Where nobody can look, it ends: nobody can have taken it over either.
 */
export function isToStop(folder: string): boolean {
  try {
    const owner = readOwner(folder)
    const first = owner?.kind === 'supervisor' ? (owner.fence ?? 0) : 0
    const names = readdirSync(folder)
    return newest(names, 'stop-', first) >= newest(names, 'holder-', first)
  } catch {
    return true
  }
}

/** A name without a number says nothing; taken for one it would make every comparison false. */
const newest = (names: readonly string[], kind: 'holder-' | 'stop-', first: number): number =>
  Math.max(
    first,
    ...names
      .filter((name) => name.startsWith(kind))
      .map((name) => Number(name.slice(kind.length)))
      .filter((fence) => Number.isInteger(fence)),
  )

export const writeStarting = (folder: string, at: number) => write(folder, 'starting.json', { at })
export const hasStarting = (folder: string) => existsSync(join(folder, 'starting.json'))

export const writeCommand = (folder: string, command: RunningCommand) => write(folder, 'command.json', command, false)
export const readCommand = (folder: string) => read<RunningCommand>(folder, 'command.json')

export const writeEnd = (folder: string, end: CommandEnd, secrets: Secrets | undefined) =>
  write(folder, 'end.json', end, true, secrets)
export const readEnd = (folder: string) => read<CommandEnd>(folder, 'end.json')

export const spillPath = (folder: string, stream: StreamName) => join(folder, `${stream}.spill`)

/** To be called once everything that the folder says is recorded elsewhere. */
export const removeRemains = (folder: string) => rm(folder, { recursive: true, force: true })
