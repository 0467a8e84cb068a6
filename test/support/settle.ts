import type { WorkerId } from '../../src/base/ids.ts'
import {
  newAttemptId,
  newMessageId,
  newRunId,
  newThreadId,
  newWorkerId,
  systemRandomness as random,
} from '../../src/base/ids.ts'
import { claimCalls, refOfCall } from '../../src/runs/call.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { usedSlots } from '../../src/runs/capacity.ts'
import { claimRun } from '../../src/runs/claim.ts'
import type { Claim } from '../../src/runs/claim.ts'
import { finishCall } from '../../src/runs/finish-call.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { resumeRun } from '../../src/runs/park.ts'
import { abandonReserved, expireQueued, heldAttempts, reservedRuns, takeOverRun } from '../../src/runs/recover.ts'
import { listRuns } from '../../src/runs/run.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import { dueAgain, fireAgain } from '../../src/schedule/fire.ts'
import { sessionEnded } from '../../src/sessions/events.ts'
import { liveSessions } from '../../src/sessions/session.ts'
import type { Store } from '../../src/store/store.ts'
import { assertInvariants } from './invariants.ts'
import { LEASE_MS, someIdentity } from './world.ts'

/** Each round ends every run that it can reach, so two are enough; more are a sign that something is stuck. */
const MOST_ROUNDS = 5

/**
 * Liveness: once faults stop, one worker alone brings everything to its end. What others held is taken over, what was
 * parked goes on, what was queued is executed, and nothing is left behind.
 */
export async function settleEverything(store: Store): Promise<void> {
  const workerId = newWorkerId(random)
  await store.apply(registerWorker, { id: workerId, kind: 'command', home: '/settling', identity: someIdentity() })
  for (let round = 0; await isOpen(store); round++) {
    if (round === MOST_ROUNDS) throw new Error(`runs that never end: ${JSON.stringify(await openRuns(store))}`)
    await oneRound(store, workerId)
  }
  const [held, slots] = [await store.read(heldAttempts), await store.read(usedSlots)]
  if (held.length + slots.length > 0) throw new Error(`left behind: ${JSON.stringify({ held, slots })}`)
  await assertInvariants(store)
}

async function oneRound(store: Store, workerId: WorkerId): Promise<void> {
  // Whoever sits at a session goes away at last.
  for (const { client, sessionId } of await store.read(liveSessions, 100)) {
    await store.apply(sessionEnded, { client, sessionId }, 'gone')
  }
  for (const held of await store.read(heldAttempts)) {
    const attemptId = newAttemptId(random)
    const claim = await store.apply(takeOverRun, held, 'owner-dead', { workerId, leaseMs: LEASE_MS, attemptId })
    if (claim !== undefined) await finish(store, claim)
  }
  for (const { id } of await store.read(dueAgain, 100)) await store.apply(fireAgain, id, someIds())
  await store.apply(expireQueued, 100)
  const runs = await openRuns(store)
  for (const { id, request } of runs.filter(({ state }) => state === 'parked')) {
    // A session's own turn goes on with its client alone: one that never comes back is cancelled by somebody.
    if (request.kind === 'observed') await store.apply(cancelRun, id, { by: 'somebody', reason: 'nobody comes back' })
    else await store.apply(resumeRun, id)
  }
  for (const { runId, workerId: gone } of await store.read(reservedRuns)) {
    await store.apply(abandonReserved, runId, gone)
  }
  const attempts = runs.map(() => newAttemptId(random))
  for (const call of await store.apply(claimCalls, { workerId, leaseMs: LEASE_MS, agents: ['adder'], attempts })) {
    await store.apply(finishCall, refOfCall(call), call, { state: 'succeeded' }, [])
  }
  for (let i = 0; i < runs.length; i++) {
    const attempt = { id: newAttemptId(random), mark: random.hex(16) }
    const claim = await store.apply(claimRun, {
      workerId,
      leaseMs: LEASE_MS,
      limits: {},
      agents: ['clerk'],
      host: someIdentity().host,
      attempt,
    })
    if (claim === undefined) return
    await finish(store, claim)
  }
}

/** Runs, and what of a schedule was to be tried by now. */
const isOpen = async (store: Store) => (await openRuns(store)).length > 0 || (await store.read(dueAgain, 1)).length > 0

const someIds = () => ({ threadId: newThreadId(random), runId: newRunId(random), messageId: newMessageId(random) })

/** What works in a workspace could succeed only with a check that passed. */
const finish = (store: Store, { run, attempt }: Claim) =>
  store.apply(
    finishRun,
    { id: attempt.id, runId: run.id, fence: run.fence },
    run.workspace === null ? { state: 'succeeded' } : { state: 'failed', code: 'lost', error: 'its worker was lost' },
  )

const openRuns = (store: Store) => store.read(listRuns, { states: ['queued', 'running', 'parked'], limit: 100 })
