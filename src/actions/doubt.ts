import { record } from '../events/event.ts'
import { holdRun, resumeDecided } from '../runs/park.ts'
import { findRun, isTerminal } from '../runs/run.ts'
import { lostOwners, stopWorker } from '../runs/worker.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { UNDECIDED, actionRow, findAction } from './action.ts'
import type { Action } from './action.ts'
import { besideIdentical, recordSettled } from './propose.ts'
import { followAction } from './step-doubt.ts'

/** What nobody knows about, oldest first. */
export const openDoubts = single((limit: number, after?: string) =>
  all(
    actionRow,
    sql`select * from actions where ${UNDECIDED} and state = 'in_doubt' and given_up is null and ${
      after === undefined
        ? sql`1 = 1`
        : sql`(created_at, entry_seq, ordinal) > (select created_at, entry_seq, ordinal from actions where id = ${after})`
    } order by created_at, entry_seq, ordinal limit ${limit}`,
  ),
)

/** What a person says about an action in doubt, with who and why. */
export type Resolution = { readonly by: string; readonly why?: string } & (
  | { readonly kind: 'happened'; readonly result?: unknown }
  | { readonly kind: 'did-not-happen' }
  /** It did not happen, and is to be done now. `deadHost`: who had begun it there is dead, although nobody can look. */
  | { readonly kind: 'run-again'; readonly deadHost?: string }
  /** Nobody will ever know: the agent is told so and goes on. */
  | { readonly kind: 'give-up' }
)

export type Resolved =
  | { readonly kind: 'resolved'; readonly action: Action }
  | { readonly kind: 'not-in-doubt'; readonly action: Action }
  /** Its run has ended: nobody is there to do it again. */
  | { readonly kind: 'run-ended'; readonly action: Action }
  /** A command-line agent made the call, while we watched: it is not ours to make. */
  | { readonly kind: 'observed'; readonly client: string }
  /** Nobody on that machine had begun it; these had. */
  | { readonly kind: 'other-hosts'; readonly hosts: readonly string[] }
  | { readonly kind: 'unknown' }

/** A person settles a doubt. Its run, if it waits for that, goes on at once. */
export function* resolveDoubt(id: Action['id'], resolution: Resolution): Transition<Resolved> {
  const action = yield* findAction.single(id)
  if (action === undefined) return { kind: 'unknown' }
  if (action.state !== 'in_doubt') return { kind: 'not-in-doubt', action }
  yield* holdRun(action.runId)
  const run = yield* findRun.single(action.runId)
  if (resolution.kind === 'run-again' && run?.request.kind === 'observed')
    return { kind: 'observed', client: run.request.client }
  if (resolution.kind === 'run-again' && (run === undefined || isTerminal(run.state)))
    return { kind: 'run-ended', action }
  const deadHost = resolution.kind === 'run-again' ? resolution.deadHost : undefined
  const lost = deadHost === undefined ? [] : yield* lostOwners.single(action.runId)
  const dead = lost.filter(({ identity }) => identity.host === deadHost)
  if (deadHost !== undefined && dead.length === 0)
    return { kind: 'other-hosts', hosts: [...new Set(lost.map(({ identity }) => identity.host))] }
  const resolved = yield* write(action, resolution)
  if (resolved === undefined) return { kind: 'not-in-doubt', action: (yield* findAction.single(id)) ?? action }
  const { threadId, runId } = resolved
  const why = resolution.why === undefined ? {} : { why: resolution.why }
  for (const { id: worker } of dead) yield* stopWorker.single(worker)
  const said = { ...why, ...(deadHost === undefined ? {} : { deadHost }) }
  const data = { actionId: id, resolution: resolution.kind, by: resolution.by, ...said }
  yield* record({ type: 'doubt.resolved', threadId, runId, data })
  if (resolved.state === 'done' || resolved.state === 'failed') yield* recordSettled(resolved)
  yield* followAction(resolved)
  yield* resumeDecided(runId)
  return { kind: 'resolved', action: resolved }
}

function* write(action: Action, resolution: Resolution): Transition<Action | undefined> {
  const { by, why } = resolution
  const evidence = `${by}${why === undefined ? '' : `: ${why}`}`
  const changes = {
    happened: sql`state = 'done', error = null, settled_by = ${evidence}, settled_at = ${now},
      result = ${JSON.stringify(resolution.kind === 'happened' ? (resolution.result ?? null) : null)}`,
    'did-not-happen': sql`state = 'failed', settled_by = ${evidence}, settled_at = ${now},
      error = ${`it did not happen, as ${evidence} says`}`,
    'run-again': sql`state = 'approved', settled_by = null, settled_at = null, error = null`,
    'give-up': sql`given_up = ${evidence}`,
  }[resolution.kind]
  return yield* first(
    actionRow,
    sql`update actions set ${changes} where id = ${action.id} and state = 'in_doubt' and tries = ${action.tries}
      and given_up is null returning *`,
  )
}

/**
 * It was to be done again, and it turned out that somebody who had begun it could still do it: the doubt stays, unless that one has said
 * meanwhile what became of it.
 */
export function* doubtAgain(action: Action, error: string): Transition<Action> {
  const { id, tries } = action
  const doubtful = yield* first(
    actionRow,
    sql`update actions set state = 'in_doubt', error = ${error}, settled_by = 'nobody', settled_at = ${now},
        again = ${besideIdentical()}
      where id = ${id} and state = 'approved' and tries = ${tries} and tries > 0 returning *`,
  )
  if (doubtful === undefined) return (yield* findAction.single(id)) ?? action
  yield* recordSettled(doubtful)
  return doubtful
}
