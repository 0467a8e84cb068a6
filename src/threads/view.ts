import { iso } from '../base/clock.ts'
import type { Message } from './message.ts'
import type { Thread } from './thread.ts'

/** The public JSON form of a thread. */
export function viewThread({ id, agent, state, generation, parentId, createdAt }: Thread) {
  return {
    id,
    agent,
    state,
    generation,
    ...(parentId === null ? {} : { parentId }),
    createdAt: iso(createdAt),
  }
}

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
    createdAt: iso(createdAt),
    ...(dueAt === null ? {} : { dueAt: iso(dueAt) }),
    ...(consumedByRun === null ? {} : { consumedByRun }),
  }
}
