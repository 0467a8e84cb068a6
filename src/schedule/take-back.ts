import type { RunId, ThreadId } from '../base/ids.ts'
import { cancelRun } from '../runs/cancel.ts'
import { findRun } from '../runs/run.ts'
import { row, text } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { buryMessage } from '../threads/dead-letter.ts'
import { findMessage, pendingMessages } from '../threads/message.ts'
import { findOccurrence } from './occurrence.ts'
import type { Occurrence } from './occurrence.ts'
import { settleOccurrence } from './settle.ts'

/**
 * Ends an occurrence before its own end, as far as that can be: its run is cancelled, a message that nobody has taken is
 * taken back. What somebody is reading at this moment, and a run that also does what others asked for, go on.
 */
export function* takeBack(id: Occurrence['id'], by: string, reason: string): Transition<void> {
  const before = yield* findOccurrence.single(id)
  const message = before?.messageId == null ? undefined : yield* findMessage.single(before.messageId)
  if (message?.state === 'pending') {
    yield* buryMessage(message, 'withdrawn', reason)
    yield* endIdleRun(message.threadId, by, reason)
  }
  // Somebody may have taken it in this very moment, and then there is a run.
  const open = yield* findOccurrence.single(id)
  if (open?.state === 'due') return yield* settleOccurrence(open, { kind: 'skipped', reason })
  if (open?.state !== 'dispatched' || open.runId === null) return
  // A client's own turn is not ours to cancel: it would go on, and be called cancelled.
  if ((yield* findRun.single(open.runId))?.request.kind === 'observed') return
  if (!(yield* servesOthers(open))) yield* cancelRun(open.runId, { by, reason })
}

const idRow = row({ id: text() })
const queuedRow = row({ id: text<RunId>() })

/** A run that was to take it and finds nothing else has nothing to do, and nothing to tell anybody. */
function* endIdleRun(threadId: ThreadId, by: string, reason: string): Transition<void> {
  if ((yield* pendingMessages.single(threadId, 1)).length > 0) return
  const idle = yield* first(
    queuedRow,
    sql`update runs set notify = 0 where thread_id = ${threadId} and kind = 'agent' and state = 'queued' and started_at is null
      returning id`,
  )
  if (idle !== undefined) yield* cancelRun(idle.id, { by, reason })
}

function* servesOthers({ runId, threadId, messageId }: Occurrence): Transition<boolean> {
  const other = yield* first(
    idRow,
    sql`select id from messages where thread_id = ${threadId} and consumed_by_run = ${runId} and id <> ${messageId ?? ''}
      and kind in ('prompt', 'followup') limit 1`,
  )
  return other !== undefined
}
