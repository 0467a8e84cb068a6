import { describe, expect, test } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import { newAttemptId, newWorkerId, systemRandomness as random } from '../../src/base/ids.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import { recordStarting } from '../../src/runs/attempt.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { heldAttempts, takeOverRun } from '../../src/runs/recover.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import type { Store } from '../../src/store/store.ts'
import { thisPlace } from '../../src/processes/identity.ts'
import { continueTaken } from '../../src/workers/execute.ts'
import { commandFolder } from '../../src/workers/home.ts'
import { takeLostRuns } from '../../src/workers/recover.ts'
import { newAttempt } from '../crash/scenario.ts'
import { engines } from '../support/engines.ts'
import { LEASE_MS, addWorker, reread, submitted } from '../support/world.ts'

/** Where nobody can make a folder, whoever he is. */
const BARRED = '/proc/nobody'

/** A command that was claimed by a worker of this host, which is dead, with a home that nobody can enter. */
async function left(store: Store, more: Parameters<typeof submitted>[1] = {}) {
  const workerId = newWorkerId(random)
  const identity = { ...thisPlace(), pid: 1, startTime: 1 }
  await store.apply(registerWorker, { id: workerId, kind: 'command', home: BARRED, identity })
  const { id } = await submitted(store, more)
  const claimant = { workerId, leaseMs: LEASE_MS, limits: {}, host: identity.host, agents: ['gone'], only: id }
  const { run, attempt } = (await store.apply(claimRun, { ...claimant, attempt: newAttempt() }))!
  const ref: AttemptRef = { id: attempt.id, runId: id, fence: run.fence }
  return { id, ref, taker: await addWorker(store) }
}

describe.each(engines)('on $name the home of a dead worker is another user’s', (engine) => {
  test('what may have started is left to somebody who can look: nobody says that it is lost', async () => {
    const store = await (await engine.database()).open()
    const { id, ref, taker } = await left(store)
    await store.apply(recordStarting, ref)
    const recoverer = { store, random, workerId: taker, leaseMs: LEASE_MS, agents: new Set<string>() }
    const taken: string[] = []
    const take = (isBarred: (path: string) => boolean) =>
      takeLostRuns({ ...recoverer, isBarred }, ({ claim: { run } }) => void taken.push(run.id))
    await take((path) => path.startsWith(BARRED))
    expect([taken, (await reread(store, id)).attempt]).toEqual([[], 1])
    await take(() => false)
    expect(taken).toEqual([id])
  })

  test('what was cancelled of an agent that nobody has is ended by somebody who can look at what its tools left', async () => {
    const store = await (await engine.database()).open()
    const { id, taker } = await left(store, { agent: 'gone', request: { kind: 'agent' } })
    await store.apply(cancelRun, id, { by: 'ann' })
    const recoverer = { store, random, workerId: taker, leaseMs: LEASE_MS, agents: new Set<string>() }
    const taken: string[] = []
    const take = (isBarred: (path: string) => boolean) =>
      takeLostRuns({ ...recoverer, isBarred }, ({ claim: { run } }) => void taken.push(run.id))
    await take((path) => path.startsWith(BARRED))
    expect(taken).toEqual([])
    await take(() => false)
    expect(taken).toEqual([id])
  })

  test('what has not recorded its intent has not started: no folder has to be entered', async () => {
    const store = await (await engine.database()).open()
    const { id, taker } = await left(store)
    const [held] = await store.read(heldAttempts)
    const by = { workerId: taker, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    const taken = (await store.apply(takeOverRun, held!, 'owner-dead', by))!
    const trouble = Promise.withResolvers<never>()
    const executor = {
      store,
      home: BARRED,
      clock: systemClock,
      graceMs: 1_000,
      leaseMs: LEASE_MS,
      onCommand: () => {},
      warn: (message: string) => trouble.reject(new Error(message)),
    }
    await Promise.race([continueTaken(executor, taken, commandFolder(BARRED, taken.attempt.mark)), trouble.promise])
    expect((await reread(store, id)).state).toBe('queued')
  })
})
