import { describe, expect, test } from 'vitest'

import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { listRuns } from '../../src/runs/run.ts'
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
import type { Store } from '../../src/store/store.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesOf, pendingMessages } from '../../src/threads/message.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'

const OWN = 'claude-s1' as ThreadId
const PARENT = 'claude-parent' as ThreadId

const heard = (more: Partial<Heard> = {}): Heard => ({
  client: 'claude',
  sessionId: 's1',
  startedFrom: PARENT,
  process: { pid: 7 },
  ...more,
})

const stop = (ordinal: number, more: Partial<Stop> = {}): Stop => ({
  turn: 'p1',
  ordinal,
  isActive: false,
  isPaused: false,
  lastMessage: 'the end',
  deliveryId: `delivery-${ordinal}`,
  ...more,
})

const tell = (store: Store, key: string) =>
  store.apply(acceptMessage, {
    id: newMessageId(random),
    threadId: OWN,
    from: 'child' as ThreadId,
    kind: 'completion',
    key,
    body: { summary: key },
  })

const stateOf = async (store: Store) => (await store.read(findSession, 'claude:s1'))!.state
const toldParent = async (store: Store) =>
  (await store.read(messagesOf, PARENT)).map(({ kind, body }) => `${kind} ${(body.summary ?? body.error) as string}`)

/** A session below another one, in its first turn; its events have had the numbers 1 and 2. */
async function inTurn(store: Store): Promise<void> {
  await store.apply(sessionStarted, { client: 'claude', sessionId: 'parent' }, 'startup')
  await store.apply(sessionStarted, heard({ ordinal: 1 }), 'startup')
  await store.apply(turnBegun, heard({ ordinal: 2 }), 'p1')
}

