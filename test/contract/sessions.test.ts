import { describe, expect, test } from 'vitest'

import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import {
  deliveryUnshown,
  sessionActive,
  sessionEnded,
  sessionStarted,
  sessionWaiting,
  turnBegun,
  turnFailed,
  turnStopped,
} from '../../src/sessions/events.ts'
import type { Heard, Stop } from '../../src/sessions/events.ts'
import { sessionLost } from '../../src/sessions/lost.ts'
import { parentOf } from '../../src/sessions/parent.ts'
import { findSession } from '../../src/sessions/session.ts'
import { familyEvents, threadFamily } from '../../src/sessions/tree.ts'
import { claimWake, countWakes, sessionsToWake } from '../../src/sessions/wake.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { run, single } from '../../src/store/transition.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { acknowledgeDelivery, leaseMessages } from '../../src/threads/delivery.ts'
import { messagesOf, pendingMessages } from '../../src/threads/message.ts'
import { removeThread } from '../../src/threads/remove.ts'
import { findThread, openThread } from '../../src/threads/thread.ts'
import { hurriedClock } from '../support/clocks.ts'
import { engines } from '../support/engines.ts'
import type { OpenOptions } from '../support/engines.ts'
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
  const open = async (options: OpenOptions = {}) => {
    const store = await (await engine.database()).open(options)
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

  test('a turn that was cancelled ends with its client, as cancelled, and the next one begins [runs/cancel-is-final]', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    const [turn] = await store.read(listRuns, { limit: 5 })
    expect(await store.apply(cancelRun, turn!.id, { by: 'ann' })).toMatchObject({ kind: 'requested' })
    await store.apply(turnStopped, heard(), stop('p1'))
    await store.apply(turnBegun, heard(), 'p2')
    const states = (await store.read(listRuns, { limit: 5 })).map(({ state, result }) => [state, result])
    expect(states).toEqual([
      ['running', null],
      ['cancelled', null],
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

  test('what an idle client was never shown waits again, and its turn is over', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    await tell(store, 'a')
    const end = stop('p1')
    await store.apply(turnStopped, heard(), end)
    expect(await store.apply(deliveryUnshown, 'claude:s1', 'another')).toBeUndefined()
    expect(await store.apply(deliveryUnshown, 'claude:s1', end.deliveryId)).toMatchObject({ state: 'idle' })
    expect(await store.read(sessionsToWake, 10)).toMatchObject([{ id: 'claude:s1' }])
    expect(await store.read(listRuns, { limit: 5 })).toMatchObject([{ state: 'succeeded' }])
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

  test('of several sessions of one process above it, its parent is the one that Codex names, or the one last heard of', async () => {
    const clock = new FakeClock()
    const store = await open({ clock })
    const start = (client: Heard['client'], sessionId: string, more: Partial<Heard> = {}) => {
      clock.advance(1_000)
      return store.apply(sessionStarted, heard(sessionId, { client, process: { pid: 10 }, ...more }), 'startup')
    }
    const above = async (thread: string) => (await store.read(findThread, thread as ThreadId))?.parentId
    const [codex, outer] = [{ pid: 10 }, { pid: 7 }]
    await start('codex', 'c1')
    await start('codex', 'c2')
    await start('gemini', 'g1', { process: { pid: 11 }, above: [codex, outer], codexAround: 'c1' })
    await start('gemini', 'g2', { process: { pid: 12 }, above: [codex, outer] })
    expect([await above('gemini-g1'), await above('gemini-g2')]).toEqual(['codex-c1', 'codex-c2'])
    // Itself, the last one that was heard of there: then it is another that counts.
    expect(await store.read(parentOf, heard('c2', { client: 'codex', above: [codex] }), 'codex-c2' as ThreadId)).toBe(
      'codex-c1',
    )
    for (let more = 0; more < 101; more += 1) await start('codex', `more-${more}`, { process: outer })
    await start('gemini', 'g4', { process: { pid: 14 }, above: [codex, outer], codexAround: 'c1' })
    expect(await above('gemini-g4')).toBe('codex-c1')
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
    const late = stop('p1', { isUnanswered: true })
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

  test('one of several who would wake a session does, and what brought nothing is counted [M11]', async () => {
    const clock = new FakeClock()
    const database = await engine.database()
    const store = await database.open({ clock })
    await store.apply(sessionStarted, heard(), 'startup')
    await tell(store, 'a')
    const claims = await Promise.all(Array.from({ length: 5 }, () => store.apply(claimWake, 'claude:s1')))
    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1)
    expect(await store.read(sessionsToWake, 10)).toEqual([])
    await store.apply(turnBegun, heard(), 'p1')
    expect(await store.apply(claimWake, 'claude:s1')).toBeUndefined()
    await store.apply(turnStopped, heard(), stop('p1'))
    await store.apply(turnStopped, heard(), stop('p1', { isActive: true }))
    expect(await store.read(countWakes)).toEqual({ wakes: 1, vain: 0 })
    await tell(store, 'b')
    await store.apply(claimWake, 'claude:s1')
    await store.apply(turnBegun, heard(), 'p2')
    // Taken by the model itself, in its turn: not in vain.
    const by = { kind: 'hand' } as const
    await store.apply(leaseMessages, { id: 'own', threadId: OWN, by, limit: 5, bytes: 1_000 })
    await store.apply(acknowledgeDelivery, 'own')
    await store.apply(turnStopped, heard(), stop('p2'))
    expect(await store.read(countWakes)).toEqual({ wakes: 2, vain: 0 })
    await tell(store, 'c')
    await store.apply(claimWake, 'claude:s1')
    clock.step(LIMITS.wakeAgainMs)
    expect(await store.read(sessionsToWake, 10)).toHaveLength(1)
    await store.apply(claimWake, 'claude:s1')
    expect(await store.read(countWakes)).toEqual({ wakes: 4, vain: 1 })
  })

  test('an end that nobody answers brings nothing: who was woken is woken again later, and later each time [M11]', async () => {
    const clock = new FakeClock()
    const store = await open({ clock })
    await tell(store, 'a')
    const wakeIn = async (ms: number) => {
      clock.step(ms - 1)
      expect(await store.read(sessionsToWake, 10)).toEqual([])
      expect(await store.apply(claimWake, 'claude:s1')).toBeUndefined()
      clock.step(1)
      expect(await store.read(sessionsToWake, 10)).toHaveLength(1)
      expect(await store.apply(claimWake, 'claude:s1')).toBeDefined()
    }
    const unheard = async (turn: string) => {
      await store.apply(turnBegun, heard(), turn)
      await store.apply(turnStopped, heard(), stop(turn, { isUnanswered: true }))
    }
    expect(await store.apply(claimWake, 'claude:s1')).toBeDefined()
    for (const n of [1, 2, 3]) {
      await unheard(`p${n}`)
      await wakeIn(n * LIMITS.wakeAgainMs)
    }
    expect(await store.read(countWakes)).toEqual({ wakes: 4, vain: 3 })
    await store.apply(single(() => run(sql`update sessions set missed_wakes = 1000000`)))
    await wakeIn(LIMITS.wakeAgainMostMs)
    // What took something is woken at once for the next.
    await unheard('p5')
    const by = { kind: 'hand' } as const
    await store.apply(leaseMessages, { id: 'own', threadId: OWN, by, limit: 5, bytes: 1_000 })
    await tell(store, 'b')
    expect(await store.apply(claimWake, 'claude:s1')).toBeDefined()
    // And again after the shortest time, if nobody stirs: what it missed before is over. All of it is counted on.
    await wakeIn(LIMITS.wakeAgainMs)
    await wakeIn(2 * LIMITS.wakeAgainMs)
    expect(await store.read(countWakes)).toEqual({ wakes: 8, vain: 6 })
  })

  test('of sessions that were started in one pane the outermost is woken', async () => {
    const store = await open()
    const wake = { kind: 'tmux', socket: '/tmp/s', pane: '%1' } as const
    await store.apply(sessionStarted, heard('s1', { wake }), 'startup')
    await store.apply(sessionStarted, heard('s2', { wake, process: { pid: 8 }, startedFrom: OWN }), 'startup')
    await tell(store, 'a')
    await tell(store, 'b', 'claude-s2' as ThreadId)
    expect(await store.read(sessionsToWake, 10)).toMatchObject([{ id: 'claude:s1' }])
  })

  test('a session whose process is gone has ended, unless it went on in another process meanwhile', async () => {
    const store = await open()
    await store.apply(turnBegun, heard(), 'p1')
    await tell(store, 'a')
    await store.apply(turnStopped, heard(), stop('p1'))
    expect(await store.apply(sessionLost, 'claude:s1', { pid: 6 })).toBeUndefined()
    expect(await store.apply(sessionLost, 'claude:s1', { pid: 7 })).toMatchObject({ state: 'ended' })
    expect(await store.apply(sessionLost, 'claude:s1', { pid: 7 })).toBeUndefined()
    expect(keys(await store.read(pendingMessages, OWN, 10))).toEqual(['a'])
    expect(await store.read(listRuns, { limit: 5 })).toMatchObject([{ state: 'failed', code: 'killed' }])
    await assertInvariants(store)
  })

  test('a session whose thread was removed goes on in a new generation of it [M14]', async () => {
    const store = await open()
    await tell(store, 'a')
    expect(await store.apply(removeThread, OWN)).toMatchObject({ kind: 'removed', deadLetters: 1 })
    await store.apply(sessionEnded, heard(), 'logout')
    expect(await store.read(findThread, OWN)).toMatchObject({ state: 'removed' })
    await store.apply(turnBegun, heard(), 'p1')
    expect(await store.read(findThread, OWN)).toMatchObject({ state: 'open', generation: 2 })
    expect(await store.read(findSession, 'claude:s1')).toMatchObject({ state: 'busy', generation: 2, endedAt: null })
    expect(await store.apply(turnStopped, heard(), stop('p1'))).toMatchObject({ kind: 'stop' })
    await assertInvariants(store)
  })

  test('a thread is drawn with those below it, and what happened to them can be followed', async () => {
    const clock = hurriedClock()
    const store = await open({ clock })
    // Each a moment later than the one before: they are drawn oldest first.
    clock.step(1)
    const child = await submitted(store, { parentThreadId: OWN })
    clock.step(1)
    await store.apply(sessionStarted, heard('s2', { startedFrom: OWN, process: { pid: 8 } }), 'startup')
    clock.step(1)
    await submitted(store, { parentThreadId: 'claude-s2' as ThreadId, threadId: 'grandchild' as ThreadId })
    await submitted(store)
    await tell(store, 'a')
    const family = await store.read(threadFamily, OWN, 10)
    expect(family.map(({ id, pending, sessionState, runState }) => [id, pending, sessionState ?? runState])).toEqual([
      [OWN, 1, 'idle'],
      [child.threadId, 0, 'queued'],
      ['claude-s2', 0, 'idle'],
      ['grandchild', 0, 'queued'],
    ])
    const all = await store.read(familyEvents, OWN, true, 0, 100)
    expect(new Set(all.events.map(({ threadId }) => threadId))).toEqual(new Set(family.map(({ id }) => id)))
    const own = await store.read(familyEvents, OWN, false, 0, 100)
    expect(new Set(own.events.map(({ threadId }) => threadId))).toEqual(new Set([OWN]))
    expect(await store.read(familyEvents, OWN, true, all.seq, 100)).toEqual({ events: [], seq: all.seq })
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
