import { describe, expect, test } from 'vitest'

import { newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { eventsAfter } from '../../src/events/event.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { mustWait, openChildren, parkForChildren, startChild } from '../../src/runs/children.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { takeForCommand } from '../../src/runs/command-turn.ts'
import { findRun, listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { withdrawMessage } from '../../src/runs/withdraw.ts'
import { sessionStarted, sessionWaiting, turnBegun, turnStopped } from '../../src/sessions/events.ts'
import type { Heard } from '../../src/sessions/events.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { conversationOf } from '../../src/threads/conversation.ts'
import { buryMessage, retryDead, undelivered } from '../../src/threads/dead-letter.ts'
import { consumeMessages } from '../../src/threads/consume.ts'
import { acknowledgeDelivery, giveBackDelivery, leaseMessages } from '../../src/threads/delivery.ts'
import { idleThreads, messagesOf, pendingMessages } from '../../src/threads/message.ts'
import { aChild, claimAgent } from '../support/children.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { reread, submission, submit, submitted } from '../support/world.ts'

const byTester = { by: 'tester' }
const PARENT = 'conductor-thread' as ThreadId

const send = (store: Store, threadId: ThreadId, agent: string, key = 'first') =>
  store.apply(sendMessage, {
    messageId: newMessageId(random),
    runId: newRunId(random),
    threadId,
    agent,
    text: 'hello',
    key,
  })

const claim = (store: Store, only?: RunId) => claimAgent(store, ['conductor', 'helper'], only)

async function conductor(store: Store): Promise<AttemptRef> {
  await send(store, PARENT, 'conductor')
  const ref = await claim(store)
  const shown = await store.read(pendingMessages, PARENT, 10)
  // What it was asked is taken, so that only what comes later waits.
  for (const { id } of shown) await store.apply(consumeOne, id, ref.runId)
  return ref
}
function* consumeOne(id: string, runId: RunId) {
  yield* consumeMessages([id], runId, PARENT)
}

describe('when a run has nothing to do but wait', () => {
  const completion = { kind: 'completion' } as const
  const prompt = { kind: 'prompt' } as const
  test.each([
    ['it waits for a child before its next turn', ['wait'], [], true, true],
    ['a completion of another does not wake it from that', ['wait'], [completion], false, true],
    ['somebody who writes does', ['wait'], [completion, prompt], false, false],
    ['it goes on beside a child in the background', ['background'], [], true, false],
    ['but does not end before it', ['background'], [], false, true],
    ['a completion is looked at, though another child is at work', ['background'], [completion], false, false],
    ['a detached child keeps nobody', ['detached'], [], false, false],
    ['without children it ends', [], [], false, false],
  ] as const)('%s', (_title, modes, pending, owesReply, waits) => {
    expect(mustWait({ children: modes.map((mode) => ({ mode })), pending, owesReply })).toBe(waits)
  })
})

describe.each(engines)('on $name', (engine) => {
  const open = async () => ({ store: await (await engine.database()).open() })

  test('a child is started once, however often its action is performed', async () => {
    const { store } = await open()
    const parent = await conductor(store)
    const asked = aChild(parent)
    const started = await store.apply(startChild, asked)
    expect(await store.apply(startChild, asked)).toEqual(started)
    expect(await store.read(openChildren, parent.runId)).toMatchObject([{ id: asked.runId, mode: 'background' }])
    expect(await store.read(messagesOf, asked.threadId)).toMatchObject([{ body: { text: 'count the beans' } }])
    expect(await reread(store, asked.runId)).toMatchObject({ parentThreadId: PARENT, parentRunId: parent.runId })
    await assertInvariants(store)
  })

  test('its end is a message to its parent, which waits parked and goes on [inbox/busy-parent]', async () => {
    const { store } = await open()
    const parent = await conductor(store)
    const asked = aChild(parent)
    await store.apply(startChild, asked)
    expect(await store.apply(parkForChildren, parent, false)).toMatchObject({ kind: 'parked' })
    const working = await claim(store, asked.runId)
    await store.apply(finishRun, working, { state: 'succeeded', result: { text: '12' }, summary: '12' })
    expect(await reread(store, parent.runId)).toMatchObject({ state: 'queued' })
    expect(await store.read(pendingMessages, PARENT, 10)).toMatchObject([
      { kind: 'completion', fromThread: asked.threadId, body: { state: 'succeeded', summary: '12' } },
    ])
    await assertInvariants(store)
  })

  test('a child that ends between the look and the parking is not slept through', async () => {
    const { store } = await open()
    const parent = await conductor(store)
    const asked = aChild(parent)
    await store.apply(startChild, asked)
    await store.apply(finishRun, await claim(store, asked.runId), { state: 'succeeded' })
    expect(await store.apply(parkForChildren, parent, false)).toEqual({ kind: 'changed' })
    expect(await reread(store, parent.runId)).toMatchObject({ state: 'running' })
  })

  test('many children that end while their parent parks: it is never left asleep', async () => {
    const { store } = await open()
    for (let round = 0; round < 10; round += 1) {
      const threadId = `parent-${round}` as ThreadId
      await send(store, threadId, 'conductor')
      const parent = await claim(store)
      for (const { id } of await store.read(pendingMessages, threadId, 10))
        await store.apply(consumeOne, id, parent.runId)
      const children = [aChild(parent), aChild(parent)]
      for (const each of children) await store.apply(startChild, each)
      const workers = await Promise.all(children.map(({ runId }) => claim(store, runId)))
      await Promise.all([
        store.apply(parkForChildren, parent, false),
        ...workers.map((each) => store.apply(finishRun, each, { state: 'succeeded' })),
      ])
      expect((await reread(store, parent.runId)).state).not.toBe('parked')
      // Not in the way of the next round.
      await store.apply(cancelRun, parent.runId, byTester)
      await store.apply(finishRun, parent, { state: 'cancelled' })
    }
  })

  test('cancelling a parent cancels what it started, at every depth, and starts no new turn [runs/cancel-is-final]', async () => {
    const { store } = await open()
    const parent = await conductor(store)
    const [working, waiting] = [aChild(parent), aChild(parent)]
    await store.apply(startChild, working)
    const worker = await claim(store, working.runId)
    const grandchild = aChild(worker)
    await store.apply(startChild, grandchild)
    await store.apply(startChild, waiting)
    await store.apply(parkForChildren, parent, false)
    expect(await store.apply(cancelRun, parent.runId, byTester)).toMatchObject({ kind: 'cancelled' })
    expect(await reread(store, waiting.runId)).toMatchObject({
      state: 'cancelled',
      cancelReason: expect.stringContaining(parent.runId) as string,
    })
    expect(await reread(store, grandchild.runId)).toMatchObject({ state: 'cancelled' })
    expect(await reread(store, working.runId)).toMatchObject({ state: 'running', cancelBy: 'tester' })
    expect(await store.apply(finishRun, worker, { state: 'succeeded', result: 1 })).toMatchObject({
      kind: 'reconciled',
    })
    expect(await store.read(pendingMessages, PARENT, 10)).toEqual([])
    expect(await store.read(idleThreads, ['conductor', 'helper'], 10)).toEqual([])
    await assertInvariants(store)
  })

  test('a child that a cancelled parent wanted is not started', async () => {
    const { store } = await open()
    const parent = await conductor(store)
    await store.apply(cancelRun, parent.runId, byTester)
    expect(await store.apply(startChild, aChild(parent))).toEqual({ kind: 'refused' })
  })

  test('cancel and delegation at the same time: no child is left running', async () => {
    const { store } = await open()
    for (let round = 0; round < 10; round += 1) {
      const threadId = `parent-${round}` as ThreadId
      await send(store, threadId, 'conductor')
      const parent = await claim(store)
      const asked = aChild(parent)
      await Promise.all([store.apply(startChild, asked), store.apply(cancelRun, parent.runId, byTester)])
      expect(await store.read(openChildren, parent.runId)).toEqual([])
    }
  })

  test('messages that come together to an idle thread start one run', async () => {
    const { store } = await open()
    for (let round = 0; round < 5; round += 1) {
      const threadId = `thread-${round}` as ThreadId
      const sent = await Promise.all(['a', 'b', 'c', 'd'].map((key) => send(store, threadId, 'conductor', key)))
      expect(new Set(sent.map(({ runId }) => runId)).size).toBe(1)
      expect(await store.read(listRuns, { threadId, limit: 10 })).toHaveLength(1)
    }
  })

  test('depth and fan-out have limits', async () => {
    const { store } = await open()
    const parent = await conductor(store)
    for (let count = 0; count < 3; count += 1) await store.apply(startChild, aChild(parent))
    expect(await store.apply(startChild, aChild(parent))).toEqual({ kind: 'limit', limit: 'children', value: 3 })
    let above = parent
    const limits = { depth: 2, children: 10 }
    for (let depth = 0; depth < 2; depth += 1) {
      const below = aChild(above, { limits })
      expect(await store.apply(startChild, below)).toMatchObject({ kind: 'started' })
      above = await claim(store, below.runId)
    }
    expect(await store.apply(startChild, aChild(above, { limits }))).toEqual({
      kind: 'limit',
      limit: 'depth',
      value: 2,
    })
  })

  test('a completion that was there when its parent was cancelled waits for the next message', async () => {
    const { store } = await open()
    const parent = await conductor(store)
    const asked = aChild(parent)
    await store.apply(startChild, asked)
    await store.apply(finishRun, await claim(store, asked.runId), { state: 'succeeded', summary: '12' })
    await store.apply(cancelRun, parent.runId, byTester)
    await store.apply(finishRun, parent, { state: 'cancelled' })
    expect(await store.read(idleThreads, ['conductor'], 10)).toEqual([])
    const sent = await send(store, PARENT, 'conductor', 'second')
    expect(sent.runId).not.toBe(parent.runId)
    expect(await store.read(pendingMessages, PARENT, 10)).toHaveLength(2)
  })

  test('a run that waits for its children hears at once that a message of its thread was not delivered', async () => {
    const { store } = await open()
    const parent = await conductor(store)
    await store.apply(startChild, aChild(parent, { mode: 'wait' }))
    await store.apply(parkForChildren, parent, false)
    expect(await reread(store, parent.runId)).toMatchObject({ state: 'parked', parkedFor: 'children' })
    const note = { id: newMessageId(random), from: PARENT, kind: 'note', key: 'k', body: { text: 'hello' } } as const
    const { message } = await store.apply(acceptMessage, { ...note, threadId: 'nobody' as ThreadId })
    await store.apply(buryMessage, message, 'unknown recipient')
    expect(await reread(store, parent.runId)).toMatchObject({ state: 'queued' })
    const [notice, ...others] = await store.read(pendingMessages, PARENT, 10)
    expect([notice?.kind, others]).toEqual(['notice', []])
    // Who keeps a page fresh by the log hears of it as of every message.
    const accepted = (await store.read(eventsAfter, 0, 1_000)).filter(({ type }) => type === 'message.accepted')
    expect(accepted.at(-1)).toMatchObject({ threadId: PARENT, data: { messageId: notice?.id, kind: 'notice' } })
    await assertInvariants(store)
  })

  describe('a run that waits for its children goes on', () => {
    const letter = { threadId: PARENT, kind: 'note', body: { text: 'hello' } } as const
    const accept = (store: Store) => store.apply(acceptMessage, { ...letter, id: newMessageId(random), key: 'k' })
    const by = { kind: 'hand' } as const
    const take = { id: 'd', threadId: PARENT, by, limit: 9, bytes: 9_999 } as const
    const child: Heard = { client: 'claude', sessionId: 's', startedFrom: PARENT }
    const end = { isPaused: false, isUnanswered: true, deliveryId: 'none' } as const

    test.each([
      {
        title: 'when what somebody had taken from its inbox is given back',
        before: async (store: Store) => {
          await accept(store)
          await store.apply(leaseMessages, take)
        },
        act: (store: Store) => store.apply(giveBackDelivery, 'd'),
      },
      {
        title: 'when a dead letter to it is put back',
        before: async (store: Store) => {
          await store.apply(buryMessage, (await accept(store)).message, 'expired')
        },
        act: async (store: Store) => {
          const [dead] = await store.read(undelivered, { state: 'dead', limit: 1 })
          expect(await store.apply(retryDead, dead!.id)).toMatchObject({ kind: 'retried' })
        },
      },
      {
        title: 'when a session that it started waits for a person',
        before: (store: Store) => store.apply(sessionStarted, child, 'startup'),
        act: (store: Store) => store.apply(sessionWaiting, child, 'may I?', 'w', newMessageId(random)),
      },
      {
        title: 'when the end of a turn of such a session is heard late',
        before: async (store: Store) => {
          await store.apply(sessionStarted, child, 'startup')
          await store.apply(turnBegun, { ...child, ordinal: 5 }, 'p2')
        },
        act: (store: Store) => store.apply(turnStopped, child, { ...end, turn: 'p1', ordinal: 3 }),
      },
    ])('$title', async ({ before, act }) => {
      const { store } = await open()
      const parent = await conductor(store)
      await store.apply(startChild, aChild(parent, { mode: 'wait' }))
      await before(store)
      expect(await store.apply(parkForChildren, parent, false)).toMatchObject({ kind: 'parked' })
      await act(store)
      expect(await reread(store, parent.runId)).toMatchObject({ state: 'queued' })
      expect(await store.read(pendingMessages, PARENT, 10)).toHaveLength(1)
      await assertInvariants(store)
    })
  })

  test('news that a person puts back after a cancel starts a turn: that was asked for', async () => {
    const clock = new FakeClock()
    const store = await (await engine.database()).open({ clock })
    const parent = await conductor(store)
    const news = { id: newMessageId(random), threadId: PARENT, kind: 'completion', key: 'k', body: {} } as const
    const { message } = await store.apply(acceptMessage, news)
    await store.apply(buryMessage, message, 'expired')
    await store.apply(cancelRun, parent.runId, byTester)
    await store.apply(finishRun, parent, { state: 'cancelled' })
    clock.step(1)
    await store.apply(retryDead, message.id)
    expect(await store.read(idleThreads, ['conductor'], 10)).toMatchObject([{ threadId: PARENT }])
  })

  test('the turn of an agent that is a command consumes its messages and records what it printed', async () => {
    const { store } = await open()
    await send(store, PARENT, 'conductor')
    const ref = await claim(store)
    const shown = (await store.read(pendingMessages, PARENT, 10)).map(({ id }) => ({ messageId: id, text: 'hello' }))
    const request = { kind: 'command', argv: ['echo', 'hello'], cwd: '/' } as const
    const fenced = { ...ref, fence: ref.fence - 1 }
    expect(await store.apply(takeForCommand, fenced, shown, request)).toEqual({ kind: 'superseded' })
    expect(await store.apply(takeForCommand, ref, shown, request)).toMatchObject({
      kind: 'taken',
      run: { request: { ...request, isTurn: true } },
    })
    expect(await store.apply(takeForCommand, fenced, shown, request)).toEqual({ kind: 'superseded' })
    // Once more, because the answer was lost: nothing is shown twice.
    expect(await store.apply(takeForCommand, ref, shown, request)).toMatchObject({
      kind: 'taken',
      run: { id: ref.runId },
    })
    await store.apply(finishRun, ref, { state: 'succeeded', reply: 'good day', result: { text: 'good day' } })
    const entries = await store.read(conversationOf, PARENT, 1)
    expect(entries.map(({ kind, body }) => [kind, body.text])).toEqual([
      ['user', 'hello'],
      ['assistant', 'good day'],
    ])
    expect(await store.read(pendingMessages, PARENT, 10)).toEqual([])
    await assertInvariants(store)
  })

  test('a command is not shown what was taken back, or drained, since its messages were read [inbox/effect-once]', async () => {
    const { store } = await open()
    const { message: first } = await send(store, PARENT, 'conductor')
    const ref = await claim(store)
    const { message: second } = await send(store, PARENT, 'conductor', 'second')
    const { message: third } = await send(store, PARENT, 'conductor', 'third')
    const shown = (count: number) =>
      [first, second, third].slice(0, count).map(({ id }) => ({ messageId: id, text: id }))
    const request = { kind: 'command', argv: ['echo'], cwd: '/' } as const
    expect(await store.apply(withdrawMessage, third.id, byTester)).toEqual({ kind: 'withdrawn' })
    expect(await store.apply(takeForCommand, ref, shown(3), request)).toEqual({ kind: 'changed' })
    const hand = { id: 'by-hand', threadId: PARENT, by: { kind: 'hand' }, limit: 10, bytes: 1_000 } as const
    await store.apply(leaseMessages, hand)
    expect(await store.apply(takeForCommand, ref, shown(2), request)).toEqual({ kind: 'changed' })
    await store.apply(acknowledgeDelivery, 'by-hand')
    expect(await store.apply(takeForCommand, ref, shown(2), request)).toEqual({ kind: 'changed' })
    expect(await reread(store, ref.runId)).toMatchObject({ state: 'running', request: { kind: 'agent' } })
    expect(await store.read(conversationOf, PARENT, 1)).toEqual([])
    await assertInvariants(store)
  })

  test('an agent for which the queue has no room is not started, and leaves nothing behind', async () => {
    const { store } = await open()
    const parent = await conductor(store)
    await submitted(store)
    const refused = aChild(parent, { mode: 'wait', backlogLimit: 1 })
    expect(await store.apply(startChild, refused)).toEqual({ kind: 'backlog-full', limit: 1 })
    expect(await store.read(openChildren, parent.runId)).toEqual([])
    expect(await store.read(messagesOf, refused.threadId)).toEqual([])
  })

  test('what a process of a cancelled run still submits does not run [runs/cancel-is-final]', async () => {
    const { store } = await open()
    const { runId: parentRunId } = await conductor(store)
    await store.apply(cancelRun, parentRunId, byTester)
    // Told to end, its shell uses its grace to start something.
    const late = submission({ parentThreadId: PARENT, parentRunId, parentMode: 'detached' })
    expect(await submit(store, late)).toEqual({ kind: 'parent-cancelled', parentRunId })
    expect(await store.read(findRun, late.id)).toBeUndefined()
  })
})
