import { describe, expect, test } from 'vitest'

import { pauseSchedule, resumeSchedule } from '../../src/schedule/edit.ts'
import { runNow } from '../../src/schedule/fire.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { messageText } from '../../src/threads/message-text.ts'
import { removeThread, reopenThread, stopThread } from '../../src/threads/remove.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { START, ScheduleWorld, newIds } from './support.ts'

const MINUTE = 60_000
const failed = { state: 'failed', code: 'model', error: 'the model is away' } as const

describe.each(engines)('schedules on $name', (engine) => {
  test('an instant fires once, and its outcome is that of the run it led to [schedule/every-firing-accounted]', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add()
    expect(await world.look()).toBe(0)
    expect(await world.pass(MINUTE)).toBe(1)
    expect(await world.states(id)).toEqual(['dispatched'])
    const runId = await world.work()
    expect(await world.lines(id)).toMatchObject([
      { state: 'succeeded', dueAt: START + MINUTE, attempts: 1, runId, origin: 'due', lateMs: 0 },
    ])
    expect(await world.look()).toBe(0)
    expect((await world.reread(id)).nextAt).toBe(START + 2 * MINUTE)
    await assertInvariants(world.store)
  })

  test('a failure before any write is tried again after 200, 400 and 800 ms, then dropped with the last error [F2] [F3]', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ rule: { kind: 'once', at: START + MINUTE } })
    await world.pass(MINUTE)
    for (const waitMs of [200, 400, 800]) {
      await world.work(failed)
      expect(await world.pass(waitMs - 1)).toBe(0)
      expect(await world.pass(1)).toBe(1)
    }
    await world.work(failed)
    expect(await world.lines(id)).toMatchObject([
      { state: 'dropped', attempts: 4, reason: 'model: the model is away (after 4 attempts)' },
    ])
    expect(await world.pass(365 * 86_400_000)).toBe(0)
    expect(await world.reread(id)).toMatchObject({ state: 'ended', nextAt: null })
    await assertInvariants(world.store)
  })

  test('what was missed fires once, late, and one line stands for the others', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add()
    await world.pass(10 * MINUTE + 90_000)
    expect(await world.lines(id)).toMatchObject([
      { state: 'skipped', dueAt: START + MINUTE, lastAt: START + 10 * MINUTE, instants: 10 },
      { state: 'dispatched', dueAt: START + 11 * MINUTE, origin: 'due', lateMs: 30_000 },
    ])
    expect((await world.reread(id)).nextAt).toBe(START + 12 * MINUTE)
    await assertInvariants(world.store)
  })

  test('one that is still at work makes the next one skip, wait or take its place, as set', async () => {
    for (const [overlap, states] of [
      ['skip', ['dispatched', 'skipped', 'skipped']],
      ['queue', ['dispatched', 'due', 'skipped']],
      ['cancel', ['dispatched', 'skipped', 'due']],
    ] as const) {
      const world = await ScheduleWorld.open(engine)
      const { id } = await world.add({ options: { overlap } })
      await world.pass(MINUTE)
      const claim = await world.begin()
      await world.pass(MINUTE)
      await world.pass(MINUTE)
      expect([overlap, await world.states(id)]).toEqual([overlap, states])
      if (claim === undefined) throw new Error('not claimed')
      await world.end(claim, overlap === 'cancel' ? { state: 'cancelled' } : { state: 'succeeded' })
      await world.look()
      expect([overlap, (await world.states(id)).at(overlap === 'queue' ? 1 : 2)]).toEqual([
        overlap,
        overlap === 'skip' ? 'skipped' : 'dispatched',
      ])
      await assertInvariants(world.store)
    }
  })

  test('a stopped thread gets no surprise turn: held until it is opened, dropped, or woken [F7]', async () => {
    const world = await ScheduleWorld.open(engine)
    const hold = await world.add({ name: 'hold', options: { stopped: 'hold' } })
    const drop = await world.add({ name: 'drop', options: { stopped: 'drop' } })
    await world.store.apply(stopThread, world.thread)
    await world.pass(MINUTE)
    expect(await world.lines(hold.id)).toMatchObject([{ state: 'due', waits: 'thread' }])
    expect(await world.lines(drop.id)).toMatchObject([
      { state: 'dropped', reason: `the thread ${world.thread} is stopped` },
    ])
    expect(await world.claim()).toBeUndefined()
    await world.store.apply(reopenThread, world.thread)
    expect(await world.look()).toBe(1)
    expect(await world.states(hold.id)).toEqual(['dispatched'])
    await assertInvariants(world.store)
  })

  test('removing a thread ends its schedules in the same transaction, with the reason [F1]', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add()
    await world.store.apply(stopThread, world.thread)
    await world.pass(MINUTE)
    await world.store.apply(removeThread, world.thread)
    expect(await world.reread(id)).toMatchObject({ state: 'ended', reason: `the thread ${world.thread} was removed` })
    expect(await world.lines(id)).toMatchObject([
      { state: 'dropped', reason: `the thread ${world.thread} was removed` },
    ])
    expect(await world.pass(86_400_000)).toBe(0)
    await assertInvariants(world.store)
  })

  test('five failures in a row pause it; by hand it fires all the same, and the next regular instant stays [F4]', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { retry: { tries: 0, baseMs: 200, factor: 2, jitter: 0 } } })
    for (let n = 0; n < 5; n += 1) {
      await world.pass(MINUTE)
      await world.work(failed)
    }
    expect(await world.reread(id)).toMatchObject({
      state: 'paused',
      reason: '5 failures in a row',
      nextAt: START + 6 * MINUTE,
    })
    expect(await world.pass(MINUTE)).toBe(0)
    const begun = await world.store.apply(runNow, id, 'k', 'ada', newIds())
    expect(begun).toMatchObject({
      kind: 'begun',
      occurrence: { state: 'dispatched', origin: 'run_now', byWhom: 'ada' },
    })
    await world.work()
    expect((await world.lines(id)).at(-1)).toMatchObject({ state: 'succeeded', origin: 'run_now' })
    expect((await world.reread(id)).nextAt).toBe(START + 6 * MINUTE)
    await world.pass(2 * MINUTE)
    await world.store.apply(resumeSchedule, id, 'ada')
    expect((await world.lines(id)).filter(({ state }) => state === 'skipped')).toMatchObject([
      { dueAt: START + 6 * MINUTE, lastAt: START + 8 * MINUTE, instants: 3, reason: 'paused: 5 failures in a row' },
    ])
    expect(await world.reread(id)).toMatchObject({ state: 'active', nextAt: START + 9 * MINUTE, failures: 0 })
    await world.store.apply(pauseSchedule, id, 'ada')
    expect(await world.pass(MINUTE)).toBe(0)
    await assertInvariants(world.store)
  })

  test('a turn that a schedule begins says which, since when, how late and why', async () => {
    const world = await ScheduleWorld.open(engine)
    await world.add({ name: 'look', rule: { kind: 'once', at: START + MINUTE }, options: { why: 'the build was red' } })
    await world.pass(2 * MINUTE)
    const [message] = await world.store.read(messagesOf, world.thread)
    expect(messageText(message!)).toBe(
      '[scheduled job look; asked for at 2026-01-01T00:00:00.000Z; due at 2026-01-01T00:01:00.000Z, 1m late; because: the build was red]\nlook again',
    )
  })
})
