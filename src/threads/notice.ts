import type { ThreadId } from '../base/ids.ts'
import { now, sql } from '../store/sql.ts'
import { run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findThread } from './thread.ts'

/** Tells a thread something of ours, once by its key. False if there is no such thread (any more). */
export function* tellThread(threadId: ThreadId, key: string, text: string): Transition<boolean> {
  const thread = yield* findThread.single(threadId)
  if (thread === undefined || thread.state === 'removed') return false
  yield* run(sql`insert into messages (id, thread_id, generation, from_thread, kind, key, state, body, created_at)
    values (${`msg_${key.replaceAll(':', '_')}`}, ${threadId}, ${thread.generation}, null, 'notice', ${key}, 'pending', ${JSON.stringify({ text })}, ${now})
    on conflict do nothing`)
  return true
}
