import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { judgeProcess } from '../processes/identity.ts'
import type { ProcessIdentity } from '../processes/identity.ts'
import { purgeDead, retryDead, undelivered } from '../threads/dead-letter.ts'
import {
  acknowledgeDelivery,
  attachmentOf,
  findDelivery,
  giveBackDelivery,
  leaseMessages,
  openDelivery,
} from '../threads/delivery.ts'
import type { Taker } from '../threads/delivery.ts'
import { findMessage, messagePage } from '../threads/message.ts'
import type { Message } from '../threads/message.ts'
import { viewMessage } from '../threads/view.ts'
import { giveBackLost } from '../workers/tend-inbox.ts'
import type { Desk } from './desk.ts'
import { notThere, theMessage, theThread } from './find.ts'
import { filled, paged } from './page.ts'
import { ownThread } from './threads.ts'

/** Messages: what waits, who took it, and what could not be delivered. */

const WAITING = ['pending', 'leased'] as const

async function known(desk: Desk, after: string | undefined): Promise<void> {
  if (after !== undefined && (await desk.read(findMessage, after)) === undefined) throw notThere('message', after)
}

export async function listAll(desk: Desk, ask: Ask<'messages.list'>): Promise<Answer<'messages.list'>> {
  const { limit = LIMITS.page, after, state = WAITING } = ask
  await known(desk, after)
  return paged((await desk.read(messagePage, { states: state, limit, ...filled({ after }) })).map(viewMessage), limit)
}

export async function list(desk: Desk, ask: Ask<'inbox.list'>): Promise<Answer<'inbox.list'>> {
  const { limit = LIMITS.page, after, state = WAITING } = ask
  const { id: threadId } = await ownThread(desk, ask.thread)
  await known(desk, after)
  const messages = await desk.read(messagePage, { states: state, limit, threadId, ...filled({ after }) })
  return paged(messages.map(viewMessage), limit)
}

async function whole(desk: Desk, message: Message): Promise<Answer<'messages.show'>> {
  const attachment = (await desk.read(attachmentOf, message.id))?.content
  return { ...viewMessage(message), ...filled({ attachment }) }
}

export async function show(desk: Desk, { message }: Ask<'messages.show'>): Promise<Answer<'messages.show'>> {
  return whole(desk, await theMessage(desk.runtime.store, message))
}

/** By hand: nobody's death gives them back, so time does. */
export async function drain(
  desk: Desk,
  { thread: given, limit = LIMITS.page }: Ask<'inbox.drain'>,
): Promise<Answer<'inbox.drain'>> {
  const { id: threadId } = await ownThread(desk, given)
  await giveBackLost(desk.runtime.store)
  const id = `dlv_${desk.runtime.random.id()}`
  const by: Taker = { kind: 'hand' }
  const taken = await desk.apply(leaseMessages, { id, threadId, by, limit, bytes: LIMITS.deliveryBytes })
  const { messages, remaining } = taken
  return { ...(messages.length > 0 ? { delivery: id } : {}), messages: messages.map(viewMessage), remaining }
}

const unknownDelivery = (id: string) =>
  new HoldfastError('not-found/delivery', `there is no delivery "${id}"`, {
    remedy: 'it may have been given back, by hand or because it was too old: drain again',
  })

async function ownDelivery(desk: Desk, id: string): Promise<readonly Message[]> {
  const found = await desk.read(findDelivery, id)
  for (const { threadId } of found) desk.ownOnly(threadId)
  return found
}

export async function acknowledge(desk: Desk, { delivery }: Ask<'inbox.ack'>): Promise<Answer<'inbox.ack'>> {
  const found = await ownDelivery(desk, delivery)
  // Where there is nothing to acknowledge, unknown, given back or seen before, no act is recorded.
  const isOpen = found.some(({ state }) => state === 'leased')
  const seen = isOpen ? await desk.apply(acknowledgeDelivery, delivery) : []
  const acknowledged = seen.length > 0 ? seen : await desk.read(findDelivery, delivery)
  if (acknowledged.length === 0) throw unknownDelivery(delivery)
  return { delivery, acknowledged: acknowledged.length }
}

export async function release(desk: Desk, { delivery }: Ask<'inbox.release'>): Promise<Answer<'inbox.release'>> {
  const found = await ownDelivery(desk, delivery)
  const [open] = await desk.read(openDelivery, delivery)
  if (open === undefined) {
    if (found.length === 0) throw unknownDelivery(delivery)
    throw new HoldfastError('messages/acknowledged', `the delivery ${delivery} has been acknowledged`, {
      remedy: 'its messages have been seen; there is nothing to give back',
    })
  }
  if (isInUse(open.leasedBy)) {
    throw new HoldfastError(
      'messages/in-use',
      `the delivery ${delivery} is in the hands of somebody who is still there`,
      {
        remedy: 'it comes back by itself when that process or session ends',
      },
    )
  }
  return { delivery, released: (await desk.apply(giveBackDelivery, delivery)).length }
}

const isInUse = (taker: Taker) =>
  taker.kind === 'session' || (taker.kind === 'process' && judgeProcess(taker.identity as ProcessIdentity) === 'alive')

export async function listDead(desk: Desk, ask: Ask<'dead.list'>): Promise<Answer<'dead.list'>> {
  const { limit = LIMITS.page, after, thread } = ask
  const threadId = thread === undefined ? undefined : (await theThread(desk.runtime.store, thread)).id
  await known(desk, after)
  const letters = await desk.read(undelivered, { state: 'dead', limit, ...filled({ after, threadId }) })
  return paged(letters.map(viewMessage), limit)
}

export function notADeadLetter({ id, state, threadId }: Message): HoldfastError {
  if (state === 'dead') {
    return new HoldfastError('messages/not-dead', `${id} has come to ${threadId} again since, under the same key`, {
      remedy: `\`holdfast inbox dead purge ${id}\` removes this one`,
    })
  }
  return new HoldfastError('messages/not-dead', `${id} is not a dead letter: it is ${state}`, {
    remedy: `\`holdfast inbox show ${id}\` shows it`,
  })
}

async function theDead(desk: Desk, given: string): Promise<Message> {
  const message = await theMessage(desk.runtime.store, given)
  if (message.state !== 'dead') throw notADeadLetter(message)
  return message
}

export async function showDead(desk: Desk, { message }: Ask<'dead.show'>): Promise<Answer<'dead.show'>> {
  return whole(desk, await theDead(desk, message))
}

export async function retry(desk: Desk, { message: given }: Ask<'dead.retry'>): Promise<Answer<'dead.retry'>> {
  const found = await theMessage(desk.runtime.store, given)
  const answer = await desk.apply(retryDead, found.id)
  if (answer.kind !== 'retried') throw notADeadLetter(answer.kind === 'unknown' ? found : answer.message)
  return { ...viewMessage(answer.message), held: answer.message.nextAttemptAt !== null }
}

export async function purge(desk: Desk, ask: Ask<'dead.purge'>): Promise<Answer<'dead.purge'>> {
  const { message: given, olderThanMs } = ask
  if ((given === undefined) === (olderThanMs === undefined)) {
    throw new HoldfastError('usage/purge', 'say which: one message, or those older than some time', {
      remedy: 'as in `holdfast inbox dead purge --older-than 14d`',
    })
  }
  const which = given === undefined ? { olderThanMs: olderThanMs ?? 0 } : { id: (await theDead(desk, given)).id }
  return { purged: await desk.apply(purgeDead, which) }
}