describe.each(engines)('the order of events on $name', (engine) => {
  const open = async () => {
    const store = await (await engine.database()).open()
    await inTurn(store)
    return store
  }

  test('an answer that never reached the client was not seen: the messages come with the next end of a turn [M5]', async () => {
    const store = await open()
    await tell(store, 'a')
    await store.apply(turnStopped, heard({ shown: null }), stop(3))
    expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'leased' }])
    const next = await store.apply(turnStopped, heard({ shown: null }), stop(4))
    expect(next).toMatchObject({ kind: 'go-on', delivery: { id: 'delivery-4', messages: [{ key: 'a' }] } })
    await store.apply(turnStopped, heard({ shown: 'delivery-4' }), stop(5, { isActive: true }))
    expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'consumed' }])
    await assertInvariants(store)
  })

  test('the first event that is ever heard of a session counts, whichever it is', async () => {
    const store = await (await engine.database()).open()
    await store.apply(sessionStarted, { client: 'claude', sessionId: 'parent' }, 'startup')
    await store.apply(turnBegun, heard({ ordinal: 5 }), 'p1')
    expect(await stateOf(store)).toBe('busy')
    await store.apply(turnFailed, { ...heard(), sessionId: 's2' }, { ordinal: 5 }, 'overloaded')
    expect(await toldParent(store)).toEqual(['error overloaded'])
  })

  test('nor when a person writes next: they wait again', async () => {
    const store = await open()
    await tell(store, 'a')
    await store.apply(turnStopped, heard({ shown: null }), stop(3))
    await store.apply(turnBegun, heard({ shown: null, ordinal: 4 }), 'p2')
    expect(await store.read(pendingMessages, OWN, 10)).toMatchObject([{ key: 'a' }])
  })

  test('in the middle of a turn an answer may still be on its way: nothing is taken back, nothing acknowledged', async () => {
    const store = await open()
    await tell(store, 'a')
    await store.apply(turnStopped, heard({ shown: null }), stop(3))
    await store.apply(sessionActive, heard({ shown: null }))
    expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'leased' }])
    await store.apply(sessionActive, heard({ shown: 'delivery-3' }))
    expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'consumed' }])
  })

  test('a client that says that it went on has seen the answer, whatever its process looks like', async () => {
    const store = await open()
    await tell(store, 'a')
    await store.apply(turnStopped, heard(), stop(3))
    const other = heard({ process: { pid: 8 }, shown: 'delivery-3' })
    expect(await store.apply(turnStopped, other, stop(4, { isActive: true }))).toMatchObject({ kind: 'stop' })
    expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'consumed' }])
  })

  test('a client without names for its turns begins again with what it was told to go on with: it is one turn', async () => {
    const store = await open()
    const unnamed = heard({ sessionId: 'g1', client: 'gemini' })
    await store.apply(turnBegun, unnamed, undefined)
    await store.apply(acceptMessage, {
      id: newMessageId(random),
      threadId: 'gemini-g1' as ThreadId,
      kind: 'completion',
      key: 'a',
      body: { summary: 'a' },
    })
    const { turn: _, ...end } = stop(3)
    expect(await store.apply(turnStopped, unnamed, end)).toMatchObject({ kind: 'go-on' })
    await store.apply(turnBegun, { ...unnamed, shown: 'delivery-3' }, undefined)
    await store.apply(turnStopped, unnamed, { ...end, ordinal: 4, isActive: true })
    expect(await toldParent(store)).toEqual(['completion the end'])
    await store.apply(turnBegun, unnamed, undefined)
    await store.apply(turnBegun, unnamed, undefined)
    expect(await toldParent(store)).toEqual(['completion the end', 'error the turn was broken off'])
    await assertInvariants(store)
  })

  test('an event that is told again, or later than a newer one, changes nothing [M3]', async () => {
    const store = await open()
    await store.apply(turnStopped, heard(), stop(3))
    await store.apply(turnBegun, heard({ ordinal: 2 }), 'p1')
    await store.apply(sessionActive, heard({ ordinal: 2 }))
    await store.apply(sessionWaiting, heard({ ordinal: 2 }), 'may I?', 'w', newMessageId(random))
    await store.apply(sessionEnded, heard({ ordinal: 2 }), 'logout')
    await store.apply(sessionStarted, heard({ ordinal: 1 }), 'resume')
    expect(await stateOf(store)).toBe('idle')
    expect(await store.read(listRuns, { limit: 5 })).toMatchObject([{ state: 'succeeded' }])
    expect(await toldParent(store)).toEqual(['completion the end'])
    await assertInvariants(store)
  })

  test('an end from the spool takes nothing from the inbox: nobody waits for its answer', async () => {
    const store = await open()
    await tell(store, 'a')
    const answer = await store.apply(turnStopped, heard(), stop(3, { isUnanswered: true }))
    expect(answer).toMatchObject({ kind: 'stop', session: { state: 'idle' } })
    expect(await store.read(pendingMessages, OWN, 10)).toMatchObject([{ key: 'a' }])
    expect(await toldParent(store)).toEqual(['completion the end'])
  })

  test('an end from the spool that comes after the end of the session is told all the same, once', async () => {
    const store = await open()
    await store.apply(sessionEnded, heard({ ordinal: 4 }), 'logout')
    await store.apply(turnStopped, heard(), stop(3, { isUnanswered: true }))
    await store.apply(turnStopped, heard(), stop(3, { isUnanswered: true }))
    expect(await stateOf(store)).toBe('ended')
    expect((await toldParent(store)).filter((each) => each.startsWith('completion'))).toEqual(['completion the end'])
    await assertInvariants(store)
  })

  test('a failure that is told again is one; one that comes late is told', async () => {
    const store = await open()
    const end = { turn: 'p1', ordinal: 3 }
    await store.apply(turnFailed, heard(), end, 'overloaded')
    await store.apply(turnFailed, heard(), end, 'overloaded')
    await store.apply(turnBegun, heard({ ordinal: 5 }), 'p2')
    await store.apply(turnFailed, heard(), { turn: 'p1', ordinal: 4 }, 'again', 'auth')
    expect(await toldParent(store)).toEqual(['error overloaded', 'error again'])
    expect(await stateOf(store)).toBe('busy')
    await assertInvariants(store)
  })

  test('the end of a turn whose begin was never heard ends that turn, and the one before was broken off', async () => {
    const store = await open()
    await store.apply(turnStopped, heard(), stop(3, { turn: 'p2' }))
    expect(await store.read(listRuns, { limit: 5 })).toMatchObject([
      { state: 'succeeded' },
      { state: 'failed', code: 'killed' },
    ])
    expect(await stateOf(store)).toBe('idle')
    await assertInvariants(store)
  })

  test('a client that only tells of ends is heard; beside its Stop it says nothing new', async () => {
    const store = await open()
    const report = (turn: string) => stop(0, { turn, isReport: true, isUnanswered: true })
    await store.apply(turnStopped, heard(), stop(3))
    await store.apply(turnStopped, heard(), report('p1'))
    expect(await toldParent(store)).toEqual(['completion the end'])
    await store.apply(turnStopped, heard(), report('p2'))
    await store.apply(turnStopped, heard(), report('p2'))
    expect(await toldParent(store)).toEqual(['completion the end', 'completion the end'])
    await assertInvariants(store)
  })

  test('what a client tells beside its Stop, when the next turn has begun or ended, is nothing new either', async () => {
    const report = stop(0, { isReport: true, isUnanswered: true })
    for (const hasEnded of [false, true]) {
      const store = await open()
      await store.apply(turnStopped, heard(), stop(3))
      await store.apply(turnBegun, heard({ ordinal: 4 }), 'p2')
      if (hasEnded) await store.apply(turnStopped, heard(), stop(5, { turn: 'p2', lastMessage: 'another' }))
      const before = [await toldParent(store), await store.read(listRuns, { limit: 5 }), await stateOf(store)]
      expect(await store.apply(turnStopped, heard(), report)).toMatchObject({ kind: 'stop' })
      expect([await toldParent(store), await store.read(listRuns, { limit: 5 }), await stateOf(store)]).toEqual(before)
      await assertInvariants(store)
    }
  })

  test('but where its Stop only made the turn go on, it is how that turn ended', async () => {
    const store = await open()
    await tell(store, 'a')
    expect(await store.apply(turnStopped, heard(), stop(3))).toMatchObject({ kind: 'go-on' })
    const report = stop(0, { isReport: true, isUnanswered: true })
    await store.apply(turnBegun, heard({ ordinal: 4 }), 'p2')
    await store.apply(turnStopped, heard(), report)
    expect(await toldParent(store)).toEqual([expect.stringMatching(/^error/), 'completion the end'])
    await assertInvariants(store)
  })

  test('a question to a person is not late because a subagent with a higher number was heard first', async () => {
    const store = await open()
    await store.apply(sessionActive, heard({ ordinal: 4 }), false)
    await store.apply(sessionWaiting, heard({ ordinal: 3 }), 'may I?', 'w', newMessageId(random))
    expect(await stateOf(store)).toBe('waiting')
    expect(await store.read(pendingMessages, PARENT, 10)).toMatchObject([{ kind: 'waiting' }])
  })

  test('what goes on beside the turn makes an idle session not busy, and acknowledges', async () => {
    const store = await open()
    await tell(store, 'a')
    await store.apply(turnStopped, heard(), stop(3))
    await store.apply(sessionActive, heard(), false)
    expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'consumed' }])
    await store.apply(turnStopped, heard(), stop(4, { isActive: true }))
    await store.apply(sessionActive, heard(), false)
    expect(await stateOf(store)).toBe('idle')
  })
})
