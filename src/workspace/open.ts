import { canonicalJson } from '../base/canonical-json.ts'
import { invariant } from '../base/errors.ts'
import type { RunId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import type { AttemptRef } from '../runs/attempt.ts'
import { nullable, integer, row, text } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { first, holding } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findWorkspace, workspaceRow } from './workspace.ts'
import type { CapturedCheck, Workspace, WorkspaceRequest } from './workspace.ts'

/** What a worker may do for its run: nobody else changes a workspace whose run goes on. */
export type Progress =
  | { readonly kind: 'done'; readonly workspace: Workspace }
  /** Another worker has the run, or it has ended. */
  | { readonly kind: 'superseded' }
  /** From here on it can only be discarded. */
  | { readonly kind: 'cancel-requested' }

/** Where everything will be, written down before any of it is touched. */
export interface Opening {
  readonly request: WorkspaceRequest
  readonly host: string
  readonly folder: string
  readonly repo: string
  readonly top: string
  readonly prefix: string
  readonly branch: string
  readonly base: string
  readonly validator?: CapturedCheck
}

/** The intent. A run has one workspace: what is written already is what counts. */
export function* openWorkspace(attempt: AttemptRef, opening: Opening): Transition<Progress> {
  const held = yield* holdClaim(attempt, sql`workspace = ${opening.request.mode}, host = ${opening.host}`)
  if (held.kind !== 'held') return held
  const { request, host, folder, repo, top, prefix, branch, base, validator } = opening
  const opened = yield* first(
    workspaceRow,
    sql`insert into workspaces (run_id, thread_id, agent, mode, state, request, host, folder, repo, top, prefix, branch, base,
        validator, opened_at)
      select r.id, r.thread_id, r.agent, ${request.mode}, 'opened', ${canonicalJson(request)}, ${host}, ${folder}, ${repo}, ${top},
        ${prefix}, ${branch}, ${base}, ${validator === undefined ? null : canonicalJson(validator)}, ${now}
      from runs r where r.id = ${attempt.runId}
      on conflict do nothing returning *`,
  )
  if (opened === undefined) return { kind: 'done', workspace: yield* theWorkspace(attempt.runId) }
  const data = { mode: opened.mode, base, branch, repository: top }
  yield* record({ type: 'workspace.opened', threadId: opened.threadId, runId: opened.runId, data })
  return { kind: 'done', workspace: opened }
}

/** The tree is there, whole: from here on the agent may be started. Of a shadow: this is what there was before. */
export function* activateWorkspace(attempt: AttemptRef, before: string | null = null): Transition<Progress> {
  return yield* progress(
    attempt,
    sql`state = 'active', opening = ${attempt.fence}, work = ${before}`,
    sql`state = 'opened'`,
  )
}

/** The agent goes on, and what was prepared of its work is not all of it any more. */
export function* resumeWorkspace(attempt: AttemptRef): Transition<Progress> {
  const back = sql`state = 'active', landing = 0, checked_on = null, sha = null, conflicts = '[]', check_mark = null,
    verdict = null, passed = 0`
  return yield* progress(attempt, back, sql`state in ('active', 'prepared', 'checked')`)
}

/** Its tree was gone, and is there again from the last checkpoint. */
export function* restoreWorkspace(attempt: AttemptRef): Transition<Progress> {
  return yield* progress(attempt, sql`opening = ${attempt.fence}`, sql`state = 'active'`)
}

/** A commit of what is there, under our ref: the run waits, and its tree may be gone when it goes on. */
export function* checkpointWorkspace(attempt: AttemptRef, work: string): Transition<Progress> {
  return yield* progress(attempt, sql`work = ${work}`, sql`state = 'active'`)
}

const claimRow = row({ id: text<RunId>(), cancelRequestedAt: nullable(integer) })

type HeldClaim = { readonly kind: 'held' } | Exclude<Progress, { kind: 'done' }>

/**
 * The run's row, held by its claim: a takeover or a cancel comes before or after, never in between. Everybody who wants both
 * rows takes this one first.
 */
export function* holdClaim(attempt: AttemptRef, change: Sql = sql`fence = fence`): Transition<HeldClaim> {
  const statement = first(
    claimRow,
    sql`update runs set ${change} where id = ${attempt.runId} and fence = ${attempt.fence} and state = 'running'
      returning id, cancel_requested_at`,
  )
  const held = yield* holding(`run:${attempt.runId}`, statement)
  if (held === undefined) return { kind: 'superseded' }
  return held.cancelRequestedAt === null ? { kind: 'held' } : { kind: 'cancel-requested' }
}

/** One step by the claim of the run. A workspace that is in none of these states was moved by somebody who has the run. */
export function* progress(attempt: AttemptRef, change: Sql, from: Sql): Transition<Progress> {
  const held = yield* holdClaim(attempt)
  if (held.kind !== 'held') return held
  const moved = yield* first(
    workspaceRow,
    sql`update workspaces set ${change} where run_id = ${attempt.runId} and ${from} returning *`,
  )
  return moved === undefined ? { kind: 'superseded' } : { kind: 'done', workspace: moved }
}

function* theWorkspace(runId: RunId): Transition<Workspace> {
  const found = yield* findWorkspace.single(runId)
  invariant(found !== undefined, `the workspace of ${runId} vanished inside a transaction`)
  return found
}
