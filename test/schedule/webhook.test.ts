import { createHmac } from 'node:crypto'

import { describe, expect, test } from 'vitest'

import { actionsOfRun } from '../../src/actions/action.ts'
import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import type { PolicyRule } from '../../src/actions/policy.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { runAgent } from '../../src/loop/loop.ts'
import { openSigner } from '../../src/notify/open.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { WEBHOOK_AGENT } from '../../src/schedule/dispatch.ts'
import { openThread } from '../../src/threads/thread.ts'
import { TOOL_LIMITS } from '../../src/tools/limits.ts'
import type { WebhookOptions } from '../../src/tools/webhook.ts'
import { webhookAgent } from '../../src/workers/agents/webhook-agent.ts'
import { engines } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LEASE_MS } from '../support/world.ts'
import { Receiver, nobody } from './receiver.ts'
import { START, ScheduleWorld } from './support.ts'

const MINUTE = 60_000

interface Setting {
  readonly policy?: readonly PolicyRule[]
  readonly http?: WebhookOptions
  readonly clock?: Clock
}

/** Carries out the next webhook, as a daemon would. How it was left; undefined: there is none. */
async function carryOut(world: ScheduleWorld, setting: Setting = {}): Promise<string | undefined> {
  const { policy = [], http = {}, clock = systemClock } = setting
  const { store, worker: workerId } = world
  const attempt = { id: newAttemptId(random), mark: random.hex(16) }
  const claim = await store.apply(claimRun, {
    workerId,
    leaseMs: LEASE_MS,
    limits: {},
    attempt,
    agents: [WEBHOOK_AGENT],
  })
  if (claim === undefined) return undefined
  const ports = {
    ...webhookAgent({ store, policy, http }),
    agent: WEBHOOK_AGENT,
    store,
    clock,
    random,
    folders: { path: () => '/nowhere', prepare: () => Promise.resolve(), isThere: () => true },
    onAction: () => {},
    emit: () => {},
  }
  const end = await runAgent(ports, claim, new AbortController().signal)
  if (end.kind === 'finished') {
    const ref = { id: claim.attempt.id, runId: claim.run.id, fence: claim.run.fence }
    await store.apply(finishRun, ref, end.outcome)
  }
  return end.kind
}

/** A schedule that comes once, and has come. */
async function due(world: ScheduleWorld, url: string, more: object = {}) {
  const target = { kind: 'webhook', url, ...more } as const
  const { id } = await world.add({ name: 'nightly', rule: { kind: 'once', at: START + MINUTE }, target })
  await world.pass(MINUTE)
  return id
}

const actionOf = async ({ store }: ScheduleWorld, runId: RunId | null) => (await store.read(actionsOfRun, runId!))[0]!

