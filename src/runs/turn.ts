import type { NewAction } from '../actions/propose.ts'
import { proposeAction } from '../actions/propose.ts'
import type { Action } from '../actions/action.ts'
import { record } from '../events/event.ts'
import { sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { appendEntry, lastSummaryOf } from '../threads/conversation.ts'
import type { Entry } from '../threads/conversation.ts'
import { consumeMessages } from '../threads/consume.ts'
import { areStillPending, wereTakenBy } from '../threads/message.ts'
import type { AttemptRef } from './attempt.ts'
import { findRun, runRow } from './run.ts'
import type { Run, Usage } from './run.ts'

/** One model call: what it was newly shown, what it said, what it wants done. */
export interface Turn {
  readonly generation: number
  readonly shown: readonly { readonly messageId: string; readonly text: string }[]
  /** With whatever else is to be known of it when the run goes on elsewhere. */
  readonly reply: { readonly text: string; readonly toolCalls: readonly unknown[] } & Readonly<Record<string, unknown>>
  readonly actions: readonly NewAction[]
  /** What the model is told about this reply: that it was cut off, or empty. */
  readonly note?: string
  readonly usage: Usage
}

export type Recorded =
  | {
      readonly kind: 'recorded'
      readonly run: Run
      readonly entries: readonly Entry[]
      readonly actions: readonly Action[]
    }
  /** What it answers has been taken by somebody else. */
  | { readonly kind: 'changed'; readonly run: Run }
  | { readonly kind: 'superseded' }

/**
 * Records a reply before anything of it is acted on, together with the messages that it answers: they are consumed by
 * this turn and by no other.
 */
export function* recordTurn(attempt: AttemptRef, turn: Turn): Transition<Recorded> {
  const run = yield* spend(attempt, turn.usage)
  if (run === undefined) return { kind: 'superseded' }
  const shown = turn.shown.map(({ messageId }) => messageId)
  // Taken by somebody else while the model was asked: this reply would make it take effect twice. It is paid for all the same.
  if (!(yield* areStillPending(shown))) {
    if (yield* wereTakenBy(shown, run.id)) throw new Error(`this turn of ${run.id} is recorded already`)
    return { kind: 'changed', run }
  }
  const place = { threadId: run.threadId, generation: turn.generation, runId: run.id }
  const entries: Entry[] = []
  for (const { text, messageId } of turn.shown)
    entries.push(yield* appendEntry({ ...place, kind: 'user', body: { text, messageId } }))
  yield* consumeMessages(shown, run.id, run.threadId)
  const entry = yield* appendEntry({ ...place, kind: 'assistant', body: { ...turn.reply }, usage: turn.usage })
  entries.push(entry)
  if (turn.note !== undefined) entries.push(yield* appendEntry({ ...place, kind: 'user', body: { text: turn.note } }))
  const actions: Action[] = []
  for (const [ordinal, action] of turn.actions.entries()) {
    actions.push(yield* proposeAction(action, { runId: run.id, threadId: run.threadId, entrySeq: entry.seq, ordinal }))
  }
  yield* record({
    type: 'step.recorded',
    threadId: run.threadId,
    runId: run.id,
    data: { entry: entry.seq, actions: actions.length, ...turn.usage },
  })
  return { kind: 'recorded', run, entries, actions }
}

/** What stands for the older part of a conversation from now on. */
export interface Summary {
  /** Chosen by the caller: the same summary is recorded once. */
  readonly id: string
  readonly generation: number
  readonly body: Readonly<Record<string, unknown>>
  /** What making it cost. */
  readonly usage: Usage
}

export type Summarised = { readonly kind: 'recorded'; readonly run: Run } | { readonly kind: 'superseded' }

/** Compaction is a step like any other: on the bill, in the conversation, by the run's current attempt alone. */
export function* recordSummary(attempt: AttemptRef, summary: Summary): Transition<Summarised> {
  const { id, generation, body, usage } = summary
  const found = yield* findRun.single(attempt.runId)
  const last = found === undefined ? undefined : yield* lastSummaryOf.single(found.threadId, generation)
  if (found !== undefined && last?.body.id === id) return { kind: 'recorded', run: found }
  const run = yield* spend(attempt, usage)
  if (run === undefined) return { kind: 'superseded' }
  const { threadId } = run
  const place = { threadId, generation, runId: run.id }
  const entry = yield* appendEntry({ ...place, kind: 'summary', body: { ...body, id }, usage })
  yield* record({ type: 'step.compacted', threadId, runId: run.id, data: { entry: entry.seq, ...usage } })
  return { kind: 'recorded', run }
}

/** Adds to the bill, if the claim still holds. */
export function* spend(attempt: AttemptRef, usage: Usage): Transition<Run | undefined> {
  return yield* first(
    runRow,
    sql`update runs set input_tokens = input_tokens + ${usage.inputTokens}, output_tokens = output_tokens + ${usage.outputTokens},
        cost_microusd = cost_microusd + ${usage.costMicrousd}
      where id = ${attempt.runId} and fence = ${attempt.fence} and state = 'running' returning *`,
  )
}
