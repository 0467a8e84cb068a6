import type { Transition } from '../store/transition.ts'
import { buryMessage } from '../threads/dead-letter.ts'
import { findMessage, pendingMessages } from '../threads/message.ts'
import { cancelRun } from './cancel.ts'
import type { CancelRequest } from './cancel.ts'
import { holdThread } from '../threads/thread.ts'
import { queuedRunOf } from './run.ts'

export type Withdrawn =
  /** The run that took it, or that was queued for it alone, is cancelled. */
  | { readonly kind: 'run-cancelled' }
  /** Nobody had taken it, and nobody will. */
  | { readonly kind: 'withdrawn' }
  | { readonly kind: 'too-late' }

/** Takes a message back. Whatever else its thread is at is not touched: it was not asked for by this one. */
export function* withdrawMessage(messageId: string, request: CancelRequest): Transition<Withdrawn> {
  const found = yield* findMessage.single(messageId)
  if (found === undefined) return { kind: 'too-late' }
  yield* holdThread(found.threadId)
  const message = (yield* findMessage.single(messageId)) ?? found
  if (message.consumedByRun !== null) {
    const cancelled = yield* cancelRun(message.consumedByRun, request)
    return { kind: cancelled.kind === 'already-terminal' ? 'too-late' : 'run-cancelled' }
  }
  if (message.state !== 'pending') return { kind: 'too-late' }
  const others = (yield* pendingMessages.single(message.threadId, 2)).filter(({ id }) => id !== messageId)
  const queued = yield* queuedRunOf.single(message.threadId)
  if (others.length === 0 && queued !== undefined) {
    yield* cancelRun(queued.id, request)
    return { kind: 'run-cancelled' }
  }
  yield* buryMessage(message, 'withdrawn')
  return { kind: 'withdrawn' }
}
