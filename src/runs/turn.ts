import type { NewAction } from '../actions/propose.ts'
import { proposeAction } from '../actions/propose.ts'
import type { Action } from '../actions/action.ts'
import { record } from '../events/event.ts'
import { sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { appendEntry } from '../threads/conversation.ts'
import { consumeMessages } from '../threads/message.ts'
import type { AttemptRef } from './attempt.ts'
import { runRow } from './run.ts'
import type { Run, Usage } from './run.ts'

/** One model call: what it was newly shown, what it said, what it wants done. */
export interface Turn {
  readonly generation: number
  readonly shown: readonly { readonly messageId: string; readonly text: string }[]
  readonly reply: { readonly text: string; readonly toolCalls: readonly unknown[] }
  readonly actions: readonly NewAction[]
  readonly usage: Usage
}

export type Recorded =
  | { readonly kind: 'recorded'; readonly run: Run; readonly actions: readonly Action[] }
  | { readonly kind: 'superseded' }

/**
 * Records a reply before anything of it is acted on, together with the messages that it answers: they are consumed by
 * this turn and by no other.
 */
export function* recordTurn(attempt: AttemptRef, turn: Turn): Transition<Recorded> {
  const run = yield* spend(attempt, turn.usage)
  if (run === undefined) return { kind: 'superseded' }
  const place = { threadId: run.threadId, generation: turn.generation, runId: run.id }
  for (const { text, messageId } of turn.shown)
    yield* appendEntry({ ...place, kind: 'user', body: { text, messageId } })
  yield* consumeMessages(
    turn.shown.map(({ messageId }) => messageId),
    run.id,
    run.threadId,
  )
  const entry = yield* appendEntry({ ...place, kind: 'assistant', body: { ...turn.reply }, usage: turn.usage })
  const actions: Action[] = []
  for (const [ordinal, action] of turn.actions.entries()) {
    actions.push(yield* proposeAction(action, { runId: run.id, threadId: run.threadId, entrySeq: entry.seq, ordinal }))
  }
  yield* record({
    type: 'step.recorded',
    threadId: run.threadId,
    runId: run.id,
    data: { actions: actions.length, ...turn.usage },
  })
  return { kind: 'recorded', run, actions }
}

/** Adds to the bill, if the claim still holds. */
function* spend(attempt: AttemptRef, usage: Usage): Transition<Run | undefined> {
  return yield* first(
    runRow,
    sql`update runs set input_tokens = input_tokens + ${usage.inputTokens}, output_tokens = output_tokens + ${usage.outputTokens},
        cost_microusd = cost_microusd + ${usage.costMicrousd}
      where id = ${attempt.runId} and fence = ${attempt.fence} and state = 'running' returning *`,
  )
}
