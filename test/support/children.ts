import { newActionId, newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import type { MessageId, RunId, ThreadId } from '../../src/base/ids.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import type { NewChild } from '../../src/runs/children.ts'
import { claimRun } from '../../src/runs/claim.ts'
import type { Claimant } from '../../src/runs/claim.ts'
import type { Store } from '../../src/store/store.ts'
import { LEASE_MS, addWorker } from './world.ts'

/** A worker that executes these agents, and wants this run, or any. */
export async function aClaimant(store: Store, agents: readonly string[], only?: RunId): Promise<Claimant> {
  return {
    workerId: await addWorker(store),
    leaseMs: LEASE_MS,
    limits: {},
    attempt: { id: newAttemptId(random), mark: random.hex(16) },
    agents,
    ...(only === undefined ? {} : { only }),
  }
}

/** A run of an agent that a worker holds. */
export async function claimAgent(store: Store, agents: readonly string[], only?: RunId): Promise<AttemptRef> {
  const claimed = await store.apply(claimRun, await aClaimant(store, agents, only))
  if (claimed === undefined) throw new Error('nothing to claim')
  return { id: claimed.attempt.id, runId: claimed.run.id, fence: claimed.run.fence }
}

export function aChild(parent: AttemptRef, overrides: Partial<NewChild> = {}): NewChild {
  const number = newActionId(random).slice('act_'.length)
  return {
    parentRunId: parent.runId,
    mode: 'background',
    agent: 'helper',
    key: `delegate:${number}`,
    threadId: `thr_${number}` as ThreadId,
    runId: `run_${number}` as RunId,
    messageId: `msg_${number}` as MessageId,
    work: { task: 'count the beans' },
    limits: { depth: 4, children: 3 },
    backlogLimit: 100,
    ...overrides,
  }
}
