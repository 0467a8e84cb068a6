import { sleep, systemClock as clock } from '../base/clock.ts'
import { ensureFolder } from '../base/files.ts'
import { removeUnusedCgroups } from './cgroup.ts'
import {
  claimOwner,
  hasStarting,
  readCommand,
  readEnd,
  readOwner,
  readSpec,
  takeHold,
  type Owner,
} from './attempt-folder.ts'
import { judgeProcess, signalProcess, thisPlace, type ProcessIdentity } from './identity.ts'
import { readPartialOutput } from './output.ts'
import { tellToStop, type Outcome, type Supervised } from './supervised.ts'
import { killAll, type Trail } from './trail.ts'

/** Whose processes, and under which claim they are taken over. Without one they are only looked at, or ended for good. */
export interface Taking {
  readonly mark: string
  readonly fence?: number
}

export type Remains = Outcome | { readonly kind: 'alive'; readonly command: Supervised }

const POLL_MS = 50

/**
 * Finds out what an attempt left behind, whoever died and whenever. If nobody owns the folder yet, the taker becomes its
 * owner: a worker that was paused before spawning, and wakes up later, finds the fence.
 */
export async function takeOver(folder: string, by: string, { mark, fence }: Taking): Promise<Remains> {
  await ensureFolder(folder)
  const end = readEnd(folder)
  if (end !== undefined) return { kind: 'ended', end }
  const { owner } = await claimOwner(folder, { kind: 'fenced', by })
  if (owner.kind === 'supervisor') return fromSupervisor(folder, owner, fence)
  // A power loss can take away the name of an owner whose intent is on disk.
  if (hasStarting(folder)) return cutOff(folder, bareTrail(mark))
  // A supervisor makes what will hold its command while it claims the folder, and may have died in between.
  await killAll(bareTrail(mark))
  removeUnusedCgroups(mark)
  return { kind: 'never-started' }
}

/**
 * The same for the worker that started it, and lives. It wrote the spec before: a folder without one was removed meanwhile, by
 * somebody or by the command itself, and proves nothing.
 */
export async function takeBack(folder: string, by: string, taking: Taking): Promise<Remains> {
  // Nothing is made in its place: whoever comes after this one has to see that it is gone, too.
  if (readSpec(folder) === undefined) return cutOff(folder, bareTrail(taking.mark))
  const remains = await takeOver(folder, by, taking)
  const isRemoved = remains.kind === 'never-started' && readSpec(folder) === undefined
  return isRemoved ? cutOff(folder, bareTrail(taking.mark)) : remains
}

type SupervisorOwner = Extract<Owner, { kind: 'supervisor' }>

async function fromSupervisor(folder: string, owner: SupervisorOwner, fence: number | undefined): Promise<Remains> {
  const verdict = judgeProcess(owner.identity)
  if (verdict === 'unreachable') return { kind: 'unreachable', owner: owner.identity }
  if (verdict === 'dead') return afterDeath(folder, owner)
  if (fence !== undefined) await takeHold(folder, fence)
  return { kind: 'alive', command: adopt(folder, owner, fence) }
}

/** The order counts: only after the supervisor's death is it certain that no end and no intent will appear. */
async function afterDeath(folder: string, owner: SupervisorOwner): Promise<Outcome> {
  const end = readEnd(folder)
  if (end !== undefined) return { kind: 'ended', end }
  const trail = trailOf(folder, owner)
  // Without its owner the folder was removed meanwhile: that there is no intent in it proves nothing.
  if (hasStarting(folder) || readOwner(folder) === undefined) return cutOff(folder, trail)
  await killAll(trail)
  return { kind: 'never-started' }
}

/** Process numbers of an earlier boot belong to strangers by now, and nothing has lived on. */
function trailOf(folder: string, { identity, mark, cgroup }: SupervisorOwner): Trail {
  if (identity.boot !== thisPlace().boot) return bareTrail(mark)
  return readCommand(folder)?.trail ?? { ...bareTrail(mark), cgroup }
}

async function cutOff(folder: string, trail: Trail): Promise<Outcome> {
  await killAll(trail)
  return { kind: 'cut-off', output: await readPartialOutput(folder) }
}

const bareTrail = (mark: string): Trail => ({ mark, since: 0, leader: null, cgroup: null, holder: null })

function adopt(folder: string, owner: SupervisorOwner, fence: number | undefined): Supervised {
  return {
    identity: owner.identity,
    stop: (why) => tellToStop({ folder, fence }, why, (signal) => signalProcess(owner.identity, signal)),
    ended: untilGone(folder, owner.identity).then(() => afterDeath(folder, owner)),
  }
}

/** Not to be able to look, for want of file handles for instance, is no answer: it is looked again. */
async function untilGone(folder: string, identity: ProcessIdentity): Promise<void> {
  const hasEnded = () => readEnd(folder) !== undefined
  const isAlive = () => judgeProcess(identity) === 'alive'
  while (!seenOr(false, hasEnded) && seenOr(true, isAlive)) await sleep(clock, POLL_MS)
}

function seenOr(otherwise: boolean, look: () => boolean): boolean {
  try {
    return look()
  } catch {
    return otherwise
  }
}
