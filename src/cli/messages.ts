import { HoldfastError } from '../base/errors.ts'
import type { Store } from '../store/store.ts'
import { findMessage, messagesByPrefix } from '../threads/message.ts'
import type { Message } from '../threads/message.ts'
import { messageText } from '../threads/message-text.ts'
import { onlyOne } from '../control/find.ts'
import { ago, table, visible } from './output.ts'

/** A message by its id, or by a prefix that only it has; `msg_` may be left out. */
export async function theMessage(store: Store, given: string): Promise<Message> {
  const exact = await store.read(findMessage, given)
  if (exact !== undefined) return exact
  const prefix = given.startsWith('msg_') ? given : `msg_${given}`
  return onlyOne(await store.read(messagesByPrefix, prefix), 'message', given, '`holdfast inbox list` shows them')
}

/** A message as people read it: everything that the JSON form has, and what was said fenced as a model would see it. */
export function describeMessage(message: Message, whole?: string): string {
  const { id, threadId, kind, fromThread, key, state, reason, attempts, createdAt, dueAt, consumedByRun } = message
  const facts = [
    `message ${id}`,
    `kind: ${kind}`,
    `from: ${fromThread ?? 'outside'}`,
    `to: ${threadId}`,
    `key: ${key}`,
    `state: ${state}${reason === null ? '' : ` (${reason})`}`,
    ...(attempts === 0 ? [] : [`attempts: ${attempts}`]),
    `created: ${new Date(createdAt).toISOString()}`,
    ...(dueAt === null ? [] : [`due: ${new Date(dueAt).toISOString()}`]),
    ...(consumedByRun === null ? [] : [`taken by: ${consumedByRun}`]),
  ]
  return visible(`${facts.join(', ')}\n${messageText(message)}${whole === undefined ? '' : `\n\n${whole}`}`)
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

const PREVIEW_CHARACTERS = 60

export function messageTable(messages: readonly Message[], now: number): string {
  return table(
    ['MESSAGE', 'STATE', 'KIND', 'FROM', 'CREATED', 'TEXT'],
    messages.map((message) => [
      message.id,
      message.reason === null ? message.state : `${message.state} (${message.reason})`,
      message.kind,
      message.fromThread ?? 'outside',
      ago(message.createdAt, now),
      preview(message),
    ]),
  )
}

function preview({ body }: Message): string {
  const words = [body['text'], body['summary'], body['error'], body['state']].find((each) => typeof each === 'string')
  return visible(words ?? '')
    .replaceAll('\n', ' ')
    .slice(0, PREVIEW_CHARACTERS)
}
