import { describe, expect, test } from 'vitest'

import { newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { listRuns } from '../../src/runs/run.ts'
import { editSchedule, pauseSchedule, removeSchedule } from '../../src/schedule/edit.ts'
import { runNow } from '../../src/schedule/fire.ts'
import { forgetOccurrences } from '../../src/schedule/retention.ts'
import { settleLeft } from '../../src/schedule/run-ended.ts'
import type { Target } from '../../src/schedule/schedule.ts'
import { sessionActive, sessionStarted, turnBegun, turnStopped } from '../../src/sessions/events.ts'
import { now, sql } from '../../src/store/sql.ts'
import type { Sql } from '../../src/store/sql.ts'
import { run } from '../../src/store/transition.ts'
import { buryUntaken, retryDead } from '../../src/threads/dead-letter.ts'
import { acknowledgeDelivery, leaseMessages } from '../../src/threads/delivery.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { wordsOf } from '../../src/threads/message-text.ts'
import { removeThread, reopenThread, stopThread } from '../../src/threads/remove.ts'
import { openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants, violations } from '../support/invariants.ts'
import { AGENT, START, ScheduleWorld, newIds } from './support.ts'

const MINUTE = 60_000
const once = { kind: 'once', at: START + MINUTE } as const
const away = { state: 'failed', code: 'model', error: 'away' } as const
const noRetry = { tries: 0, baseMs: 200, factor: 2, jitter: 0 }

const notices = async (world: ScheduleWorld, threadId: ThreadId) =>
  (await world.store.read(messagesOf, threadId))
    .filter(({ kind }) => kind === 'notice')
    .map(({ body }) => wordsOf(body))

const HEARD = { client: 'claude', sessionId: 's', process: { pid: 7 } } as const

function* write(statement: Sql) {
  yield* run(statement)
}

/** A write of this run that had begun. */
function* aWrite(runId: string, threadId: string) {
  yield* run(sql`insert into actions (id, run_id, thread_id, entry_seq, ordinal, call_id, tool, effect, repeats, input, signature, state,
      mark, tries, started_at, settled_at, created_at)
    values (${`act_${runId}`}, ${runId}, ${threadId}, 1, 0, 'c', 't', 'write', 'each', '{}', 's', 'done', 'm', 1, ${now}, ${now}, ${now})`)
}

describe.each(engines)('schedules and what they meet, on $name', (engine) => {
  test('the old one that waits in the inbox gives way without anybody being warned', async () => {
    const world = await ScheduleWorld.open(engine)
    const owner = (await world.store.apply(openThread, newThreadId(random), AGENT, null)).id
    const { id } = await world.add({ options: { overlap: 'cancel', pauseAfter: 1 }, owner: { threadId: owner } })
    await world.pass(MINUTE)
    await world.pass(MINUTE)
    expect(await world.lines(id)).toMatchObject([
      { state: 'skipped', reason: expect.stringContaining('takes its place') },
      { state: 'dispatched' },
    ])
    expect(await notices(world, owner)).toEqual([])
    expect((await world.reread(id)).state).toBe('active')
    await world.work()
    expect(await world.states(id)).toEqual(['skipped', 'succeeded'])
    await assertInvariants(world.store)
  })

  test('a run that also does what a person asked for is not cancelled for the next firing', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { overlap: 'cancel' } })
    await world.write()
    await world.pass(MINUTE)
    const claim = await world.begin()
    await world.pass(MINUTE)
    expect(await world.lines(id)).toMatchObject([{ state: 'dispatched' }, { state: 'due', waits: 'overlap' }])
    await world.end(claim!, { state: 'succeeded' })
    expect(await world.look()).toBe(1)
    expect(await world.states(id)).toEqual(['succeeded', 'dispatched'])
    await assertInvariants(world.store)
  })

  test('one that is always late does not pile up: it is skipped as one in time', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { graceMs: 0 } })
    await world.pass(MINUTE + 10)
    await world.begin()
    for (let n = 0; n < 3; n += 1) await world.pass(MINUTE)
    expect(await world.states(id)).toEqual(['dispatched', 'skipped', 'skipped', 'skipped'])
    await assertInvariants(world.store)
  })

  test('those that are caught up follow each other, whatever is set for an overlap', async () => {
    for (const overlap of ['skip', 'queue', 'cancel'] as const) {
      const world = await ScheduleWorld.open(engine)
      const { id } = await world.add({ options: { overlap, misfire: { policy: 'each', limit: 3 } } })
      await world.pass(5 * MINUTE)
      expect([overlap, await world.states(id)]).toEqual([overlap, ['skipped', 'dispatched', 'due', 'due']])
      for (let n = 0; n < 3; n += 1) {
        await world.work()
        await world.look()
      }
      expect(await world.states(id)).toEqual(['skipped', 'succeeded', 'succeeded', 'succeeded'])
      await assertInvariants(world.store)
    }
  })

  test('what had come due when its schedule was changed, removed or lost its thread has a line that says so', async () => {
    const world = await ScheduleWorld.open(engine)
    const [edited, removed, orphan] = [await world.add(), await world.add(), await world.add()]
    world.clock.step(2.5 * MINUTE)
    const rule = { kind: 'every', everyMs: 2 * MINUTE, anchor: START } as const
    await world.store.apply(editSchedule, edited.id, { rule }, 'ada')
    await world.store.apply(removeSchedule, removed.id, 'ada')
    await world.store.apply(removeThread, world.thread)
    for (const [{ id }, reason] of [
      [edited, 'its rule was changed by ada before anybody acted on it'],
      [removed, 'its schedule is over: removed by ada'],
      [orphan, `its schedule is over: the thread ${world.thread} was removed`],
    ] as const)
      expect(await world.lines(id)).toMatchObject([{ state: 'skipped', instants: 2, dueAt: START + MINUTE, reason }])
    await assertInvariants(world.store)
  })

  test('an edit while the last one is under way: kept, or more to come; never an instant of the past', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { maxFirings: 1 } })
    await world.pass(MINUTE)
    const kept = await world.store.apply(editSchedule, id, { options: { pauseAfter: 9 } }, 'ada')
    expect(kept).toMatchObject({ kind: 'edited', schedule: { nextAt: null } })
    const more = await world.store.apply(editSchedule, id, { options: { maxFirings: 2 } }, 'ada')
    expect(more).toMatchObject({ kind: 'edited', schedule: { nextAt: START + 2 * MINUTE } })
    expect(await world.store.apply(editSchedule, id, { options: { maxFirings: 1 } }, 'ada')).toEqual({ kind: 'never' })
    await world.work()
    await world.pass(MINUTE)
    await world.work()
    expect(await world.states(id)).toEqual(['succeeded', 'succeeded'])
    expect(await world.reread(id)).toMatchObject({ state: 'ended' })
  })

  test('delete after run: on success and on drop, not by a firing by hand; history stays [F3]', async () => {
    const world = await ScheduleWorld.open(engine)
    const options = { deleteAfterRun: true, retry: noRetry }
    const [fine, drops] = [await world.add({ options }), await world.add({ options, rule: once })]
    await world.store.apply(runNow, fine.id, 'k', 'ada', newIds())
    await world.work()
    expect(await world.reread(fine.id)).toMatchObject({ state: 'active', nextAt: START + MINUTE })
    await world.pass(MINUTE)
    await world.work(away)
    expect(await world.reread(drops.id)).toMatchObject({ state: 'removed', reason: expect.stringContaining('dropped') })
    expect(await world.reread(fine.id)).toMatchObject({ state: 'removed' })
    expect(await world.pass(86_400_000)).toBe(0)
    expect(await world.states(fine.id)).toEqual(['succeeded', 'dropped'])
    world.clock.step(LIMITS.occurrencesKeptMs)
    expect(await world.store.apply(forgetOccurrences, 10)).toBe(3)
    await assertInvariants(world.store)
  })

  test('a run that took two follow-ups is the outcome of both; if it fails, each is tried again', async () => {
    const world = await ScheduleWorld.open(engine)
    const [one, two] = [await world.add({ rule: once }), await world.add({ rule: once })]
    await world.pass(MINUTE)
    await world.work(away)
    for (const { id } of [one, two])
      expect(await world.lines(id)).toMatchObject([{ state: 'due', waits: 'retry', attempts: 1, runId: null }])
    expect(await world.pass(200)).toBe(2)
    const runId = await world.work()
    for (const { id } of [one, two])
      expect(await world.lines(id)).toMatchObject([{ state: 'succeeded', attempts: 2, runId }])
    await assertInvariants(world.store)
  })

  test('a run that had started a write is not repeated, and its owner is told why [F5]', async () => {
    const world = await ScheduleWorld.open(engine)
    const owner = (await world.store.apply(openThread, newThreadId(random), AGENT, null)).id
    const { id } = await world.add({ rule: once, owner: { threadId: owner } })
    await world.pass(MINUTE)
    const claim = (await world.begin())!
    await world.store.apply(aWrite, claim.run.id, world.thread)
    await world.end(claim, away)
    expect(await world.lines(id)).toMatchObject([{ state: 'failed', attempts: 1, reason: 'model: away' }])
    expect(await notices(world, owner)).toEqual([expect.stringContaining('failed: model: away')])
    expect(await world.pass(MINUTE)).toBe(0)
  })

  test('a run that is cancelled in the queue is the end of its firing', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ rule: once })
    await world.pass(MINUTE)
    const [queued] = await world.store.read(listRuns, { limit: 1, states: ['queued'] })
    await world.store.apply(cancelRun, queued!.id, { by: 'ada' })
    expect(await world.lines(id)).toMatchObject([{ state: 'failed', attempts: 1, reason: 'cancelled by ada' }])
    expect(await world.pass(MINUTE)).toBe(0)
    await assertInvariants(world.store)
  })

  test('what waits longer than it may is dropped; delivered later by hand it does not fire a second time', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ rule: once })
    await world.write()
    const claim = (await world.begin())!
    await world.pass(MINUTE)
    world.clock.step(LIMITS.messagesWaitMs)
    const [dead] = await world.store.apply(buryUntaken, 10)
    expect(await world.lines(id)).toMatchObject([
      { state: 'dropped', reason: 'its message was not delivered: expired' },
    ])
    await world.end(claim, { state: 'succeeded' })
    await world.store.apply(retryDead, dead!.id)
    expect(await world.look()).toBe(0)
    await world.work()
    expect(await world.states(id)).toEqual(['dropped'])
    await assertInvariants(world.store)
  })

  test('a message that is taken by hand is all there is to its firing', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ rule: once })
    await world.pass(MINUTE)
    const delivery = { id: 'd', threadId: world.thread, by: { kind: 'hand' }, limit: 9, bytes: 9_999 } as const
    await world.store.apply(leaseMessages, delivery)
    await assertInvariants(world.store)
    await world.store.apply(acknowledgeDelivery, 'd')
    expect(await world.states(id)).toEqual(['succeeded'])
    await assertInvariants(world.store)
  })

  test('a session gets a follow-up at the end of its turn, and the end of the next is its outcome', async () => {
    const world = await ScheduleWorld.open(engine)
    const heard = { client: 'claude', sessionId: 's', process: { pid: 7 } } as const
    const session = await world.store.apply(sessionStarted, heard, 'startup')
    await world.store.apply(turnBegun, heard, 'p1')
    const target: Target = { kind: 'message', threadId: session.threadId, generation: 1, text: 'look' }
    const { id } = await world.add({ rule: once, target })
    await world.pass(MINUTE)
    expect(await world.states(id)).toEqual(['dispatched'])
    const stop = { turn: 'p1', isPaused: false, lastMessage: 'done' }
    const answer = await world.store.apply(turnStopped, heard, {
      ...stop,
      ordinal: 1,
      isActive: false,
      deliveryId: 'd1',
    })
    expect(answer).toMatchObject({ kind: 'go-on' })
    await assertInvariants(world.store)
    await world.store.apply(sessionActive, heard)
    expect(await world.lines(id)).toMatchObject([{ state: 'dispatched', runId: expect.any(String) }])
    await world.store.apply(turnStopped, heard, { ...stop, ordinal: 2, isActive: true, deliveryId: 'd2' })
    expect(await world.states(id)).toEqual(['succeeded'])
    await assertInvariants(world.store)
  })

  /** A session whose model has read what was fired for it, in a turn that has not ended. */
  const readInTurn = async (options: Parameters<ScheduleWorld['add']>[0] = {}) => {
    const world = await ScheduleWorld.open(engine)
    const session = await world.store.apply(sessionStarted, HEARD, 'startup')
    const { runId } = await world.store.apply(turnBegun, HEARD, 'p1')
    const target: Target = { kind: 'message', threadId: session.threadId, generation: 1, text: 'look' }
    const { id } = await world.add({ target, ...options })
    await world.pass(MINUTE)
    const by = { kind: 'process', identity: {} } as const
    await world.store.apply(leaseMessages, { id: 'd', threadId: session.threadId, by, limit: 9, bytes: 9_999 })
    return { world, id, runId: runId! }
  }
  const endsTurn = { turn: 'p1', ordinal: 1, isActive: false, isPaused: false, deliveryId: 'none' }

  test('what a turn read that ended before anybody knew that it had it: the end of that turn is its outcome', async () => {
    const { world, id, runId } = await readInTurn()
    const usage = { inputTokens: 1, outputTokens: 1, costMicrousd: 7 }
    await world.store.apply(turnStopped, HEARD, { ...endsTurn, usage })
    await world.store.apply(turnBegun, HEARD, 'p2')
    await world.store.apply(acknowledgeDelivery, 'd', runId)
    await assertInvariants(world.store)
    expect(await world.lines(id)).toMatchObject([{ state: 'succeeded', runId, costMicrousd: 7 }])
    await world.pass(MINUTE)
    expect(await world.states(id)).toEqual(['succeeded', 'dispatched'])
  })

  test('the same where that turn was broken off: it failed', async () => {
    const { world, id, runId } = await readInTurn({ rule: once })
    await world.store.apply(turnBegun, HEARD, 'p2')
    await world.store.apply(acknowledgeDelivery, 'd', runId)
    expect(await world.lines(id)).toMatchObject([{ state: 'failed', reason: 'killed: the turn was broken off' }])
    expect(await world.reread(id)).toMatchObject({ state: 'ended' })
    await assertInvariants(world.store)
  })

  test('the same where that turn was forgotten meanwhile: it was taken, and that is all there is', async () => {
    const { world, id } = await readInTurn({ rule: once })
    await world.store.apply(acknowledgeDelivery, 'd', 'run_gone' as RunId)
    expect(await world.states(id)).toEqual(['succeeded'])
    await assertInvariants(world.store)
  })

  test('one that was left to a run that has ended is settled by the next look', async () => {
    for (const isGone of [false, true]) {
      const { world, id, runId } = await readInTurn()
      const gone = 'run_gone' as RunId
      await world.store.apply(acknowledgeDelivery, 'd', runId)
      const hang = (to: RunId) => sql`update occurrences set run_id = ${to} where schedule_id = ${id}`
      await world.store.apply(write, hang(gone))
      await world.store.apply(turnStopped, HEARD, endsTurn)
      if (!isGone) await world.store.apply(write, hang(runId))
      expect(await world.states(id)).toEqual(['dispatched'])
      expect(await violations(world.store)).toHaveLength(1)
      expect(await world.store.apply(settleLeft, 10)).toBe(1)
      expect(await world.states(id)).toEqual(['succeeded'])
      expect(await world.store.apply(settleLeft, 10)).toBe(0)
      await assertInvariants(world.store)
    }
  })

  test('its thread is stopped before the retry: it waits, and is tried when that goes on', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ rule: once })
    await world.pass(MINUTE)
    await world.work(away)
    await world.store.apply(stopThread, world.thread)
    await world.pass(200)
    expect(await world.lines(id)).toMatchObject([{ state: 'due', waits: 'thread', attempts: 1 }])
    await world.store.apply(reopenThread, world.thread)
    expect(await world.look()).toBe(1)
    await world.work()
    expect(await world.lines(id)).toMatchObject([{ state: 'succeeded', attempts: 2 }])
  })

  test('of a schedule that was removed nothing fires again, what is under way comes to its own end', async () => {
    const world = await ScheduleWorld.open(engine)
    const [works, retries] = [await world.add({ rule: once }), await world.add({ rule: once })]
    await world.pass(MINUTE)
    await world.work(away)
    await world.store.apply(removeSchedule, retries.id, 'ada')
    await world.pass(200)
    await world.store.apply(removeSchedule, works.id, 'ada')
    await world.work(away)
    expect(await world.pass(86_400_000)).toBe(0)
    expect(await world.lines(retries.id)).toMatchObject([
      { state: 'skipped', reason: 'its schedule was removed by ada' },
    ])
    expect(await world.lines(works.id)).toMatchObject([{ state: 'dropped', attempts: 2 }])
    await assertInvariants(world.store)
  })

  test('removed with what it began: a message that nobody took is taken back, a run is cancelled', async () => {
    const world = await ScheduleWorld.open(engine)
    const [waits, works] = [
      await world.add({ rule: once }),
      await world.add({ rule: once, target: { kind: 'command', argv: ['true'], cwd: '/' } }),
    ]
    await world.pass(MINUTE)
    for (const { id } of [waits, works]) await world.store.apply(removeSchedule, id, 'ada', true)
    expect([await world.states(waits.id), await world.states(works.id)]).toEqual([['skipped'], ['failed']])
    expect((await world.store.read(messagesOf, world.thread)).map(({ state }) => state)).toEqual(['dead'])
    await assertInvariants(world.store)
  })

  test("what failed tries cost counts towards the day's spending", async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { dayMicrousd: 1_000 } })
    await world.pass(MINUTE)
    const usage = { inputTokens: 1, outputTokens: 1, costMicrousd: 600 }
    await world.work({ ...away, usage })
    await world.pass(200)
    await world.work({ state: 'succeeded', usage })
    await world.pass(MINUTE)
    expect(await world.lines(id)).toMatchObject([
      { state: 'succeeded', costMicrousd: 1_200 },
      { state: 'skipped', reason: expect.stringContaining('spend: 0.0012 USD') },
    ])
  })

  test('who is told of a drop: its owner, else the parent of that, else the operator [F5]', async () => {
    const world = await ScheduleWorld.open(engine)
    const parent = (await world.store.apply(openThread, newThreadId(random), AGENT, null)).id
    const owner = (await world.store.apply(openThread, newThreadId(random), AGENT, parent)).id
    const target: Target = { kind: 'agent', agent: 'nobody', text: '' }
    const { id } = await world.add({ target, owner: { threadId: owner } })
    await world.pass(MINUTE)
    await world.store.apply(removeThread, owner)
    await world.pass(MINUTE)
    await world.store.apply(removeThread, parent)
    await world.pass(MINUTE)
    const settled = await world.events('occurrence.settled', id)
    expect(settled).toMatchObject(
      ['owner', 'parent', 'operator'].map((told) => ({
        state: 'dropped',
        told,
        reason: 'no daemon has the agent nobody',
      })),
    )
    expect((await notices(world, parent))[0]).toContain('was dropped: no daemon has the agent nobody')
  })

  test('a pause does not take back a retry, and nothing new comes', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add()
    await world.pass(MINUTE)
    await world.work(away)
    await world.store.apply(pauseSchedule, id, 'ada')
    expect(await world.pass(MINUTE)).toBe(1)
    await world.work()
    expect(await world.states(id)).toEqual(['succeeded'])
    await assertInvariants(world.store)
  })
})
