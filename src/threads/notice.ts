import type { MessageId, ThreadId } from '../base/ids.ts'
import type { Transition } from '../store/transition.ts'
import { resumeWaiting } from '../runs/park.ts'
import { putMessage } from './put.ts'
import { holdThread } from './thread.ts'

/** Tells a thread something of ours, once by its key. False if there is no such thread (any more). */
export function* tellThread(threadId: ThreadId, key: string, text: string): Transition<boolean> {
  // Held first: it is not removed, and its run does not park, between this look and what follows from it.
  const thread = yield* holdThread(threadId)
  if (thread === undefined || thread.state === 'removed') return false
  const id = `msg_${key.replaceAll(':', '_')}` as MessageId
  const put = yield* putMessage({ id, threadId, kind: 'notice', key, body: { text } }, thread)
  // It is no news of a child: a run that waits for its children goes on, and hears of it.
  if (put !== undefined) yield* resumeWaiting(threadId)
  return true
}
