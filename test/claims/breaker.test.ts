import { describe, expect, test } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import { newAttemptId, newMessageId, newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { eventsAfter } from '../../src/events/event.ts'
import { openBreakers } from '../../src/runs/breaker.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { claimRun } from '../../src/runs/claim.ts'
import type { Claim } from '../../src/runs/claim.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { parkRun, resumeRun } from '../../src/runs/park.ts'
import { listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import type { Store } from '../../src/store/store.ts'
import { sql } from '../../src/store/sql.ts'
import { run as execute, single } from '../../src/store/transition.ts'
import { idleThreads, messagesOf } from '../../src/threads/message.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { AgentInstallation } from '../support/agents.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LEASE_MS, addWorker, reread } from '../support/world.ts'
import { providerServer, refuses, replies } from '../model/provider-server.ts'

const refused = { state: 'failed', code: 'auth', error: 'this is 401' } as const

/** Agents' runs as the worker sees them, without a model. */
class Desk {
  readonly store: Store
  readonly clock: FakeClock
  constructor(store: Store, clock: FakeClock) {
    this.store = store
    this.clock = clock
  }

  async send(threadId = newThreadId(random)): Promise<ThreadId> {
    const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId }
    await this.store.apply(sendMessage, { ...ids, agent: 'helper', text: 'go', key: ids.messageId })
    return threadId
  }

  async claim(): Promise<Claim | undefined> {
    const [workerId, attempt] = [await addWorker(this.store), { id: newAttemptId(random), mark: random.hex(16) }]
    return this.store.apply(claimRun, { workerId, leaseMs: LEASE_MS, limits: {}, agents: ['helper'], attempt })
  }

  async begin(): Promise<Claim> {
    await this.send()
    const claim = await this.claim()
    if (claim === undefined) throw new Error('it was refused')
    return claim
  }

  /** Fails with the key three times: from now on it is open. */
  async open(): Promise<void> {
    for (let time = 0; time < 3; time++) await this.store.apply(finishRun, refOf(await this.begin()), refused)
  }

  told = async () =>
    (await this.store.read(eventsAfter, 0, 1_000)).map(({ type }) => type).filter((type) => type.startsWith('breaker.'))
}

const refOf = ({ run, attempt }: Claim) => ({ id: attempt.id, runId: run.id, fence: run.fence })

describe.each(engines)('the breaker of an agent on $name', (engine) => {
  const setUp = async () => {
    const clock = new FakeClock()
    return new Desk(await (await engine.database()).open({ clock }), clock)
  }

  test('tells the operator once an outage, however many runs and probes fail [T6]', async () => {
    const desk = await setUp()
    await desk.open()
    await desk.send()
    expect(await desk.claim()).toBeUndefined()
    for (let probe = 0; probe < 3; probe++) {
      desk.clock.advance(300_000)
      await desk.store.apply(finishRun, refOf(await desk.begin()), refused)
    }
    expect(await desk.told()).toEqual(['breaker.opened', 'breaker.reopened', 'breaker.reopened', 'breaker.reopened'])
    desk.clock.advance(300_000)
    await desk.store.apply(finishRun, refOf(await desk.begin()), { state: 'succeeded' })
    expect((await desk.told()).at(-1)).toBe('breaker.reset')
    expect(await desk.store.read(openBreakers)).toEqual([])
  })

  test('answers what it refuses: the message starts no other run, its thread goes on with the next [T6]', async () => {
    const desk = await setUp()
    await desk.open()
    const threadId = await desk.send()
    expect(await desk.claim()).toBeUndefined()
    const [message] = await desk.store.read(messagesOf, threadId)
    expect(message).toMatchObject({ state: 'consumed' })
    expect(await reread(desk.store, message!.consumedByRun!)).toMatchObject({ state: 'failed', code: 'circuit_open' })
    expect(await desk.store.read(idleThreads, ['helper'], 10)).toEqual([])
    await assertInvariants(desk.store)
    desk.clock.advance(30_000)
    await desk.send(threadId)
    expect((await desk.claim())?.run.threadId).toBe(threadId)
  })

  test('refuses new runs, not one that had begun before it opened', async () => {
    const desk = await setUp()
    const begun = await desk.begin()
    await desk.store.apply(parkRun, refOf(begun), 'a rate limit')
    await desk.open()
    await desk.store.apply(resumeRun, begun.run.id)
    expect((await desk.claim())?.run.id).toBe(begun.run.id)
  })

  test('gives the place of a probe that was parked, or ended unseen, to the next', async () => {
    const desk = await setUp()
    await desk.open()
    desk.clock.advance(30_000)
    const parked = await desk.begin()
    await desk.send()
    expect(await desk.claim()).toBeUndefined()
    await desk.store.apply(parkRun, refOf(parked), 'a rate limit')
    const second = await desk.begin()
    await desk.store.apply(cancelRun, second.run.id, { by: 'tester' })
    await desk.store.apply(finishRun, refOf(second), { state: 'cancelled' })
    // As if it had been chosen and cancelled in the same instant, on a database with several writers.
    await desk.store.apply(single(() => execute(sql`update breakers set probe_run_id = ${second.run.id}`)))
    expect((await desk.begin()).run.state).toBe('running')
  })

  test.each(['queued', 'parked', 'running'] as const)(
    'a run that is cancelled while %s takes what it was started for with it: nothing starts again [runs/cancel-is-final]',
    async (state) => {
      const desk = await setUp()
      const threadId = await desk.send()
      const claim = state === 'queued' ? undefined : await desk.claim()
      if (state === 'parked') await desk.store.apply(parkRun, refOf(claim!), 'a rate limit')
      const [{ id: runId } = expect.unreachable()] = await desk.store.read(listRuns, { threadId, limit: 1 })
      await desk.store.apply(cancelRun, runId, { by: 'tester' })
      if (state === 'running') await desk.store.apply(finishRun, refOf(claim!), { state: 'cancelled' })
      expect(await desk.store.read(messagesOf, threadId)).toMatchObject([{ state: 'consumed', consumedByRun: runId }])
      expect(await desk.store.read(idleThreads, ['helper'], 10)).toEqual([])
      await assertInvariants(desk.store)
    },
  )
})

test('a provider that refuses the key is asked three times; then runs fail at once, the operator is told once, and a good answer ends it [T6] [T8]', async () => {
  const provider = await providerServer([refuses(401), refuses(403), refuses(401), replies])
  const env = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: 'expired' }
  const place = new AgentInstallation({ agents: { helper: { model: 'anthropic/claude-sonnet-5' } } }, { env })
  const daemon = await place.daemon(4)
  const ask = async () => (await place.ended((await place.send('helper')).runId)).code
  expect([await ask(), await ask(), await ask()]).toEqual(['auth', 'auth', 'auth'])
  expect([await ask(), await ask()]).toEqual(['circuit_open', 'circuit_open'])
  expect(provider.requests()).toBe(3)
  const status = await place.run(['status'])
  expect(status.stdout).toMatch(/agent helper is stopped until .*: its provider refuses the credentials/)
  // Its time passes.
  const store = await place.store()
  await store.apply(single(() => execute(sql`update breakers set open_until = ${systemClock.now() - 1}`)))
  expect(await place.ask('helper')).toMatchObject({ state: 'succeeded', result: { text: 'hello' } })
  expect((await place.run(['status'])).stdout).not.toContain('stopped')
  expect(provider.requests()).toBe(4)
  daemon.kill('SIGTERM')
  expect((await daemon.ended).stderr.match(/agent helper is stopped for 30s/g)).toHaveLength(1)
})
