import { describe, expect, test } from 'vitest'

import { newScheduleId, newThreadId, newWorkerId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ScheduleId, ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { listRuns } from '../../src/runs/run.ts'
import { wakeThread } from '../../src/runs/send.ts'
import { registerWorker, stopWorker } from '../../src/runs/worker.ts'
import { editSchedule } from '../../src/schedule/edit.ts'
import { addFollowup } from '../../src/schedule/followup.ts'
import type { Target } from '../../src/schedule/schedule.ts'
import { sessionStarted } from '../../src/sessions/events.ts'
import { now, sql } from '../../src/store/sql.ts'
import { run } from '../../src/store/transition.ts'
import { idleThreads, messagesOf, pendingMessages } from '../../src/threads/message.ts'
import { wordsOf } from '../../src/threads/message-text.ts'
import { removeThread, stopThread } from '../../src/threads/remove.ts'
import { findThread, openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { someIdentity } from '../support/world.ts'
import { AGENT, START, ScheduleWorld, newIds } from './support.ts'

const MINUTE = 60_000
const WEEK = 7 * 86_400_000
const once = { kind: 'once', at: START + MINUTE } as const
const away = { state: 'failed', code: 'model', error: 'away' } as const
const usage = (costMicrousd: number) => ({ inputTokens: 1, outputTokens: 1, costMicrousd })

const spent = { state: 'skipped', reason: expect.stringMatching(/^spend: /) }

const anotherThread = async ({ store }: ScheduleWorld): Promise<ThreadId> =>
  (await store.apply(openThread, newThreadId(random), AGENT, null)).id

const inbox = async ({ store }: ScheduleWorld, threadId: ThreadId) =>
  (await store.read(pendingMessages, threadId, 10)).map(({ kind, body }) => `${kind}: ${String(body['text'])}`)

/** What the run that is next in the queue was asked for. */
const nextRequest = async ({ store }: ScheduleWorld) =>
  (await store.read(listRuns, { limit: 10, states: ['queued'] })).map(({ request }) => request)

const openLines = async (world: ScheduleWorld, id: ScheduleId) =>
  (await world.lines(id)).filter(({ settledAt }) => settledAt === null)

/** A write of this run, as far as it got. */
function* aWrite(runId: string, threadId: string, state: string) {
  const settledAt = state === 'done' ? now : sql`null`
  yield* run(sql`insert into actions (id, run_id, thread_id, entry_seq, ordinal, call_id, tool, effect, repeats, input, signature, state,
      mark, tries, started_at, settled_at, created_at)
    values (${`act_${runId}`}, ${runId}, ${threadId}, 1, 0, 'c', 't', 'write', 'each', '{}', 's', ${state}, 'm', 1, ${now}, ${settledAt}, ${now})`)
}

describe.each(engines)('where a firing goes, on $name', (engine) => {
  test('a session that is cleared keeps its follow-ups and its jobs: they come into what it goes on with', async () => {
    const world = await ScheduleWorld.open(engine)
    const heard = { client: 'claude', sessionId: 's1', process: { pid: 7 } } as const
    const { threadId, generation } = await world.store.apply(sessionStarted, heard, 'startup')
    const when = { delayMs: MINUTE }
    const followup = { id: newScheduleId(random), threadId, when, prompt: 'is it green?', madeBy: 'ada' }
    await world.store.apply(addFollowup, followup)
    const target: Target = { kind: 'message', threadId, generation: 1, text: 'every minute' }
    const job = await world.add({ target })
    const cleared = await world.store.apply(sessionStarted, { ...heard, sessionId: 's2' }, 'clear')
    expect([cleared.threadId, cleared.generation > generation]).toEqual([threadId, true])
    await world.pass(MINUTE)
    expect(await world.states(followup.id)).toEqual(['dispatched'])
    expect(await world.states(job.id)).toEqual(['dispatched'])
    expect((await inbox(world, threadId)).toSorted()).toEqual(['followup: every minute', 'followup: is it green?'])
    await assertInvariants(world.store)
  })

  test('a new target: what is held for the stopped thread goes to the other one at once', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add()
    const other = await anotherThread(world)
    await world.store.apply(stopThread, world.thread)
    await world.pass(MINUTE)
    expect(await world.lines(id)).toMatchObject([{ state: 'due', waits: 'thread' }])
    const target: Target = { kind: 'message', threadId: other, generation: 1, text: 'there' }
    expect(await world.store.apply(editSchedule, id, { target }, 'ada')).toMatchObject({ kind: 'edited' })
    expect(await world.look()).toBe(1)
    expect(await world.lines(id)).toMatchObject([{ state: 'dispatched', threadId: other }])
    expect(await inbox(world, other)).toEqual(['followup: there'])
    await world.store.apply(removeThread, world.thread)
    await world.work()
    expect(await openLines(world, id)).toEqual([])
    await assertInvariants(world.store)
  })

  test.each([
    { stopped: 'wake', ends: { state: 'dispatched' }, thread: 'idle' },
    { stopped: 'drop', ends: { state: 'dropped', reason: expect.stringContaining('is stopped') }, thread: 'stopped' },
  ] as const)('"$stopped" instead of "hold" counts for what is held already', async ({ stopped, ends, thread }) => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add()
    await world.store.apply(stopThread, world.thread)
    await world.pass(MINUTE)
    await world.store.apply(editSchedule, id, { options: { stopped } }, 'ada')
    expect(await world.look()).toBe(1)
    expect(await world.lines(id)).toMatchObject([ends])
    const isStopped = (await world.store.read(findThread, world.thread))?.state === 'stopped'
    expect(isStopped).toBe(thread === 'stopped')
    await assertInvariants(world.store)
  })

  test('a week of minutes that nobody looked at is one line: its ends are exact, its number is counted up to a limit', async () => {
    const world = await ScheduleWorld.open(engine)
    const rule = { kind: 'cron', expression: '* * * * *', zone: 'Europe/Berlin' } as const
    const jobs = await Promise.all(Array.from({ length: 10 }, () => world.add({ rule })))
    expect(LIMITS.instantsCounted).toBeLessThanOrEqual(200)
    expect(await world.pass(WEEK)).toBe(10)
    for (const { id } of jobs) {
      const [passed, fired] = await world.lines(id)
      expect(passed).toMatchObject({
        state: 'skipped',
        dueAt: START + MINUTE,
        lastAt: START + WEEK - MINUTE,
      })
      expect(passed?.instants).toBeLessThanOrEqual(LIMITS.instantsCounted)
      expect(fired).toMatchObject({ state: 'dispatched', dueAt: START + WEEK })
    }
  })

  test('an agent of a program that has stopped is known: the firing waits for it', async () => {
    const world = await ScheduleWorld.open(engine)
    const id = newWorkerId(random)
    const program = { id, kind: 'command', home: '/home/program', identity: someIdentity(), agents: ['coder'] } as const
    await world.store.apply(registerWorker, program)
    await world.store.apply(stopWorker, id)
    const job = await world.add({ rule: once, target: { kind: 'agent', agent: 'coder', text: 'go on' } })
    await world.pass(MINUTE)
    expect(await world.states(job.id)).toEqual(['dispatched'])
    const [queued] = await world.store.read(listRuns, { limit: 1, states: ['queued'] })
    expect(queued).toMatchObject({ agent: 'coder' })
  })

  test.each(['started', 'done', 'in_doubt'])(
    'a failure that the schedule calls transient does not repeat a run with a write that is %s, and its owner is told [F5]',
    async (state) => {
      const world = await ScheduleWorld.open(engine)
      const owner = await anotherThread(world)
      const { id } = await world.add({ rule: once, options: { transient: ['tool'] }, owner: { threadId: owner } })
      await world.pass(MINUTE)
      const claim = (await world.begin())!
      await world.store.apply(aWrite, claim.run.id, world.thread, state)
      await world.end(claim, { state: 'failed', code: 'tool', error: 'after it was sent' })
      expect(await world.lines(id)).toMatchObject([{ state: 'failed', attempts: 1, reason: 'tool: after it was sent' }])
      const told = (await world.store.read(messagesOf, owner)).filter(({ kind }) => kind === 'notice')
      expect(told.map(({ body }) => wordsOf(body))).toEqual([
        expect.stringContaining('failed: tool: after it was sent'),
      ])
      expect(await world.pass(MINUTE)).toBe(0)
    },
  )
})

