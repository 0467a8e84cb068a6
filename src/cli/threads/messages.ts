import type { ThreadId } from '../../base/ids.ts'
import { messageText } from '../../threads/message-text.ts'
import { ago, table, visible } from '../words/output.ts'
import type { MessageView } from '../words/views.ts'

/** A message as people read it: everything that the JSON form has, and what was said fenced as a model would see it. */
export function describeMessage(message: MessageView): string {
  const { id, threadId, kind, from, key, state, reason, attempts, createdAt, dueAt, consumedByRun, attachment } =
    message
  const facts = [
    `message ${id}`,
    `kind: ${kind}`,
    `from: ${from ?? 'outside'}`,
    `to: ${threadId}`,
    `key: ${key}`,
    `state: ${state}${reason === undefined ? '' : ` (${reason})`}`,
    ...(attempts === 0 ? [] : [`attempts: ${attempts}`]),
    `created: ${createdAt}`,
    ...(dueAt === undefined ? [] : [`due: ${dueAt}`]),
    ...(consumedByRun === undefined ? [] : [`taken by: ${consumedByRun}`]),
  ]
  const text = messageText({ ...message, kind: kind as never, fromThread: from as ThreadId | null })
  return visible(`${facts.join(', ')}\n${text}${attachment === undefined ? '' : `\n\n${attachment}`}`)
}

const PREVIEW_CHARACTERS = 60

export function messageTable(messages: readonly MessageView[], now: number): string {
  return table(
    ['MESSAGE', 'STATE', 'KIND', 'FROM', 'CREATED', 'TEXT'],
    messages.map((message) => [
      message.id,
      message.reason === undefined ? message.state : `${message.state} (${message.reason})`,
      message.kind,
      message.from ?? 'outside',
      ago(Date.parse(message.createdAt), now),
      preview(message),
    ]),
  )
}

function preview({ body }: MessageView): string {
  const words = [body['text'], body['summary'], body['error'], body['state']].find((each) => typeof each === 'string')
  return visible(words ?? '')
    .replaceAll('\n', ' ')
    .slice(0, PREVIEW_CHARACTERS)
}
