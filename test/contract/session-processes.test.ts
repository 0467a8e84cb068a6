import { describe, expect, test } from 'vitest'

import { newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { deliveryText } from '../../src/hooks/answer.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { sessionEnded, sessionStarted, turnBegun, turnStopped } from '../../src/sessions/events.ts'
import type { Heard, Stop } from '../../src/sessions/events.ts'
import type { Store } from '../../src/store/store.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { reread, running } from '../support/world.ts'

const OWN = 'claude-a' as ThreadId
const PARENT = 'boss' as ThreadId

const from = (pid: number, more: Partial<Heard> = {}): Heard => ({
  client: 'claude',
  sessionId: 'a',
  process: { pid },
  ...more,
})

const stop = (turn: string, ordinal: number): Stop => ({
  turn,
  ordinal,
  isPaused: false,
  deliveryId: `delivery-${ordinal}`,
  lastMessage: `end of ${turn}`,
})

const turns = async (store: Store) =>
  (await store.read(listRuns, { threadId: OWN, limit: 10 })).map(
    ({ state, request }) => `${'turn' in request ? request.turn : request.kind} ${state}`,
  )

describe.each(engines)('the processes of a session on $name', (engine) => {
  const open = async () => (await engine.database()).open()

  test('the end of an older process does not end the turn of the one that went on', async () => {
    const store = await open()
    await store.apply(openThread, PARENT, 'clerk', null)
    const below = { startedFrom: PARENT }
    await store.apply(sessionStarted, from(1, { ...below, ordinal: 1 }), 'startup')
    await store.apply(sessionStarted, from(2, { ...below, ordinal: 2 }), 'resume')
    await store.apply(turnBegun, from(2, { ...below, ordinal: 3 }), 'p1')
    // The first terminal is closed.
    await store.apply(sessionEnded, from(1, { ...below, ordinal: 4 }), 'exit')
    await store.apply(turnStopped, from(2, { ...below, ordinal: 5 }), stop('p1', 5))
    const told = await store.read(messagesOf, PARENT)
    expect(told).toMatchObject([{ kind: 'completion', body: { summary: 'end of p1' } }])
    await assertInvariants(store)
  })

  test('two sessions that share a thread can both take turns', async () => {
    const store = await open()
    const cleared = from(1, { sessionId: 'b' })
    await store.apply(sessionStarted, from(1), 'startup')
    await store.apply(sessionStarted, cleared, 'clear')
    // The old one is resumed in another terminal.
    await store.apply(sessionStarted, from(2), 'resume')
    await store.apply(turnBegun, cleared, 'b1')
    await store.apply(turnBegun, from(2), 'a1')
    await assertInvariants(store)
    await store.apply(turnStopped, from(2), stop('a1', 9))
    await store.apply(turnStopped, cleared, stop('b1', 9))
    expect(await turns(store)).toEqual(['a1 succeeded', 'b1 succeeded'])
    await assertInvariants(store)
  })

  test('a turn that a person cancelled ends cancelled, and the next one is recorded', async () => {
    const store = await open()
    await store.apply(sessionStarted, from(1), 'startup')
    await store.apply(turnBegun, from(1), 'p1')
    const [observed] = await store.read(listRuns, { limit: 1 })
    expect(await store.apply(cancelRun, observed!.id, { by: 'tester' })).toMatchObject({ kind: 'requested' })
    await store.apply(turnStopped, from(1), stop('p1', 1))
    expect(await reread(store, observed!.id)).toMatchObject({ state: 'cancelled' })
    await store.apply(turnBegun, from(1), 'p2')
    expect(await turns(store)).toEqual(['p2 running', 'p1 cancelled'])
    await assertInvariants(store)
  })

  test('a command on the thread of a session does not keep its turns from being heard', async () => {
    const store = await open()
    await store.apply(sessionStarted, from(1), 'startup')
    await running(store, { threadId: OWN })
    await store.apply(turnBegun, from(1), 'p1')
    await store.apply(turnStopped, from(1), stop('p1', 1))
    expect(await turns(store)).toEqual(['p1 succeeded', 'command running'])
    await assertInvariants(store)
  })

  test('of a long prompt a session is shown all, or told where the rest is [M13]', async () => {
    const store = await open()
    await store.apply(sessionStarted, from(1), 'startup')
    await store.apply(turnBegun, from(1), 'p1')
    const text = `${'word '.repeat(10_000)}; and above all, do not delete anything`
    const ids = { messageId: newMessageId(random), runId: newRunId(random) }
    await store.apply(sendMessage, { ...ids, threadId: OWN, agent: 'claude', text, key: 'long' })
    const answer = await store.apply(turnStopped, from(1), stop('p1', 1))
    if (answer.kind !== 'go-on') throw new Error('it was not told')
    expect(deliveryText(answer.delivery)).toMatch(/do not delete|holdfast inbox show/)
  })
})
