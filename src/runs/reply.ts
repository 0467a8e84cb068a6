import { record } from '../events/event.ts'
import { row, text } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { first, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { consumeMessages } from '../threads/consume.ts'
import { appendEntry, entriesOfRun } from '../threads/conversation.ts'
import type { Entry } from '../threads/conversation.ts'
import { areStillPending } from '../threads/message.ts'
import { findThread } from '../threads/thread.ts'
import type { Run, Usage } from './run.ts'
import type { StepsRef } from './step.ts'
import { spend } from './turn.ts'

/** What a model answered to a loop that is not ours, as a step of the function in which that runs. */
export interface Reply {
  readonly step: string
  /** As JSON. */
  readonly result: string
  /** What its program asked, in words; empty where that went on from its own calls. */
  readonly asked: string
  /** The messages that it was shown besides. */
  readonly shown: readonly { readonly messageId: string; readonly text: string }[]
  readonly said: { readonly text: string; readonly toolCalls: readonly unknown[] }
  readonly usage: Usage
}

export type ReplyRecorded =
  /** `entrySeq`: its place in the conversation, if it has one. */
  | { readonly kind: 'recorded'; readonly entrySeq?: number }
  /** Somebody else has taken one of the messages: this answer would make it take effect twice. It is paid for all the same. */
  | { readonly kind: 'changed' }
  | { readonly kind: 'superseded' }

const stepRow = row({ name: text() })

/** Recorded before anything of it is acted on, together with the messages that it answers: they are consumed by it alone. */
export function* recordReply(ref: StepsRef, reply: Reply): Transition<ReplyRecorded> {
  const { runSeq, runId } = ref
  const { step, result, usage } = reply
  const taken = reply.shown.map(({ messageId }) => messageId)
  const known = yield* first(
    stepRow,
    sql`select name from steps where run_seq = ${runSeq} and name = ${step} and state = 'done'`,
  )
  // Its own doing, whose answer was lost.
  if (known !== undefined) return recordedAt(yield* placeOf(ref, step))
  const billed = yield* spend(ref, usage)
  if (billed === undefined) return { kind: 'superseded' }
  if (!(yield* areStillPending(taken))) return { kind: 'changed' }
  yield* consumeMessages(taken, runId, billed.threadId)
  yield* run(sql`insert into steps (run_seq, name, effect, state, tries, result, started_at, settled_at)
    values (${runSeq}, ${step}, 'read', 'done', 1, ${result}, ${now}, ${now})`)
  const { seq: entry, threadId } = yield* tellReply(billed, reply)
  yield* record({ type: 'step.recorded', threadId, runId, data: { step, state: 'done', entry, ...usage } })
  return recordedAt(entry)
}

const recordedAt = (entrySeq: number | undefined): ReplyRecorded => ({
  kind: 'recorded',
  ...(entrySeq === undefined ? {} : { entrySeq }),
})

/** Undefined: a worker of an older version recorded it, which did not write its words into the thread. */
function* placeOf({ runId }: StepsRef, step: string): Transition<number | undefined> {
  return (yield* entriesOfRun.single(runId)).find(({ body }) => body['step'] === step)?.seq
}

/** For people: what was asked and said stands in the thread, as that of an agent of ours. The loop goes on from the step alone. */
function* tellReply({ id: runId, threadId }: Run, reply: Reply): Transition<Entry> {
  const { step, asked, shown, said, usage } = reply
  const generation = (yield* findThread.single(threadId))?.generation ?? 1
  const place = { threadId, generation, runId }
  if (asked !== '') yield* appendEntry({ ...place, kind: 'user', body: { text: asked, from: 'its program' } })
  for (const { text: words, messageId } of shown)
    yield* appendEntry({ ...place, kind: 'user', body: { text: words, messageId } })
  return yield* appendEntry({ ...place, kind: 'assistant', body: { ...said, step }, usage })
}
