import { describe, expect, onTestFinished, test } from 'vitest'

import { newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ScheduleId, ThreadId } from '../../src/base/ids.ts'
import { findRun, listRuns } from '../../src/runs/run.ts'
import { editSchedule, pauseSchedule, removeSchedule, resumeSchedule } from '../../src/schedule/edit.ts'
import { runNow } from '../../src/schedule/fire.ts'
import type { Target } from '../../src/schedule/schedule.ts'
import { sessionActive, sessionStarted, turnBegun, turnStopped } from '../../src/sessions/events.ts'
import { messagesOf, pendingMessages } from '../../src/threads/message.ts'
import { openThread } from '../../src/threads/thread.ts'
import { Scheduler } from '../../src/workers/scheduler.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { AGENT, START, ScheduleWorld, newIds } from './support.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const once = { kind: 'once', at: START + MINUTE } as const
const away = { state: 'failed', code: 'model', error: 'away' } as const
const wrong = { state: 'failed', code: 'validation', error: 'no' } as const
const fine = { state: 'succeeded' } as const
const each = (limit: number) => ({ policy: 'each', limit }) as const
const paused = { state: 'skipped', reason: expect.stringMatching(/^paused: /) }
const gaveWay = { reason: expect.stringMatching(/^overlap: /) }

const anotherThread = async ({ store }: ScheduleWorld): Promise<ThreadId> =>
  (await store.apply(openThread, newThreadId(random), AGENT, null)).id

const waiting = async (world: ScheduleWorld, id: ScheduleId) =>
  (await world.states(id)).filter((state) => state === 'due').length

const queuedRuns = async ({ store }: ScheduleWorld) =>
  (await store.read(listRuns, { limit: 10, states: ['queued'] })).length

/** Looks as a daemon does, once a second. */
async function lookFor({ store, clock }: ScheduleWorld, seconds: number): Promise<void> {
  const scheduler = new Scheduler({ store, clock, random, warn: () => undefined })
  onTestFinished(() => scheduler.stop())
  for (let n = 0; n < seconds; n += 1) {
    clock.advance(1_000)
    await scheduler.look()
  }
}

describe.each(engines)('a pause, on $name', (engine) => {
  test('after failures in a row: what was to be caught up is not', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { misfire: each(5), pauseAfter: 2 } })
    await world.pass(5 * MINUTE)
    let runs = 0
    for (; (await world.work(wrong)) !== undefined && runs < 9; runs += 1) await world.look()
    expect([runs, (await world.reread(id)).state]).toEqual([2, 'paused'])
    expect(await world.lines(id)).toMatchObject([{ state: 'failed' }, { state: 'failed' }, paused, paused, paused])
    await assertInvariants(world.store)
  })

  test('by a person: what waits for its turn does not get it; by hand it still fires, one after the other', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { overlap: 'queue' } })
    await world.pass(MINUTE)
    const claim = (await world.begin())!
    await world.pass(MINUTE)
    await world.store.apply(pauseSchedule, id, 'ada')
    await world.end(claim, fine)
    await world.look()
    expect(await world.work()).toBeUndefined()
    expect(await world.lines(id)).toMatchObject([{ state: 'succeeded' }, paused])
    for (const key of ['a', 'b']) await world.store.apply(runNow, id, key, 'ada', newIds())
    for (let n = 0; n < 2; n += 1) {
      expect(await world.work()).toBeDefined()
      await world.look()
    }
    expect(await world.states(id)).toEqual(['succeeded', 'skipped', 'succeeded', 'succeeded'])
    expect(await world.reread(id)).toMatchObject({ state: 'paused', nextAt: START + 3 * MINUTE })
    await assertInvariants(world.store)
  })

  test('does not end the retries of the one that is under way', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { overlap: 'queue' } })
    await world.pass(MINUTE)
    await world.work(away)
    await world.pass(100)
    await world.store.apply(pauseSchedule, id, 'ada')
    expect(await world.pass(100)).toBe(1)
    await world.work()
    expect(await world.lines(id)).toMatchObject([{ state: 'succeeded', attempts: 2 }])
  })
})

