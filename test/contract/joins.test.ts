import { describe, expect, test } from 'vitest'

import { newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { MessageId, ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { listRuns } from '../../src/runs/run.ts'
import { sendMessage, wakeThread } from '../../src/runs/send.ts'
import { recordTurn } from '../../src/runs/turn.ts'
import type { Turn } from '../../src/runs/turn.ts'
import { sessionStarted, turnBegun, turnStopped } from '../../src/sessions/events.ts'
import type { Heard, Stop } from '../../src/sessions/events.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import type { NewMessage } from '../../src/threads/accept.ts'
import { conversationOf } from '../../src/threads/conversation.ts'
import { retryDead, tryHeld } from '../../src/threads/dead-letter.ts'
import { acknowledgeDelivery, leaseMessages } from '../../src/threads/delivery.ts'
import { idleThreads, messagesOf, pendingMessages } from '../../src/threads/message.ts'
import { removeThread } from '../../src/threads/remove.ts'
import { findThread, openThread } from '../../src/threads/thread.ts'
import { aClaimant, claimAgent } from '../support/children.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { late } from '../support/late.ts'
import { twoProcesses } from '../support/two-processes.ts'
import { reread } from '../support/world.ts'

const THREAD = 'thread' as ThreadId

const letter = (threadId: ThreadId, key = 'k') => ({
  messageId: newMessageId(random),
  runId: newRunId(random),
  threadId,
  agent: 'clerk',
  text: 'hello',
  key,
})

const note = (threadId: ThreadId, more: Partial<NewMessage> = {}): NewMessage => ({
  id: newMessageId(random),
  threadId,
  kind: 'note',
  from: 'other' as ThreadId,
  key: 'k',
  body: { text: 'x' },
  ...more,
})

const turn = (shown: Turn['shown'], text = 'ok'): Turn => ({
  generation: 1,
  shown,
  reply: { text, toolCalls: [] },
  actions: [],
  usage: { inputTokens: 0, outputTokens: 0, costMicrousd: 0 },
})

const shownNow = async (store: Store) =>
  (await store.read(pendingMessages, THREAD, 10)).map(({ id }) => ({ messageId: id, text: 'hello' }))

const heard = (sessionId = 'a'): Heard => ({ client: 'claude', sessionId, process: { pid: 1 } })
const ownThread = (sessionId = 'a') => `claude-${sessionId}` as ThreadId
const end = (of: string, deliveryId: string = random.id()): Stop => ({
  turn: of,
  ordinal: 1,
  isPaused: false,
  deliveryId,
  lastMessage: 'done',
})

/** How many statements each of two is ahead of the other, where they are in one batch. */
const places = (left: number, right: number) =>
  Array.from({ length: left }, (_, one) => Array.from({ length: right }, (_unused, two) => [one, two] as const)).flat()

/** The turn that was begun in the middle of the removal ends, and the next one is recorded. */
async function expectHeardAgain(store: Store, session: Heard): Promise<void> {
  const threadId = ownThread(session.sessionId)
  await store.apply(turnStopped, session, end('p1'))
  await store.apply(turnBegun, session, 'p2')
  expect(await store.read(findThread, threadId)).toMatchObject({ state: 'open' })
  const [last] = await store.read(listRuns, { threadId, limit: 1 })
  expect(last).toMatchObject({ state: 'running', request: { turn: 'p2' } })
}

describe.each(engines)('where two things meet on $name', (engine) => {
  const open = async () => {
    const clock = new FakeClock()
    const store = await (await engine.database()).open({ clock })
    return { store, clock }
  }

  test('a wake-up for messages that somebody has answered meanwhile starts nothing', async () => {
    const { store } = await open()
    await store.apply(openThread, THREAD, 'clerk', null)
    await store.apply(acceptMessage, note(THREAD, { kind: 'prompt' }))
    // Two workers see it; the second one is slower.
    expect(await store.read(idleThreads, ['clerk'], 10, THREAD)).toHaveLength(1)
    const runId = await store.apply(wakeThread, THREAD, 'clerk', newRunId(random))
    const ref = await claimAgent(store, ['clerk'], runId)
    await store.apply(recordTurn, ref, turn(await shownNow(store), 'the answer'))
    await store.apply(finishRun, ref, { state: 'succeeded', summary: 'the answer' })
    expect(await store.apply(wakeThread, THREAD, 'clerk', newRunId(random))).toBeUndefined()
    expect(await store.read(listRuns, { limit: 5 })).toHaveLength(1)
  })

  test('a message that was drained by hand while the model was asked is not in the conversation too [M4]', async () => {
    const { store } = await open()
    await store.apply(sendMessage, letter(THREAD))
    const ref = await claimAgent(store, ['clerk'])
    const shown = await shownNow(store)
    const by = { kind: 'hand' } as const
    const drained = { id: 'drained', threadId: THREAD, by, limit: 10, bytes: LIMITS.deliveryBytes }
    expect((await store.apply(leaseMessages, drained)).messages).toHaveLength(1)
    await store.apply(acknowledgeDelivery, drained.id)
    await store.apply(recordTurn, ref, turn(shown))
    const entries = await store.read(conversationOf, THREAD, 1)
    expect(entries.filter(({ body }) => body.messageId === shown[0]!.messageId)).toEqual([])
  })

  test('a held message whose key is taken by then does not stop the others', async () => {
    const { store, clock } = await open()
    const ids = ['msg_1', 'msg_2', 'msg_3'] as readonly string[] as readonly MessageId[]
    await store.apply(openThread, THREAD, 'clerk', null)
    await store.apply(acceptMessage, note(THREAD, { id: ids[0]! }))
    await store.apply(removeThread, THREAD)
    expect(await store.apply(retryDead, ids[0]!)).toMatchObject({ kind: 'retried' })
    // A new thread of that name hears the same again, before the old message is tried.
    await store.apply(openThread, THREAD, 'clerk', null)
    await store.apply(acceptMessage, note(THREAD, { id: ids[1]! }))
    await store.apply(acceptMessage, note('later' as ThreadId, { id: ids[2]! }))
    clock.advance(LIMITS.heldFirstMs * 3)
    await store.apply(tryHeld, 100)
    expect(await store.read(pendingMessages, THREAD, 10)).toMatchObject([{ id: ids[1] }])
    const [other] = await store.read(messagesOf, 'later' as ThreadId)
    expect(other).toMatchObject({ attempts: 1 })
    await assertInvariants(store)
  })

  test('a session whose thread is removed as its turn begins is heard again, wherever the two meet', async () => {
    const { store } = await open()
    for (const [one, two] of places(8, 4)) {
      const session = heard(`${one}-${two}`)
      await store.apply(sessionStarted, session, 'startup')
      await Promise.all([
        store.apply(late(one, removeThread), ownThread(session.sessionId)),
        store.apply(late(two, turnBegun), session, 'p1'),
      ])
      await expectHeardAgain(store, session)
    }
    await assertInvariants(store)
  })

  test('what a cancel answers is true, wherever it meets a claim [runs/cancel-is-final]', async () => {
    const { store } = await open()
    for (const [one, two] of places(5, 5)) {
      const { runId } = await store.apply(sendMessage, letter(`${one}-${two}` as ThreadId))
      const claimant = await aClaimant(store, ['clerk'], runId)
      const claim = () => store.apply(late(one, claimRun), claimant)
      const cancelled = store.apply(late(two, cancelRun), runId!, { by: 'tester' })
      const [answer] = await Promise.all([cancelled, claim()])
      const { state } = await reread(store, runId!)
      expect([answer.kind, state]).toEqual(state === 'running' ? ['requested', state] : ['cancelled', 'cancelled'])
    }
    await assertInvariants(store)
  })

  test('no run is left on a removed thread, wherever a message meets the removal [M14]', async () => {
    const { store } = await open()
    for (const [one, two] of places(8, 5)) {
      const threadId = `${one}-${two}` as ThreadId
      await store.apply(openThread, threadId, 'clerk', null)
      await Promise.all([
        store.apply(late(two, removeThread), threadId),
        store.apply(late(one, sendMessage), letter(threadId)),
      ])
      const thread = await store.read(findThread, threadId)
      const queued = await store.read(listRuns, { threadId, limit: 5, states: ['queued'] })
      expect([thread?.state, queued.length], `${one} and ${two}`).not.toEqual(['removed', 1])
    }
    await assertInvariants(store)
  })

  test('the same key is one message, wherever it meets /clear [M3]', async () => {
    const { store } = await open()
    for (const [one, two] of places(8, 3)) {
      const session = heard(`${one}-${two}`)
      const threadId = ownThread(session.sessionId)
      await store.apply(sessionStarted, session, 'startup')
      await Promise.all([
        store.apply(late(two, sessionStarted), session, 'clear'),
        store.apply(late(one, acceptMessage), note(threadId)),
      ])
      await store.apply(acceptMessage, note(threadId))
      expect(await store.read(messagesOf, threadId), `${one} and ${two}`).toMatchObject([{ state: 'pending' }])
      await store.apply(sessionStarted, session, 'clear')
    }
    await assertInvariants(store)
  })
})

describe('where two processes meet on PostgreSQL', () => {
  test('a message that meets /clear is in the inbox once, however often it is sent [M3]', async () => {
    const { store, slow, stopped, go, endsOrWaits } = await twoProcesses(/insert into messages/)
    await store.apply(sessionStarted, heard(), 'startup')
    const sending = slow.apply(acceptMessage, note(ownThread()))
    await stopped
    const clearing = store.apply(sessionStarted, heard(), 'clear')
    await endsOrWaits(clearing)
    go()
    await Promise.all([sending, clearing])
    await store.apply(acceptMessage, note(ownThread()))
    expect(await store.read(messagesOf, ownThread())).toMatchObject([{ state: 'pending', generation: 2 }])
    await store.apply(sessionStarted, heard(), 'clear')
    await assertInvariants(store)
  })

  test('a thread that is removed while a message comes has no run left on it [M14]', async () => {
    const { store, slow, stopped, go, endsOrWaits } = await twoProcesses(/insert into runs/)
    await store.apply(openThread, THREAD, 'clerk', null)
    const sending = slow.apply(sendMessage, letter(THREAD))
    await stopped
    const removing = store.apply(removeThread, THREAD)
    await endsOrWaits(removing)
    go()
    await Promise.all([sending, removing])
    const runs = await store.read(listRuns, { limit: 5 })
    const thread = await store.read(findThread, THREAD)
    expect([thread?.state, runs.length]).not.toEqual(['removed', 1])
    await assertInvariants(store)
  })

  test('a session whose thread another process removes as its turn begins is heard again', async () => {
    const { store, slow, stopped, go, endsOrWaits } = await twoProcesses(/insert into runs/)
    await store.apply(sessionStarted, heard(), 'startup')
    const beginning = slow.apply(turnBegun, heard(), 'p1')
    await stopped
    const removing = store.apply(removeThread, ownThread())
    await endsOrWaits(removing)
    go()
    await Promise.all([beginning, removing])
    await expectHeardAgain(store, heard())
    await assertInvariants(store)
  })

  test('a session whose turn begins in the middle of the removal of its thread is heard again', async () => {
    const { store, slow, stopped, go, endsOrWaits } = await twoProcesses(/update threads set state = 'removed'/)
    await store.apply(sessionStarted, heard(), 'startup')
    const removing = slow.apply(removeThread, ownThread())
    await stopped
    const beginning = store.apply(turnBegun, heard(), 'p1')
    await endsOrWaits(beginning)
    go()
    await Promise.all([removing, beginning])
    await expectHeardAgain(store, heard())
    await assertInvariants(store)
  })
})
