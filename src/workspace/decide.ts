import { invariant } from '../base/errors.ts'
import type { Run } from '../runs/run.ts'
import { now, sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { say } from './prepare.ts'
import { findWorkspace, workspaceRow } from './workspace.ts'
import type { Workspace } from './workspace.ts'

/**
 * What the end of a run means for its files: a part of the transaction that ends it, so that nobody ever sees one without
 * the other. Success lands what was checked; any other end discards; what is only watched is looked at afterwards.
 */
export function* decideWorkspace(ended: Run): Transition<void> {
  if (ended.workspace === 'shadow') return yield* beginObserving(ended)
  const decided = ended.state === 'succeeded' ? yield* decideLanding(ended) : yield* beginDiscard(ended)
  if (decided === undefined) return
  yield* say(`workspace.${decided.state as 'decided' | 'discarding'}`, decided, {
    ...(decided.sha === null ? {} : { sha: decided.sha }),
    ...(decided.reason === null ? {} : { reason: decided.reason }),
  })
}

function* decideLanding(ended: Run): Transition<Workspace | undefined> {
  const decided = yield* first(
    workspaceRow,
    sql`update workspaces set state = 'decided', decided_at = ${now}
      where run_id = ${ended.id} and state = 'checked' and passed = 1 and landing = 1 returning *`,
  )
  if (decided !== undefined) return decided
  // A run that ended before anything was opened has no files to speak of. Any other must not end so.
  const found = yield* findWorkspace.single(ended.id)
  invariant(found === undefined, `run ${ended.id} succeeded, but its workspace is ${found?.state} and not checked`)
  return undefined
}

function* beginDiscard(ended: Run): Transition<Workspace | undefined> {
  const reason = ended.state === 'cancelled' ? 'its run was cancelled' : `its run failed (${ended.code ?? 'internal'})`
  return yield* first(
    workspaceRow,
    sql`update workspaces set state = 'discarding', reason = ${reason}, landing = 0, decided_at = ${now}
      where run_id = ${ended.id} and state in ('opened', 'active', 'prepared', 'checked') returning *`,
  )
}

function* beginObserving(ended: Run): Transition<void> {
  yield* first(
    workspaceRow,
    sql`update workspaces set state = 'observing', decided_at = ${now}
      where run_id = ${ended.id} and state in ('opened', 'active') returning *`,
  )
}
