import type { RunId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { leadsTo } from '../schedule/settle.ts'
import { oneOf, row } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { MESSAGE_KINDS } from './message.ts'

/** Shown to the model in the step that is being recorded: each takes effect in this one turn. */
export function* consumeMessages(ids: readonly string[], runId: RunId, threadId: ThreadId): Transition<void> {
  for (const id of ids) {
    const consumed = yield* first(
      kindRow,
      sql`update messages set state = 'consumed', consumed_by_run = ${runId}, settled_at = ${now}
        where id = ${id} and state in ('pending', 'leased') returning kind`,
    )
    if (consumed === undefined) continue
    yield* record({ type: 'message.consumed', threadId, runId, data: { messageId: id } })
    if (consumed.kind === 'followup') yield* leadsTo(id, runId)
  }
}

const kindRow = row({ kind: oneOf(MESSAGE_KINDS) })