describe.each(engines)('one takes the place of another, on $name', (engine) => {
  test('delete after run: the one that takes the place of another is the run after which it is deleted', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { overlap: 'cancel', deleteAfterRun: true } })
    await world.pass(MINUTE)
    const claim = (await world.begin())!
    await world.pass(MINUTE)
    await world.end(claim, { state: 'cancelled' })
    await world.look()
    expect(await world.reread(id)).toMatchObject({ state: 'active' })
    expect(await world.work()).toBeDefined()
    expect(await world.lines(id)).toMatchObject([gaveWay, { state: 'succeeded' }])
    expect(await world.reread(id)).toMatchObject({ state: 'removed' })
    await assertInvariants(world.store)
  })

  test('delete after run, once: a firing by hand that takes its place is carried out', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ rule: once, options: { overlap: 'cancel', deleteAfterRun: true } })
    await world.pass(MINUTE)
    const claim = (await world.begin())!
    world.clock.step(1_000)
    await world.store.apply(runNow, id, 'k', 'ada', newIds())
    await world.end(claim, { state: 'cancelled' })
    await world.look()
    expect(await world.work()).toBeDefined()
    expect(await world.lines(id)).toMatchObject([gaveWay, { state: 'succeeded', origin: 'run_now' }])
    expect((await world.reread(id)).state).toMatch(/^(ended|removed)$/)
    await assertInvariants(world.store)
  })

  test('delete after run: of those that were to be caught up the rest is skipped, and nobody is warned', async () => {
    const world = await ScheduleWorld.open(engine)
    const owner = await anotherThread(world)
    const { id } = await world.add({
      options: { deleteAfterRun: true, misfire: each(3) },
      owner: { threadId: owner },
    })
    await world.pass(3 * MINUTE)
    await world.work()
    await world.look()
    expect(await world.states(id)).toEqual(['succeeded', 'skipped', 'skipped'])
    expect(await world.reread(id)).toMatchObject({ state: 'removed' })
    expect(await world.store.read(messagesOf, owner)).toEqual([])
    await assertInvariants(world.store)
  })

  test("a client's own turn is not cancelled for the next firing: that waits for its end", async () => {
    const world = await ScheduleWorld.open(engine)
    const heard = { client: 'claude', sessionId: 's', process: { pid: 7 } } as const
    const { threadId } = await world.store.apply(sessionStarted, heard, 'startup')
    await world.store.apply(turnBegun, heard, 'p1')
    const target: Target = { kind: 'message', threadId, generation: 1, text: 'look' }
    const { id } = await world.add({ target, options: { overlap: 'cancel' } })
    await world.pass(MINUTE)
    const stop = { turn: 'p1', isPaused: false, lastMessage: 'done' }
    await world.store.apply(turnStopped, heard, { ...stop, ordinal: 1, isActive: false, deliveryId: 'd1' })
    await world.store.apply(sessionActive, heard)
    await world.pass(MINUTE)
    const [first, second] = await world.lines(id)
    expect([first, second]).toMatchObject([{ state: 'dispatched' }, { state: 'due', waits: 'overlap' }])
    expect(await world.store.read(findRun, first!.runId!)).toMatchObject({ state: 'running', cancelRequestedAt: null })
    await world.store.apply(turnStopped, heard, { ...stop, ordinal: 2, isActive: true, deliveryId: 'd2' })
    await world.look()
    expect(await world.states(id)).toEqual(['succeeded', 'dispatched'])
    expect(await world.store.read(findRun, first!.runId!)).toMatchObject({ state: 'succeeded' })
    await assertInvariants(world.store)
  })

  test('one that gave way in the queue leaves no run behind, and its owner hears nothing of it', async () => {
    const world = await ScheduleWorld.open(engine)
    const target: Target = { kind: 'agent', agent: AGENT, text: 'go' }
    const owner = await anotherThread(world)
    const { id } = await world.add({ target, owner: { threadId: owner }, options: { overlap: 'cancel' } })
    for (let n = 0; n < 3; n += 1) await world.pass(MINUTE)
    expect(await world.lines(id)).toMatchObject([gaveWay, gaveWay, { state: 'dispatched' }])
    expect(await queuedRuns(world)).toBe(1)
    await world.store.apply(removeSchedule, id, 'ada', true)
    expect(await queuedRuns(world)).toBe(0)
    expect(await world.work()).toBeUndefined()
    expect(await world.store.read(pendingMessages, owner, 10)).toEqual([])
    await assertInvariants(world.store)
  })

  test('no more wait than may be caught up, however often it is late', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { misfire: each(3) } })
    for (let n = 0; n < 5; n += 1) {
      await world.pass(10 * MINUTE)
      expect(await waiting(world, id)).toBeLessThanOrEqual(3)
    }
    for (let n = 0; n < 9 && (await world.work()) !== undefined; n += 1) await world.look()
    expect(await waiting(world, id)).toBe(0)
    const lines = await world.lines(id)
    expect(lines.filter(({ state }) => state === 'succeeded').length).toBeLessThanOrEqual(4)
    expect(lines.reduce((sum, { instants }) => sum + instants, 0)).toBe(50)
    await assertInvariants(world.store)
  })
})

