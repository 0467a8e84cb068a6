import { findRun } from '../runs/run.ts'
import { holdRun } from '../runs/park.ts'
import type { StepsRef } from '../runs/step.ts'
import { integer, row } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { one } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findAction } from './action.ts'
import type { Action } from './action.ts'
import { proposeAction } from './propose.ts'
import type { NewAction } from './propose.ts'

export type ProposedOwn =
  | { readonly kind: 'proposed'; readonly action: Action }
  | { readonly kind: 'refused'; readonly why: 'cancel-requested' | 'superseded' }

const countRow = row({ count: integer })

/**
 * A call of a model that a loop inside of a function asks. It is known by its id, which follows from the reply that wants it:
 * whoever comes to it again finds what became of it. One that no reply wants, by hand, has no place in a conversation: the number
 * of its run stands for one.
 */
export function* proposeOwn(ref: StepsRef, action: NewAction, entry?: number): Transition<ProposedOwn> {
  const known = yield* findAction.single(action.id)
  if (known !== undefined) return { kind: 'proposed', action: known }
  yield* holdRun(ref.runId)
  const found = yield* findRun.single(ref.runId)
  if (found?.fence !== ref.fence || found.state !== 'running') return { kind: 'refused', why: 'superseded' }
  if (found.cancelRequestedAt !== null) return { kind: 'refused', why: 'cancel-requested' }
  const entrySeq = entry ?? -ref.runSeq
  const { count: ordinal } = yield* one(
    countRow,
    sql`select count(*) as count from actions where entry_seq = ${entrySeq}`,
  )
  const place = { runId: ref.runId, threadId: found.threadId, entrySeq, ordinal }
  return { kind: 'proposed', action: yield* proposeAction(action, place) }
}
