import { newAttemptId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import { callAll, claimCalls, openCalls, refOfCall } from '../../src/runs/call.ts'
import { finishCall } from '../../src/runs/finish-call.ts'
import { advanceRun } from '../../src/runs/step.ts'
import type { Store } from '../../src/store/store.ts'
import { succeeded } from '../crash/scenario.ts'
import { LEASE_MS, addWorker } from './world.ts'

/** So many calls that were carried out and have ended, each with a step. */
export async function someCalls(store: Store, calls: number): Promise<void> {
  await store.apply(openCalls, 'adder')
  const workerId = await addWorker(store)
  await store.apply(
    callAll,
    Array.from({ length: calls }, () => ({ id: newRunId(random), agent: 'adder', input: '[]' })),
  )
  const attempts = Array.from({ length: calls }, () => newAttemptId(random))
  const claimed = await store.apply(claimCalls, { workerId, leaseMs: LEASE_MS, agents: ['adder'], attempts })
  const done = { name: 'one', effect: 'write', tries: 1, state: 'done', result: '1', error: null, by: null } as const
  await Promise.all(
    claimed.map(async (call) => {
      await store.apply(advanceRun, refOfCall(call), [], 'one')
      await store.apply(finishCall, refOfCall(call), { ...call, request: { kind: 'agent' } } as never, succeeded, [
        done,
      ])
    }),
  )
}