describe.each(engines)('what could be lost, on $name', (engine) => {
  const cron = { kind: 'cron', expression: '*/5 * * * *', zone: 'UTC' } as const
  const every = { kind: 'every', everyMs: 5 * MINUTE, anchor: START + 5 * MINUTE } as const

  test.each([every, cron])('a jitter as long as the interval is refused, for $kind', async (rule) => {
    const world = await ScheduleWorld.open(engine)
    const refused = { code: 'usage/schedule' }
    for (const jitterMs of [5 * MINUTE, HOUR])
      await expect(world.add({ rule, options: { jitterMs } })).rejects.toMatchObject(refused)
    const { id } = await world.add({ rule, options: { jitterMs: 4 * MINUTE } })
    const edits = [{ options: { jitterMs: 5 * MINUTE } }, { rule: { ...every, everyMs: MINUTE } }]
    for (const edit of edits)
      await expect(world.store.apply(editSchedule, id, edit, 'ada')).rejects.toMatchObject(refused)
    expect(await world.reread(id)).toMatchObject({ rule, options: { jitterMs: 4 * MINUTE } })
    await world.add({ rule: once, options: { jitterMs: HOUR } })
  })

  test('the clock is set back by an hour: a retry comes within seconds all the same', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add()
    await world.pass(MINUTE)
    await world.work(away)
    world.clock.step(-HOUR)
    await lookFor(world, 5)
    expect(await world.lines(id)).toMatchObject([{ state: 'dispatched', attempts: 2 }])
    await assertInvariants(world.store)
  })

  test('the clock is set back by an hour: one whose turn has come begins within seconds all the same', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { overlap: 'queue' } })
    await world.pass(MINUTE)
    const claim = (await world.begin())!
    await world.pass(MINUTE)
    await world.end(claim, fine)
    world.clock.step(-HOUR)
    await lookFor(world, 5)
    expect(await world.states(id)).toEqual(['succeeded', 'dispatched'])
    await assertInvariants(world.store)
  })

  test('one that comes once is not lost by an edit back to an instant that has its line', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ rule: once })
    await world.store.apply(pauseSchedule, id, 'ada')
    await world.pass(2 * MINUTE)
    await world.store.apply(editSchedule, id, { rule: { kind: 'once', at: START + 9 * MINUTE } }, 'ada')
    expect(await world.store.apply(editSchedule, id, { rule: once }, 'ada')).toEqual({ kind: 'never' })
    await world.store.apply(resumeSchedule, id, 'ada')
    await world.pass(7 * MINUTE)
    expect(await world.work()).toBeDefined()
    expect(await world.lines(id)).toMatchObject([
      { state: 'skipped', dueAt: START + MINUTE },
      { state: 'succeeded', dueAt: START + 9 * MINUTE },
    ])
    await assertInvariants(world.store)
  })
})
