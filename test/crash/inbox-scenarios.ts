import { newMessageId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
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
import { claimWake } from '../../src/sessions/wake.ts'
import { recordUnreadable } from '../../src/sessions/unreadable.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import type { NewMessage } from '../../src/threads/accept.ts'
import { buryUntaken, purgeDead, retryDead, tryHeld } from '../../src/threads/dead-letter.ts'
import { acknowledgeDelivery, giveBackDelivery, leaseMessages } from '../../src/threads/delivery.ts'
import { removeThread, stopThread } from '../../src/threads/remove.ts'
import { forgetMessages } from '../../src/threads/retention.ts'
import { openThread } from '../../src/threads/thread.ts'
import { scenario } from './scenario.ts'
import type { Scenario, World } from './scenario.ts'

const INBOX = 'inbox' as ThreadId
const SESSION = 'claude-nested' as ThreadId

const message = (key: string, more: Partial<NewMessage> = {}): NewMessage => ({
  id: newMessageId(random),
  threadId: INBOX,
  from: 'child' as ThreadId,
  kind: 'completion',
  key,
  body: { summary: key },
  ...more,
})

async function withInbox({ store }: World): Promise<void> {
  await store.apply(openThread, INBOX, 'conductor', null)
  await store.apply(openThread, 'child' as ThreadId, 'helper', INBOX)
  await store.apply(acceptMessage, message('a'))
  await store.apply(acceptMessage, message('w', { kind: 'waiting' }))
}

const delivery = {
  id: 'delivery',
  threadId: INBOX,
  by: { kind: 'hand' },
  limit: 20,
  bytes: LIMITS.deliveryBytes,
} as const

const messages: readonly Scenario[] = [
  scenario({ acceptMessage }, 'one with more text than it may carry', async (world) => {
    await withInbox(world)
    return [message('long', { body: { summary: 'x'.repeat(LIMITS.messageBytes + 1) } })]
  }),
  scenario({ acceptMessage }, 'a newer "waiting"', async (world) => {
    await withInbox(world)
    return [message('w2', { kind: 'waiting' })]
  }),
  scenario({ acceptMessage }, 'for a thread that is not known yet', async () => [
    message('early', { threadId: newThreadId(random) }),
  ]),
  scenario({ acceptMessage }, 'for a thread that was removed', async (world) => {
    await withInbox(world)
    await world.store.apply(removeThread, INBOX)
    return [message('late')]
  }),
  scenario({ leaseMessages }, 'what waits', async (world) => {
    await withInbox(world)
    return [delivery]
  }),
  scenario({ acknowledgeDelivery }, 'what was seen', async (world) => {
    await withInbox(world)
    await world.store.apply(leaseMessages, delivery)
    return [delivery.id, null]
  }),
  scenario({ giveBackDelivery }, 'what nobody saw', async (world) => {
    await withInbox(world)
    await world.store.apply(leaseMessages, delivery)
    return [delivery.id]
  }),
  scenario({ tryHeld }, 'the last attempt', async ({ store, clock }) => {
    await store.apply(openThread, 'child' as ThreadId, 'helper', null)
    await store.apply(acceptMessage, message('held', { threadId: 'never' as ThreadId }))
    for (let attempt = 1; attempt < LIMITS.heldAttempts; attempt += 1) {
      clock.step(LIMITS.heldFirstMs * 2 ** attempt)
      await store.apply(tryHeld, 10)
    }
    clock.step(LIMITS.heldFirstMs * 2 ** LIMITS.heldAttempts)
    return [10]
  }),
  scenario({ retryDead }, 'a dead letter whose recipient is back', async (world) => {
    await withInbox(world)
    const { message: stored } = await world.store.apply(acceptMessage, message('b'))
    await world.store.apply(removeThread, INBOX)
    await world.store.apply(openThread, INBOX, 'conductor', null)
    return [stored.id]
  }),
  scenario({ purgeDead }, 'all of them', async (world) => {
    await withInbox(world)
    await world.store.apply(removeThread, INBOX)
    return [{ olderThanMs: 0 }]
  }),
  scenario({ giveBackDelivery }, 'a "waiting" that a newer one has overtaken', async (world) => {
    await withInbox(world)
    await world.store.apply(leaseMessages, delivery)
    world.clock.step(1_000)
    await world.store.apply(acceptMessage, message('w2', { kind: 'waiting' }))
    return [delivery.id]
  }),
  scenario({ buryUntaken }, 'what waited for longer than it may', async (world) => {
    await withInbox(world)
    world.clock.step(LIMITS.messagesWaitMs)
    return [10]
  }),
  scenario({ forgetMessages }, 'what was seen long ago', async (world) => {
    await withInbox(world)
    await world.store.apply(acceptMessage, message('long', { body: { summary: 'x'.repeat(LIMITS.messageBytes + 1) } }))
    await world.store.apply(leaseMessages, delivery)
    await world.store.apply(acknowledgeDelivery, delivery.id)
    world.clock.step(LIMITS.messagesKeptMs)
    return [10]
  }),
  scenario({ removeThread }, 'a thread with messages, one of them taken', async (world) => {
    await withInbox(world)
    await world.store.apply(leaseMessages, { ...delivery, limit: 1 })
    return [INBOX]
  }),
  scenario({ stopThread }, 'an open thread', async (world) => {
    await withInbox(world)
    return [INBOX]
  }),
]

const heard: Heard = { client: 'claude', sessionId: 'nested', startedFrom: INBOX, process: { pid: 7 } }
const stop = (ordinal: number): Stop => ({
  turn: 'p1',
  ordinal,
  isActive: false,
  isPaused: false,
  lastMessage: 'done',
  deliveryId: `delivery-${ordinal}`,
})

/** A session in the middle of a turn, below another thread, with something in its own inbox. */
async function inTurn(world: World): Promise<void> {
  await withInbox(world)
  await world.store.apply(sessionStarted, heard, 'startup')
  await world.store.apply(turnBegun, heard, 'p1')
}

const sessions: readonly Scenario[] = [
  scenario({ sessionStarted }, 'a new one', async (world) => {
    await withInbox(world)
    return [heard, 'startup' as const]
  }),
  scenario({ sessionStarted }, 'one whose process died with messages in its hand', async (world) => {
    await inTurn(world)
    await world.store.apply(acceptMessage, message('own', { threadId: SESSION }))
    await world.store.apply(turnStopped, heard, stop(1))
    return [{ ...heard, process: { pid: 8 } }, 'resume' as const]
  }),
  scenario({ turnBegun }, 'the next turn, while one was broken off', async (world) => {
    await inTurn(world)
    return [heard, 'p2']
  }),
  scenario({ sessionActive }, 'after messages were put in front of it', async (world) => {
    await inTurn(world)
    await world.store.apply(acceptMessage, message('own', { threadId: SESSION }))
    await world.store.apply(turnStopped, heard, stop(1))
    return [heard]
  }),
  scenario({ turnStopped }, 'with messages waiting', async (world) => {
    await inTurn(world)
    await world.store.apply(acceptMessage, message('own', { threadId: SESSION }))
    return [heard, stop(1)]
  }),
  scenario({ turnStopped }, 'with nothing waiting, and a parent to tell', async (world) => {
    await inTurn(world)
    return [heard, stop(1)]
  }),
  scenario({ turnFailed }, 'an error of the provider', async (world) => {
    await inTurn(world)
    return [heard, { turn: 'p1', ordinal: 1 }, 'overloaded']
  }),
  scenario({ sessionWaiting }, 'for a person', async (world) => {
    await inTurn(world)
    return [heard, 'may I?', 'w1', newMessageId(random)]
  }),
  scenario({ sessionLost }, 'with messages in its hand', async (world) => {
    await inTurn(world)
    await world.store.apply(acceptMessage, message('own', { threadId: SESSION }))
    await world.store.apply(turnStopped, heard, stop(1))
    return ['claude:nested', { pid: 7 }]
  }),
  scenario({ claimWake }, 'an idle session with a message', async (world) => {
    await withInbox(world)
    await world.store.apply(sessionStarted, heard, 'startup')
    await world.store.apply(acceptMessage, message('own', { threadId: SESSION }))
    return ['claude:nested']
  }),
  scenario({ turnBegun }, 'of a session whose thread was removed', async (world) => {
    await withInbox(world)
    await world.store.apply(sessionStarted, heard, 'startup')
    await world.store.apply(removeThread, SESSION)
    return [heard, 'p1']
  }),
  scenario({ turnStopped }, 'late, from the spool, when the session has gone on', async (world) => {
    await inTurn(world)
    await world.store.apply(turnBegun, { ...heard, ordinal: 9 }, 'p2')
    return [heard, { ...stop(1), isUnanswered: true }]
  }),
  scenario({ recordUnreadable }, 'something that nobody understands', async () => [
    { id: 'u1', client: 'claude', why: 'it is not JSON', bytes: 3, beginning: '{{{' } as const,
  ]),
  scenario({ deliveryUnshown }, 'an answer that died on its way', async (world) => {
    await inTurn(world)
    await world.store.apply(acceptMessage, message('own', { threadId: SESSION }))
    await world.store.apply(turnStopped, heard, stop(1))
    return ['claude:nested', 'delivery-1']
  }),
  scenario({ sessionEnded }, 'in the middle of a turn', async (world) => {
    await inTurn(world)
    return [heard, 'logout']
  }),
]

export const INBOX_SCENARIOS: readonly Scenario[] = [...messages, ...sessions]
