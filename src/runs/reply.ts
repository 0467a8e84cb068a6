import { record } from '../events/event.ts'
import { row, text } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { first, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { consumeMessages } from '../threads/consume.ts'
import { areStillPending } from '../threads/message.ts'
import type { Usage } from './run.ts'
import type { StepsRef } from './step.ts'
import { spend } from './turn.ts'

/** What a model answered to a loop that is not ours, as a step of the function in which that runs. */
export interface Reply {
  readonly step: string
  /** As JSON. */
  readonly result: string
  /** The messages that it was shown. */
  readonly taken: readonly string[]
  readonly usage: Usage
}

export type ReplyRecorded =
  | { readonly kind: 'recorded' }
  /** Somebody else has taken one of the messages: this answer would make it take effect twice. It is paid for all the same. */
  | { readonly kind: 'changed' }
  | { readonly kind: 'superseded' }

const stepRow = row({ name: text() })

/** Recorded before anything of it is acted on, together with the messages that it answers: they are consumed by it alone. */
export function* recordReply(ref: StepsRef, { step, result, taken, usage }: Reply): Transition<ReplyRecorded> {
  const { runSeq, runId } = ref
  const known = yield* first(
    stepRow,
    sql`select name from steps where run_seq = ${runSeq} and name = ${step} and state = 'done'`,
  )
  // Its own doing, whose answer was lost.
  if (known !== undefined) return { kind: 'recorded' }
  const billed = yield* spend(ref, usage)
  if (billed === undefined) return { kind: 'superseded' }
  if (!(yield* areStillPending(taken))) return { kind: 'changed' }
  yield* consumeMessages(taken, runId, billed.threadId)
  yield* run(sql`insert into steps (run_seq, name, effect, state, tries, result, started_at, settled_at)
    values (${runSeq}, ${step}, 'read', 'done', 1, ${result}, ${now}, ${now})`)
  yield* record({ type: 'step.recorded', runId, data: { step, state: 'done', ...usage } })
  return { kind: 'recorded' }
}
