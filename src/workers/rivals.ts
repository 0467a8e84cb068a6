import { isDeepStrictEqual } from 'node:util'

import { sleep } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import type { RunId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { judgeProcess, killProcess, processIdentity } from '../processes/identity.ts'
import type { ProcessIdentity } from '../processes/identity.ts'
import { lostOwners } from '../runs/worker.ts'
import type { Store } from '../store/store.ts'

const POLL_MS = 10

/**
 * Before a write that was cut off is done again: a worker that lost the run may be paused in front of that very write, and
 * nothing in a database stops it when it wakes. A daemon of ours on this host is killed; its commands have supervisors of
 * their own. Any other process is somebody's program: it is named, and the doubt stays.
 */
export async function endRivals(store: Store, clock: Clock, runId: RunId): Promise<string | undefined> {
  for (const { kind, identity, stoppedAt } of await store.read(lostOwners, runId)) {
    const verdict = isThisProcess(identity) ? 'dead' : judgeProcess(identity)
    if (verdict === 'dead') continue
    // Where nobody can look, its own word that it stopped counts, or a person's that it is dead.
    if (verdict === 'unreachable' && stoppedAt !== null) continue
    if (verdict === 'alive' && kind === 'daemon' && (await killed(clock, identity))) continue
    const where =
      verdict === 'alive' ? `process ${identity.pid}` : `a process on ${identity.host}, which cannot be reached,`
    const how = verdict === 'alive' ? '' : `, or say that it is dead (--dead-host ${identity.host})`
    return `it was not done again: ${where} had begun it, may be paused, and could still do it; end that first${how}`
  }
  return undefined
}

/** Whether a worker that lost the run was where nobody here can look. */
export const wasElsewhere = async (store: Store, runId: RunId): Promise<boolean> =>
  (await store.read(lostOwners, runId)).some(({ identity }) => judgeProcess(identity) === 'unreachable')

/** What this process itself had begun it has ended, or it still holds it. */
const isThisProcess = (identity: ProcessIdentity) => isDeepStrictEqual(identity, processIdentity())

async function killed(clock: Clock, identity: ProcessIdentity): Promise<boolean> {
  killProcess(identity)
  const deadline = clock.monotonicMs() + LIMITS.graceMs
  while (judgeProcess(identity) !== 'dead') {
    if (clock.monotonicMs() > deadline) return false
    await sleep(clock, POLL_MS)
  }
  return true
}
