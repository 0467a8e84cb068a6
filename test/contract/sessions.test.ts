import { describe, expect, test } from 'vitest'

import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import {
  sessionActive,
  sessionEnded,
  sessionStarted,
  sessionWaiting,
  turnBegun,
  turnFailed,
  turnStopped,
} from '../../src/sessions/events.ts'
import type { Heard, Stop } from '../../src/sessions/events.ts'
import { findSession } from '../../src/sessions/session.ts'
import { sessionsToWake } from '../../src/sessions/wake.ts'
import type { Store } from '../../src/store/store.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesOf, pendingMessages } from '../../src/threads/message.ts'
import { findThread, openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { submitted } from '../support/world.ts'

const heard = (sessionId = 's1', more: Partial<Heard> = {}): Heard => ({
  client: 'claude',
  sessionId,
  process: { pid: 7 },
  ...more,
})
const OWN = 'claude-s1' as ThreadId

let ordinals = 0
const stop = (turn: string, more: Partial<Stop> = {}): Stop => ({
  turn,
  ordinal: (ordinals += 1),
  isActive: false,
  isPaused: false,
  lastMessage: `end of ${turn}`,
  deliveryId: random.id(),
  ...more,
})

const tell = (store: Store, key: string, threadId = OWN, from = 'child' as ThreadId) =>
  store.apply(acceptMessage, {
    id: newMessageId(random),
    threadId,
    from,
    kind: 'completion',
    key,
    body: { summary: key },
  })

const keys = (messages: readonly { readonly key: string }[]) => messages.map(({ key }) => key)

describe.each(engines)('a session on $name', (engine) => {
  const open = async () => {
    const store = await (await engine.database()).open()
    await store.apply(sessionStarted, heard(), 'startup')
    return store
  }

  test('a turn is an observed run: begun, ended once, with the last words as its result', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    expect(await store.read(listRuns, { limit: 5 })).toMatchObject([
      { state: 'running', agent: 'claude', threadId: OWN },
    ])
    const end = stop('p1')
    expect(await store.apply(turnStopped, heard(), end)).toMatchObject({ kind: 'stop', session: { state: 'idle' } })
    expect(await store.apply(turnStopped, heard(), end)).toMatchObject({ kind: 'stop' })
    expect(await store.read(listRuns, { limit: 5 })).toMatchObject([
      { state: 'succeeded', result: { text: 'end of p1' } },
    ])
    await assertInvariants(store)
  })

  test('what waits at the end of a turn makes it go on, and is acknowledged by the next event [M1] [M6]', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    await tell(store, 'a')
    await tell(store, 'b')
    const first = await store.apply(turnStopped, heard(), stop('p1'))
    expect(first).toMatchObject({ kind: 'go-on', delivery: { remaining: 0 } })
    expect(first.kind === 'go-on' && keys(first.delivery.messages)).toEqual(['a', 'b'])
    expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'leased' }, { state: 'leased' }])
    expect(await store.apply(turnStopped, heard(), stop('p1', { isActive: true }))).toMatchObject({ kind: 'stop' })
    expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'consumed' }, { state: 'consumed' }])
    const runs = await store.read(listRuns, { limit: 5 })
    expect(runs).toHaveLength(1)
    await assertInvariants(store)
  })

  test('the same Stop told again gets the same answer, and nothing is taken twice [M3] [M5]', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    await tell(store, 'a')
    const end = stop('p1')
    const first = await store.apply(turnStopped, heard(), end)
    await tell(store, 'b')
    const again = await store.apply(turnStopped, heard(), { ...end, deliveryId: 'another' })
    expect(
      again.kind === 'go-on' && first.kind === 'go-on' && [again.delivery.id, keys(again.delivery.messages)],
    ).toEqual([first.kind === 'go-on' && first.delivery.id, ['a']])
    expect(keys(await store.read(pendingMessages, OWN, 10))).toEqual(['b'])
  })

  test('at most three blocks in a row; an explicit "not active" or an empty drain starts anew; silence counts as active [M6]', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    const kinds: string[] = []
    const next = async (isActive: boolean | undefined, key?: string) => {
      if (key !== undefined) await tell(store, key)
      const { isActive: _, ...end } = stop('p1')
      kinds.push(
        (await store.apply(turnStopped, heard(), { ...end, ...(isActive === undefined ? {} : { isActive }) })).kind,
      )
    }
    await next(false, 'a')
    await next(true, 'b')
    await next(undefined, 'c')
    await next(true, 'd')
    await next(undefined)
    expect(kinds).toEqual(['go-on', 'go-on', 'go-on', 'stop', 'stop'])
    expect(keys(await store.read(pendingMessages, OWN, 10))).toEqual(['d'])
    await next(false)
    expect(kinds.at(-1)).toBe('go-on')
    await next(true)
    await next(true, 'e')
    expect(kinds.slice(-2)).toEqual(['stop', 'go-on'])
    await assertInvariants(store)
  })

  test('a client that died between the answer and its next event gets them again after resume, and never a third time', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    await tell(store, 'a')
    await store.apply(turnStopped, heard(), stop('p1'))
    const again = heard('s1', { process: { pid: 8 } })
    await store.apply(sessionStarted, again, 'resume')
    expect(keys(await store.read(pendingMessages, OWN, 10))).toEqual(['a'])
    await store.apply(turnBegun, again, 'p2')
    const second = await store.apply(turnStopped, again, stop('p2'))
    expect(second.kind === 'go-on' && keys(second.delivery.messages)).toEqual(['a'])
    await store.apply(sessionActive, again)
    await store.apply(sessionStarted, heard('s1', { process: { pid: 9 } }), 'resume')
    expect(await store.read(pendingMessages, OWN, 10)).toEqual([])
    await assertInvariants(store)
  })

  test('an event of another process of the session acknowledges nothing', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    await tell(store, 'a')
    await store.apply(turnStopped, heard(), stop('p1'))
    await store.apply(sessionActive, heard('s1', { process: { pid: 8 } }))
    expect(keys(await store.read(pendingMessages, OWN, 10))).toEqual(['a'])
  })

  test('compacting in the middle of a turn gives nothing back', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    await tell(store, 'a')
    await store.apply(turnStopped, heard(), stop('p1'))
    await store.apply(sessionStarted, heard(), 'compact')
    expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'leased' }])
    expect(await store.read(findSession, 'claude:s1')).toMatchObject({ state: 'busy', generation: 1 })
  })

  test('clearing renews the generation, under the same thread, and what was not seen is still to be seen', async () => {
    const store = await open()
    await tell(store, 'a')
    await store.apply(sessionStarted, heard('s2'), 'clear')
    expect(await store.read(findSession, 'claude:s2')).toMatchObject({ threadId: OWN, generation: 2 })
    expect(await store.read(findSession, 'claude:s1')).toMatchObject({ state: 'ended' })
    expect(await store.read(pendingMessages, OWN, 10)).toMatchObject([{ key: 'a', generation: 2 }])
    await assertInvariants(store)
  })

  test('a fork is a thread of its own', async () => {
    const store = await open()
    await store.apply(sessionStarted, heard('s2', { process: { pid: 8 } }), 'fork')
    expect(await store.read(findSession, 'claude:s2')).toMatchObject({ threadId: 'claude-s2', generation: 1 })
  })

  test('a session that is started from another is its child, and tells it of each end, its failures and its waits [M10]', async () => {
    const store = await open()
    const nested = heard('s2', { startedFrom: OWN, process: { pid: 8 } })
    await store.apply(sessionStarted, nested, 'startup')
    expect(await store.read(findThread, 'claude-s2' as ThreadId)).toMatchObject({ parentId: OWN })
    await store.apply(turnBegun, nested, 'p1')
    await store.apply(sessionWaiting, nested, 'may I?', 'w1', newMessageId(random))
    await store.apply(sessionWaiting, nested, 'may I please?', 'w2', newMessageId(random))
    await store.apply(turnStopped, nested, stop('p1'))
    await store.apply(turnBegun, nested, 'p2')
    const failure = { turn: 'p2', ordinal: (ordinals += 1) }
    await store.apply(turnFailed, nested, failure, 'overloaded')
    await store.apply(turnFailed, nested, failure, 'overloaded')
    const told = await store.read(pendingMessages, OWN, 10)
    expect(told.map(({ kind, body }) => [kind, body.text ?? body.summary ?? body.error])).toEqual([
      ['waiting', 'may I please?'],
      ['completion', 'end of p1'],
      ['error', 'overloaded'],
    ])
    await assertInvariants(store)
  })

  test('below a plain command it reports to whoever started that', async () => {
    const store = await open()
    const command = await submitted(store, { parentThreadId: OWN })
    const nested = heard('s2', { startedFrom: command.threadId, process: { pid: 8 } })
    await store.apply(sessionStarted, nested, 'startup')
    expect(await store.read(findThread, 'claude-s2' as ThreadId)).toMatchObject({ parentId: OWN })
  })

  test("its own thread in the environment makes it nobody's child", async () => {
    const store = await open()
    await store.apply(sessionStarted, heard('s3', { startedFrom: 'claude-s3' as ThreadId }), 'startup')
    expect(await store.read(findThread, 'claude-s3' as ThreadId)).toMatchObject({ parentId: null })
  })

  test('what goes on in the background is a pause, not an end', async () => {
    const store = await open()
    const nested = heard('s2', { startedFrom: OWN, process: { pid: 8 } })
    await store.apply(turnBegun, nested, 'p1')
    expect(await store.apply(turnStopped, nested, stop('p1', { isPaused: true }))).toMatchObject({
      session: { state: 'waiting' },
    })
    expect(await store.read(pendingMessages, OWN, 10)).toEqual([])
    await store.apply(turnStopped, nested, stop('p1', { isActive: true }))
    expect(await store.read(pendingMessages, OWN, 10)).toHaveLength(1)
  })

  test('a turn that a person broke off is told as such when the next begins', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    await store.apply(turnBegun, heard(), 'p2')
    expect(await store.read(listRuns, { limit: 5 })).toMatchObject([
      { state: 'running' },
      { state: 'failed', code: 'killed' },
    ])
  })

  test('an end that comes late from the spool ends no other turn, and its words are told once', async () => {
    const store = await open()
    const nested = heard('s2', { startedFrom: OWN, process: { pid: 8 } })
    await store.apply(turnBegun, nested, 'p1')
    const late = stop('p1')
    await store.apply(turnBegun, nested, 'p2')
    await store.apply(turnStopped, nested, late)
    await store.apply(turnStopped, nested, late)
    const told = await store.read(pendingMessages, OWN, 10)
    expect(told.map(({ kind }) => kind)).toEqual(['error', 'completion'])
    expect(await store.read(findSession, 'claude:s2')).toMatchObject({ turn: 'p2', state: 'busy' })
    await assertInvariants(store)
  })

  test('a session that ended keeps its thread: what comes waits for the resume', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    await tell(store, 'a')
    await store.apply(turnStopped, heard(), stop('p1'))
    await store.apply(sessionEnded, heard(), 'logout')
    expect(keys(await store.read(pendingMessages, OWN, 10))).toEqual(['a'])
    expect(await store.read(sessionsToWake, 10)).toEqual([])
    expect(await store.apply(sessionEnded, heard('unknown'), 'logout')).toBeUndefined()
  })

  test('an idle session with something in its inbox is to be woken, a busy one never [M11]', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    await tell(store, 'a')
    expect(await store.read(sessionsToWake, 10)).toEqual([])
    await store.apply(turnStopped, heard(), stop('p1'))
    await store.apply(turnStopped, heard(), stop('p1', { isActive: true }))
    expect(await store.read(sessionsToWake, 10)).toEqual([])
    await tell(store, 'b')
    expect(await store.read(sessionsToWake, 10)).toMatchObject([{ id: 'claude:s1' }])
  })

  test('a message that is sent to a session waits in its inbox and starts no run of ours', async () => {
    const store = await open()
    const sending = {
      messageId: newMessageId(random),
      runId: 'run_x' as never,
      threadId: OWN,
      agent: 'claude',
      text: 'hi',
      key: 'k',
    }
    expect(await store.apply(sendMessage, sending)).toMatchObject({ runId: undefined })
    expect(await store.read(listRuns, { limit: 5 })).toEqual([])
    expect(LIMITS.blocksInARow).toBe(3)
    await store.apply(openThread, OWN, 'claude', null)
  })
})
