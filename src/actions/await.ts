import type { ActionId } from '../base/ids.ts'
import { DECISION, holdRun, parkRun } from '../runs/park.ts'
import type { Parked } from '../runs/park.ts'
import type { AttemptRef } from '../runs/attempt.ts'
import { integer, row } from '../store/row.ts'
import { literals, sql } from '../store/sql.ts'
import { one } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import type { Action } from './action.ts'

/** A person must say something first: whether it may be done, or whether it was. */
export const isUndecided = ({ state, givenUp }: Action): boolean =>
  state === 'waiting' || (state === 'in_doubt' && givenUp === null)

/**
 * Parks a run until one of these is decided; unless that has happened since it looked. A doubt may be one that an earlier run on
 * the thread left behind: whoever decides holds the row of that run.
 */
export function* parkForDecision(
  attempt: AttemptRef,
  actions: readonly Pick<Action, 'id' | 'runId'>[],
): Transition<Parked | { readonly kind: 'changed' }> {
  const runs = new Set([attempt.runId, ...actions.map(({ runId }) => runId)])
  for (const runId of [...runs].toSorted()) yield* holdRun(runId)
  if (!(yield* allUndecided(actions.map(({ id }) => id)))) return { kind: 'changed' }
  return yield* parkRun(attempt, DECISION)
}

const countRow = row({ count: integer })

function* allUndecided(actions: readonly ActionId[]): Transition<boolean> {
  const { count } = yield* one(
    countRow,
    sql`select count(*) as count from actions
      where id in (${literals(actions)}) and (state = 'waiting' or (state = 'in_doubt' and given_up is null))`,
  )
  return count === actions.length
}
