import type { RunId, ThreadId, WorkerId } from '../../src/base/ids.ts'
import { newAttemptId, newRunId, newThreadId, newWorkerId, systemRandomness as random } from '../../src/base/ids.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import type { CapacityLimits } from '../../src/runs/capacity.ts'
import { claimRun } from '../../src/runs/claim.ts'
import type { Claim } from '../../src/runs/claim.ts'
import { findRun } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { submitRun } from '../../src/runs/submit.ts'
import type { Submission, Submitted } from '../../src/runs/submit.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import type { OwnerIdentity } from '../../src/runs/worker.ts'
import type { Store } from '../../src/store/store.ts'

export const LEASE_MS = 15_000

export const someIdentity = (pid = 1): OwnerIdentity => ({
  host: 'host-a',
  boot: 'boot-1',
  pidNamespace: 'ns-1',
  pid,
  startTime: pid,
})

export async function addWorker(store: Store, kind: 'daemon' | 'command' = 'command'): Promise<WorkerId> {
  const id = newWorkerId(random)
  await store.apply(registerWorker, { id, kind, home: `/home/${id}`, identity: someIdentity() })
  return id
}

export function submission(overrides: Partial<Submission> = {}): Submission {
  return {
    id: newRunId(random),
    threadId: newThreadId(random),
    agent: 'command',
    request: { kind: 'command', argv: ['true'], cwd: '/' },
    ...overrides,
  }
}

export const submit = (store: Store, overrides: Partial<Submission> = {}): Promise<Submitted> =>
  store.apply(submitRun, submission(overrides))

export async function submitted(store: Store, overrides: Partial<Submission> = {}): Promise<Run> {
  const answer = await submit(store, overrides)
  if (answer.kind !== 'submitted') throw new Error(`not submitted: ${answer.kind}`)
  return answer.run
}

export function claim(
  store: Store,
  workerId: WorkerId,
  limits: CapacityLimits = {},
  only?: RunId,
): Promise<Claim | undefined> {
  const attempt = { id: newAttemptId(random), mark: random.hex(16) }
  return store.apply(claimRun, {
    workerId,
    leaseMs: LEASE_MS,
    limits,
    attempt,
    host: someIdentity().host,
    ...(only === undefined ? {} : { only }),
  })
}

/** A run that a worker holds. */
export async function running(
  store: Store,
  overrides: Partial<Submission> = {},
  limits: CapacityLimits = {},
): Promise<Claim & { ref: AttemptRef }> {
  const workerId = await addWorker(store)
  const run = await submitted(store, overrides)
  const claimed = await claim(store, workerId, limits, run.id)
  if (claimed === undefined) throw new Error('not claimed')
  return { ...claimed, ref: { id: claimed.attempt.id, runId: claimed.run.id, fence: claimed.run.fence } }
}

export async function reread(store: Store, id: RunId): Promise<Run> {
  const run = await store.read(findRun, id)
  if (run === undefined) throw new Error(`no run ${id}`)
  return run
}

export const aThread = (): ThreadId => newThreadId(random)
