import { describe, expect, test } from 'vitest'

import { newAttemptId, newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import type { AskModel } from '../../src/loop/ports.ts'
import { claimRun } from '../../src/runs/claim.ts'
import type { Claim } from '../../src/runs/claim.ts'
import { parkRun, resumeRun } from '../../src/runs/park.ts'
import { takeOverRun } from '../../src/runs/recover.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { executeAgent } from '../../src/workers/agents/execute-agent.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { nothing } from '../support/stage.ts'
import { LEASE_MS, addWorker, reread } from '../support/world.ts'

const MINUTE = 60_000

/** An agent whose model never answers, on a clock that a test moves. */
async function patient(engine: TestEngine) {
  const clock = new FakeClock()
  const store = await (await engine.database()).open({ clock })
  const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId: 'slow' as ThreadId }
  await store.apply(sendMessage, { ...ids, agent: 'clerk', text: 'hello', key: 'hello' })
  let asked = 0
  const ask: AskModel = (_, { signal }) => {
    asked += 1
    const spent = { ...nothing, inputTokens: 7 }
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve({ kind: 'cancelled', spent })))
  }
  const executor = {
    store,
    clock,
    home: temporaryFolder(),
    graceMs: 0,
    leaseMs: LEASE_MS,
    onCommand: () => {},
    warn: () => {},
  }
  const agent = { name: 'clerk', system: '', tools: new Map(), policy: [], ask, limits: { timeoutMs: 60 * MINUTE } }
  return {
    clock,
    store,
    runId: ids.runId,
    asked: () => asked,
    claim: async () => {
      const attempt = { id: newAttemptId(random), mark: random.hex(16) }
      const workerId = await addWorker(store)
      return (await store.apply(claimRun, { workerId, leaseMs: LEASE_MS, limits: {}, attempt, agents: ['clerk'] }))!
    },
    takeOver: async ({ run, attempt }: Claim) => {
      const taker = { workerId: await addWorker(store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
      return (await store.apply(takeOverRun, { ...attempt, runId: run.id }, 'owner-dead', taker))!
    },
    execute: (claim: Claim) => executeAgent(executor, claim, agent, random),
    callIsUnderWay: async (nth: number) => {
      await expect.poll(() => asked, { timeout: 15_000 }).toBe(nth)
    },
  }
}

const refOf = ({ run, attempt }: Claim) => ({ id: attempt.id, runId: run.id, fence: run.fence })

describe.each(engines)('wall time of a run on $name', (engine) => {
  test('counts over its attempts, without the time that it was parked, and says what was spent', async () => {
    const { clock, store, runId, claim, takeOver, execute, callIsUnderWay } = await patient(engine)
    const first = await claim()
    clock.advance(20 * MINUTE)
    await store.apply(parkRun, refOf(first), 'a person')
    clock.advance(600 * MINUTE)
    await store.apply(resumeRun, runId)
    const second = await claim()
    clock.advance(30 * MINUTE)
    const ended = execute(await takeOver(second))
    await callIsUnderWay(1)
    clock.advance(10 * MINUTE - 1)
    expect(await reread(store, runId)).toMatchObject({ state: 'running' })
    clock.advance(1)
    await ended
    expect(await reread(store, runId)).toMatchObject({
      state: 'failed',
      code: 'timeout',
      error: 'timed out after 1h; spent: 0 model calls, 7 tokens in, 0 out, 0.00 USD',
      inputTokens: 7,
    })
  })

  test('a run whose time is over when it is taken up again asks for nothing more', async () => {
    const { clock, store, runId, asked, claim, takeOver, execute } = await patient(engine)
    const first = await claim()
    clock.advance(60 * MINUTE)
    await execute(await takeOver(first))
    expect(await reread(store, runId)).toMatchObject({ state: 'failed', code: 'timeout' })
    expect(asked()).toBe(0)
  })
})
