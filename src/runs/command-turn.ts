import { canonicalJson } from '../base/canonical-json.ts'
import { record } from '../events/event.ts'
import { sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { appendEntry } from '../threads/conversation.ts'
import { consumeMessages } from '../threads/message.ts'
import { findThread } from '../threads/thread.ts'
import type { AttemptRef } from './attempt.ts'
import { runRow } from './run.ts'
import type { CommandRequest, Run } from './run.ts'

export type Shown = readonly { readonly messageId: string; readonly text: string }[]

/**
 * The turn of an agent that is a command: the messages that it is shown are consumed, and from then on the run is that
 * command, with everything that holds for one. Undefined if the claim is lost.
 */
export function* takeForCommand(
  attempt: AttemptRef,
  shown: Shown,
  request: CommandRequest,
): Transition<Run | undefined> {
  const taken = yield* first(
    runRow,
    sql`update runs set kind = 'command', request = ${canonicalJson({ ...request, isTurn: true })}
      where id = ${attempt.runId} and fence = ${attempt.fence} and state = 'running' and kind = 'agent' returning *`,
  )
  if (taken === undefined) return yield* takenBefore(attempt)
  const generation = (yield* findThread.single(taken.threadId))?.generation ?? 1
  for (const { text, messageId } of shown) {
    yield* appendEntry({
      threadId: taken.threadId,
      generation,
      runId: taken.id,
      kind: 'user',
      body: { text, messageId },
    })
  }
  const ids = shown.map(({ messageId }) => messageId)
  yield* consumeMessages(ids, taken.id, taken.threadId)
  yield* record({ type: 'step.recorded', threadId: taken.threadId, runId: taken.id, data: { actions: 0 } })
  return taken
}

/** Its own doing, whose answer was lost. */
function* takenBefore(attempt: AttemptRef): Transition<Run | undefined> {
  return yield* first(
    runRow,
    sql`select * from runs where id = ${attempt.runId} and fence = ${attempt.fence} and state = 'running' and kind = 'command'`,
  )
}

/** What the command printed is what the agent said. */
export function* recordCommandReply(ended: Run, text: string): Transition<void> {
  const generation = (yield* findThread.single(ended.threadId))?.generation ?? 1
  const place = { threadId: ended.threadId, generation, runId: ended.id }
  yield* appendEntry({ ...place, kind: 'assistant', body: { text, toolCalls: [] } })
}