describe.each(engines)('what a firing may cost, on $name', (engine) => {
  test("what is caught up stops where the day's ceiling is reached", async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { misfire: { policy: 'each', limit: 4 }, dayMicrousd: 100 } })
    await world.pass(4 * MINUTE)
    await world.work({ state: 'succeeded', usage: usage(500) })
    await world.look()
    expect(await world.work()).toBeUndefined()
    expect(await world.lines(id)).toMatchObject([{ state: 'succeeded', costMicrousd: 500 }, spent, spent, spent])
    await assertInvariants(world.store)
  })

  test("what waited for the one before it is not begun once the day's ceiling is reached", async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { overlap: 'queue', dayMicrousd: 100 } })
    await world.pass(MINUTE)
    const claim = (await world.begin())!
    await world.pass(MINUTE)
    await world.end(claim, { state: 'succeeded', usage: usage(500) })
    await world.look()
    expect(await world.work()).toBeUndefined()
    expect(await world.lines(id)).toMatchObject([{ state: 'succeeded' }, spent])
    await assertInvariants(world.store)
  })

  test("a try that reached the day's ceiling is the last one", async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ options: { dayMicrousd: 100 } })
    await world.pass(MINUTE)
    await world.work({ ...away, usage: usage(500) })
    await world.pass(1_000)
    expect(await world.work()).toBeUndefined()
    expect(await world.lines(id)).toMatchObject([{ ...spent, state: 'dropped', attempts: 1, costMicrousd: 500 }])
    await assertInvariants(world.store)
  })

  test("each try has what is left of the firing's ceiling; with nothing left it is dropped, and says why", async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ rule: once, options: { firingMicrousd: 500_000 } })
    await world.pass(MINUTE)
    expect(await nextRequest(world)).toMatchObject([{ maxCostMicrousd: 500_000 }])
    await world.work({ ...away, usage: usage(490_000) })
    await world.pass(200)
    expect(await nextRequest(world)).toMatchObject([{ maxCostMicrousd: 10_000 }])
    await world.work({ ...away, usage: usage(10_000) })
    await world.pass(MINUTE)
    expect(await world.work()).toBeUndefined()
    expect(await world.lines(id)).toMatchObject([
      { state: 'dropped', attempts: 2, costMicrousd: 500_000, reason: expect.stringContaining('may cost') },
    ])
    await assertInvariants(world.store)
  })

  test('a busy thread: the run that takes the follow-up later has its ceiling', async () => {
    const world = await ScheduleWorld.open(engine)
    await world.write('first this')
    const busy = (await world.begin())!
    const { id } = await world.add({ rule: once, options: { firingMicrousd: 5 } })
    await world.pass(MINUTE)
    await world.end(busy, { state: 'succeeded' })
    for (const { threadId, agent } of await world.store.read(idleThreads, [AGENT], 10))
      await world.store.apply(wakeThread, threadId, agent, newIds().runId)
    expect(await nextRequest(world)).toMatchObject([{ kind: 'agent', maxCostMicrousd: 5 }])
    const runId = await world.work()
    expect(await world.lines(id)).toMatchObject([{ state: 'succeeded', runId }])
    await assertInvariants(world.store)
  })
})
