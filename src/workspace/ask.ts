import type { RunId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import type { Sql } from '../store/sql.ts'
import { now, sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findWorkspace, workspaceRow } from './workspace.ts'
import type { Workspace } from './workspace.ts'

/** What a person says about a workspace. It is written down here; whoever settles workspaces on that machine does it. */
export type Asked =
  | { readonly kind: 'asked'; readonly workspace: Workspace }
  /** Not in this state; `why` is a sentence for the person. */
  | { readonly kind: 'refused'; readonly workspace: Workspace; readonly why: string }
  | { readonly kind: 'unknown-workspace' }

export interface Asker {
  readonly by: string
}

/** Puts what waits on top of its branch once more, checks it there if that is another tree, and lands it. */
export function* askLand(runId: RunId, { by }: Asker): Transition<Asked> {
  const change = sql`wish = 'land', wish_by = ${by}, error = null`
  return yield* ask(runId, change, sql`state = 'ready'`, { wish: 'land', by }, 'only work that is ready can be landed')
}

/** Keeps the work under a branch of that name, for ever: what waits, what was discarded, what is in quarantine. */
export function* askKeep(runId: RunId, { by }: Asker, branch: string): Transition<Asked> {
  const change = sql`wish = 'keep', wish_by = ${by}, kept_as = ${branch}, error = null`
  const from = sql`state in ('ready', 'discarded', 'quarantined') and swept_at is null`
  const why = 'only work that is ready, discarded or in quarantine, and still there, can be kept'
  return yield* ask(runId, change, from, { wish: 'keep', by, branch }, why)
}

/** Discards what waits, is in quarantine or cannot end its landing; it stays recoverable for as long as any other. */
export function* askDiscard(runId: RunId, { by }: Asker): Transition<Asked> {
  const change = sql`state = 'discarding', reason = ${`discarded by ${by}`}, wish = null, wish_by = null, error = null,
    came_from = null, landing = 0, settler = null, settle_until = null, settled_at = null`
  const from = sql`(state in ('ready', 'quarantined') or state = 'decided' and error is not null
    and (settler is null or settle_until <= ${now}))`
  const why =
    'only work that is ready, in quarantine or stuck in its landing can be discarded; what is under way ends with its run'
  return yield* ask(runId, change, from, { wish: 'discard', by }, why)
}

/** Tries once more what ended in quarantine: the landing if its run had succeeded, otherwise the discard. */
export function* askRetry(runId: RunId, { by }: Asker): Transition<Asked> {
  const change = sql`state = case when came_from = 'decided' then 'decided' else 'discarding' end,
    reason = ${`tried again by ${by}`}, came_from = null, error = null, settler = null, settle_until = null, settled_at = null`
  const why = 'only what is in quarantine can be tried again; work that is ready is landed with `land`'
  return yield* ask(runId, change, sql`state = 'quarantined'`, { wish: 'retry', by }, why)
}

/** A settler that is at it is not interrupted: what it holds it finishes, and then looks again. What was decided has its wish until it has landed. */
function* ask(
  runId: RunId,
  change: Sql,
  from: Sql,
  data: Readonly<Record<string, unknown>>,
  why: string,
): Transition<Asked> {
  const asked = yield* first(
    workspaceRow,
    sql`update workspaces set ${change} where run_id = ${runId} and mode = 'transaction'
      and (wish is null or state = 'decided') and ${from} returning *`,
  )
  if (asked === undefined) {
    const workspace = yield* findWorkspace.single(runId)
    if (workspace === undefined) return { kind: 'unknown-workspace' }
    return { kind: 'refused', workspace, why: `${why}; this is ${said(workspace)}` }
  }
  yield* record({ type: 'workspace.asked', threadId: asked.threadId, runId, data })
  return { kind: 'asked', workspace: asked }
}

function said({ mode, state, wish, sweptAt }: Workspace): string {
  if (mode === 'shadow') return 'a shadow, which changes nothing'
  if (wish !== null) return `${state}, and somebody has asked to ${wish} it already`
  return sweptAt === null ? state : `${state}, and its time is over`
}