describe.each(engines)('webhooks on $name', (engine) => {
  test('it is called once, with what is due, and says who allowed it', async () => {
    const [world, receiver] = [await ScheduleWorld.open(engine), await Receiver.open()]
    const id = await due(world, receiver.url('/200'), { body: { to: 'ops' } })
    const sign = openSigner('${S}', { now: () => 1_000_000 }, { S: 'secret' })!
    expect(await carryOut(world, { http: { sign } })).toBe('finished')
    const [line] = await world.lines(id)
    expect(line).toMatchObject({ state: 'succeeded', attempts: 1 })
    const told = { schedule: 'nightly', occurrence: line!.id, dueAt: '2026-01-01T00:01:00.000Z', attempt: 1 }
    const [request] = receiver.received
    expect(receiver.received).toHaveLength(1)
    expect(JSON.parse(request!.body)).toEqual({ ...told, data: { to: 'ops' } })
    const signature = createHmac('sha256', 'secret').update(`1000.${request!.body}`).digest('hex')
    const action = await actionOf(world, line!.runId)
    expect(request).toMatchObject({
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': line!.id,
        'x-holdfast-occurrence': line!.id,
        'x-holdfast-action': action.id,
        'x-holdfast-signature': `v1=${signature}`,
        'x-holdfast-timestamp': '1000',
      },
    })
    expect(action).toMatchObject({
      state: 'done',
      effect: 'write',
      result: { status: 200, said: 'this is 200' },
      decision: { kind: 'allow', by: 'ada, who made the schedule nightly', via: 'schedule' },
    })
    expect(await carryOut(world)).toBeUndefined()
    await assertInvariants(world.store)
  })

  test('"not now" and nobody there are tried again, each time under the same key; then it is dropped [F2]', async () => {
    const [world, receiver] = [await ScheduleWorld.open(engine), await Receiver.open()]
    const once = await due(world, receiver.url('/503/200'))
    expect(await carryOut(world)).toBe('finished')
    expect(await world.pass(200)).toBe(1)
    expect(await carryOut(world)).toBe('finished')
    expect(await world.lines(once)).toMatchObject([{ state: 'succeeded', attempts: 2 }])
    const [first, second] = receiver.received
    expect(second!.headers['idempotency-key']).toBe(first!.headers['idempotency-key'])
    expect([first!.headers['x-holdfast-attempt'], second!.headers['x-holdfast-attempt']]).toEqual(['1', '2'])
    for (const [url, words] of [
      [receiver.url('/429'), 'status 429'],
      [nobody(), 'ECONNREFUSED'],
    ] as const) {
      const { id } = await world.add({ rule: { kind: 'in', delayMs: MINUTE }, target: { kind: 'webhook', url } })
      await world.pass(MINUTE)
      for (const waitMs of [200, 400, 800, 0]) {
        expect(await carryOut(world)).toBe('finished')
        if (waitMs > 0) expect(await world.pass(waitMs)).toBe(1)
      }
      expect(await world.lines(id)).toMatchObject([
        { state: 'dropped', attempts: 4, reason: expect.stringContaining(words) as string },
      ])
    }
    await assertInvariants(world.store)
  })

  test('any other answer is one: it failed, and is not tried again', async () => {
    const [world, receiver] = [await ScheduleWorld.open(engine), await Receiver.open()]
    for (const status of ['404', '400', '302']) {
      const target = { kind: 'webhook', url: receiver.url(`/${status}`) } as const
      const { id } = await world.add({ rule: { kind: 'in', delayMs: MINUTE }, target })
      await world.pass(MINUTE)
      await carryOut(world)
      expect(await world.lines(id)).toMatchObject([
        { state: 'failed', attempts: 1, reason: expect.stringContaining(`status ${status}`) as string },
      ])
    }
    expect([await world.pass(86_400_000), receiver.received.length]).toEqual([0, 3])
  })

  test.each([
    [{ kind: 'happened' }, 'succeeded'],
    [{ kind: 'did-not-happen' }, 'failed'],
    [{ kind: 'give-up' }, 'failed'],
  ] as const)('cut off after it was sent it is in doubt, until a person says %j', async (said, state) => {
    const [world, receiver] = [await ScheduleWorld.open(engine), await Receiver.open()]
    const slow = said.kind === 'happened'
    const id = await due(world, receiver.url(slow ? '/hold' : '/cut'))
    const under = carryOut(world, slow ? { clock: world.clock } : {})
    if (slow) {
      await until('it is there', () => Promise.resolve(receiver.received[0]))
      world.clock.advance(TOOL_LIMITS.requestMs)
    }
    expect(await under).toBe('left')
    const [doubt, ...others] = await world.store.read(openDoubts, 10)
    expect([doubt?.tool, others]).toEqual(['webhook', []])
    expect(doubt?.error).toContain('after it was sent')
    expect(await world.states(id)).toEqual(['dispatched'])
    expect([await world.pass(3_600_000), await carryOut(world)]).toEqual([0, undefined])
    await world.store.apply(resolveDoubt, doubt!.id, { ...said, by: 'ada' })
    expect(await carryOut(world)).toBe('finished')
    expect(await world.states(id)).toEqual([state])
    expect([await world.pass(86_400_000), receiver.received.length]).toEqual([0, 1])
    await assertInvariants(world.store)
  })

  test('a rule that denies wins, one that asks asks, and a no is not tried again', async () => {
    const [world, receiver] = [await ScheduleWorld.open(engine), await Receiver.open()]
    const denied = await due(world, receiver.url('/200'))
    await carryOut(world, { policy: [{ tool: 'webhook', decision: 'deny' }] })
    expect(await world.lines(denied)).toMatchObject([{ state: 'failed', attempts: 1 }])
    const policy = [{ effect: 'write', decision: 'ask' }] as const
    const target = { kind: 'webhook', url: receiver.url('/200') } as const
    const asking = await world.add({ rule: { kind: 'in', delayMs: MINUTE }, target })
    await world.pass(MINUTE)
    expect(await carryOut(world, { policy })).toBe('left')
    expect(receiver.received).toEqual([])
    const [asked] = await world.store.read(pendingApprovals, 10)
    const yes = { kind: 'approve', by: 'ada', via: 'test', digest: asked!.digest } as const
    await world.store.apply(decideApproval, asked!.id, yes)
    expect(await carryOut(world, { policy })).toBe('finished')
    expect([await world.states(asking.id), receiver.received.length]).toEqual([['succeeded'], 1])
    await assertInvariants(world.store)
  })

  test('what a run asked for reaches no private address, unless that is allowed', async () => {
    const [world, receiver] = [await ScheduleWorld.open(engine), await Receiver.open()]
    const { id: threadId } = await world.store.apply(openThread, 'asker' as ThreadId, 'clerk', null)
    const owner = { threadId, runId: 'run_1' as RunId }
    const retry = { tries: 0, baseMs: 1, factor: 1, jitter: 0 }
    const target = { kind: 'webhook', url: receiver.url('/200') } as const
    const { id } = await world.add({ target, owner, options: { retry } })
    await world.pass(MINUTE)
    await carryOut(world)
    expect(await world.lines(id)).toMatchObject([{ reason: expect.stringContaining('private address') as string }])
    await world.pass(MINUTE)
    await carryOut(world, { http: { allowPrivate: ['127.0.0.1'] } })
    expect([(await world.states(id)).at(-1), receiver.received.length]).toEqual(['succeeded', 1])
  })
})
