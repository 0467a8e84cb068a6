import type { Randomness, RunId, WorkerId } from '../base/ids.ts'
import { newAttemptId } from '../base/ids.ts'
import { judgeProcess } from '../processes/identity.ts'
import type { Verdict } from '../processes/identity.ts'
import { abandonReserved, heldAttempts, reservedRuns, takeOverRun } from '../runs/recover.ts'
import type { HeldAttempt, TakeoverGround } from '../runs/recover.ts'
import type { Claim } from '../runs/claim.ts'
import type { Store } from '../store/store.ts'
import { homePaths, isBarred } from './home.ts'

export interface Recoverer {
  readonly store: Store
  readonly random: Randomness
  readonly workerId: WorkerId
  readonly leaseMs: number
  /** The agents that this process can be: it takes over no other's turns, but to cancel them. */
  readonly agents: ReadonlySet<string>
  /** Whether a folder is another user's. */
  readonly isBarred?: (folder: string) => boolean
}

/** A run that this worker took over, and the home folder under which its command's folder is. */
export interface Taken {
  readonly claim: Claim
  readonly home: string
}

/**
 * Takes over what lost its worker. Presumed death is not enough to run anything again: the new claim only entitles to
 * look at what the old one left behind.
 */
export async function takeLostRuns(recoverer: Recoverer, onTaken: (taken: Taken) => void, only?: RunId): Promise<void> {
  const { store, random, workerId, leaseMs, agents } = recoverer
  const isOutOfReach = (held: HeldAttempt) => isLeftToItsUser(held, recoverer.isBarred)
  // A worker may have held a thousand runs: it is judged once, and they are taken over in few commits.
  const verdicts = new Map<WorkerId, Verdict>()
  const taking = (await store.read(heldAttempts)).flatMap((held) => {
    // What this worker itself let go of, because something went wrong, is as lost as any other's.
    const mine = held.workerId === workerId && held.releasedAt === null
    // To end what somebody cancelled nobody needs the agent, which may have left the configuration.
    const foreign = held.kind === 'agent' && !agents.has(held.agent) && !mayCancel(held, recoverer.isBarred)
    if (mine || foreign || (only !== undefined && held.runId !== only)) return []
    const verdict = verdicts.get(held.workerId) ?? judgeProcess(held.identity)
    verdicts.set(held.workerId, verdict)
    const ground = groundFor(held, verdict)
    return ground === undefined || isOutOfReach(held) ? [] : [take(held, ground)]
  })
  async function take(held: HeldAttempt, ground: TakeoverGround): Promise<void> {
    const attemptId = newAttemptId(random)
    // What a lost function still returns is its own, and is kept as such.
    const mark = held.isCall === 1 ? { mark: attemptId } : {}
    const claim = await store.apply(takeOverRun, held, ground, { workerId, leaseMs, attemptId, ...mark })
    // At once: what is taken belongs to this worker, whatever happens to the rest.
    if (claim !== undefined) onTaken({ claim, home: held.home })
  }
  const trouble = (await Promise.allSettled(taking)).find((each) => each.status === 'rejected')
  if (trouble !== undefined) throw trouble.reason
  await endAbandoned(store)
}

/** Where its tools may have left commands, who ends it has to be able to look. */
const mayCancel = ({ isCancelled, isCall, home }: HeldAttempt, isShut = isBarred): boolean =>
  isCancelled === 1 && (isCall === 1 || !isShut(homePaths(home).work))

/** Its command may be running, and only a worker of the user whose folder that is can see it, and stop it. */
export const isLeftToItsUser = ({ kind, startingAt, home }: HeldAttempt, isShut = isBarred): boolean =>
  kind === 'command' && startingAt !== null && isShut(homePaths(home).work)

/**
 * On this host the owner's process itself is the evidence. On a host that cannot be reached only a claim that never
 * recorded its intent may be taken, since its worker cannot start anything without recording it; the rest waits for
 * that host, or for a person (`holdfast runs disown`).
 */
export function groundFor(held: HeldAttempt, owner: Verdict): TakeoverGround | undefined {
  // Its workspace is there: whoever takes it over elsewhere could do nothing with it.
  if (owner === 'unreachable' && held.host !== null) return undefined
  if (owner === 'unreachable') return held.leaseOver === 1 && held.startingAt === null ? 'unstarted' : undefined
  if (held.releasedAt !== null) return 'released'
  if (owner === 'dead') return 'owner-dead'
  return held.leaseOver === 1 ? 'lease-over' : undefined
}

async function endAbandoned(store: Store): Promise<void> {
  for (const { runId, workerId, identity } of await store.read(reservedRuns)) {
    if (judgeProcess(identity) === 'dead') await store.apply(abandonReserved, runId, workerId)
  }
}
