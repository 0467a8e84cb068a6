import type { Message } from './message.ts'

/** The public JSON form of a message. */
export function viewMessage(message: Message) {
  const { id, threadId, fromThread, kind, key, state, reason, attempts, body, createdAt, dueAt, consumedByRun } =
    message
  return {
    id,
    threadId,
    from: fromThread,
    kind,
    key,
    state,
    ...(reason === null ? {} : { reason }),
    attempts,
    body,
    createdAt: new Date(createdAt).toISOString(),
    ...(dueAt === null ? {} : { dueAt: new Date(dueAt).toISOString() }),
    ...(consumedByRun === null ? {} : { consumedByRun }),
  }
}
