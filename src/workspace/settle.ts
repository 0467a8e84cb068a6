import type { RunId, WorkerId } from '../base/ids.ts'
import type { OwnerIdentity } from '../runs/worker.ts'
import { integer, json, nullable, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { literals, now, sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { all, first, one, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { say } from './prepare.ts'
import type { Prepared } from './prepare.ts'
import { UNSETTLED, workspaceRow } from './workspace.ts'
import type { CheckResult, Workspace, WorkspaceState } from './workspace.ts'

/** Something is left to do: after the end of the run, or because a person asked for it. */
const OPEN = sql`(state in (${literals(UNSETTLED)}) or wish is not null)`

const unsettledRow = row({
  runId: text<RunId>(),
  repo: text(),
  settler: nullable(text<WorkerId>()),
  identity: nullable(json<OwnerIdentity>()),
  isDue: integer,
})
export type Unsettled = Decoded<typeof unsettledRow>

/** What is left to do on this machine, oldest first, and who is at it. */
export const unsettledOn = single((host: string, limit: number) =>
  all(
    unsettledRow,
    sql`select s.run_id, s.repo, s.settler, w.identity,
        case when s.settle_until is null or s.settle_until <= ${now} then 1 else 0 end as is_due
      from (select * from workspaces where host = ${host} and ${OPEN} order by seq limit ${limit}) s
      left join workers w on w.id = s.settler order by s.seq`,
  ),
)

export interface Settler {
  readonly workerId: WorkerId
  readonly leaseMs: number
  /** The one that was at it, proven dead: it is not waited for. */
  readonly dead?: WorkerId
}

/** One process at a time; what it does is guarded by git besides, should it come back after its time. */
export const claimSettling = single((runId: RunId, { workerId, leaseMs, dead }: Settler) =>
  first(
    workspaceRow,
    sql`update workspaces set settler = ${workerId}, settle_until = ${now} + ${leaseMs}
      where run_id = ${runId} and ${OPEN} and (settle_until is null or settle_until <= ${now} or settler = ${workerId}
        or settler = ${dead ?? null}) returning *`,
  ),
)

export const renewSettling = single((runId: RunId, { workerId, leaseMs }: Settler) =>
  run(sql`update workspaces set settle_until = ${now} + ${leaseMs} where run_id = ${runId} and settler = ${workerId}`),
)

/** It could not be done now: nothing was lost, and after a while somebody tries again. */
export const postponeSettling = single((runId: RunId, workerId: WorkerId, error: string, afterMs: number) =>
  run(sql`update workspaces set error = ${error}, settler = null, settle_until = ${now} + ${afterMs},
      landing = case when state = 'ready' then 0 else landing end
    where run_id = ${runId} and settler = ${workerId}`),
)

/** The lock for what is landed after its run: a person asked for it, or it was in quarantine. Undefined: another has it. */
export const takeLandingLate = single((runId: RunId, workerId: WorkerId) =>
  first(
    workspaceRow,
    sql`update workspaces set landing = 1 where run_id = ${runId} and settler = ${workerId} and state in ('decided', 'ready')
      and not exists (select 1 from workspaces other where other.host = workspaces.host and other.repo = workspaces.repo
        and other.landing = 1 and other.run_id <> workspaces.run_id) returning *`,
  ),
)

/** Put on top of the branch once more, and checked there: from here on it is redone like any other. */
export function* decideAgain(
  runId: RunId,
  workerId: WorkerId,
  again: { readonly checkedOn: string; readonly sha: string; readonly verdict: CheckResult },
): Transition<Workspace | undefined> {
  const { checkedOn, sha, verdict } = again
  const change = sql`state = 'decided', checked_on = ${checkedOn}, sha = ${sha}, verdict = ${JSON.stringify(verdict)}, conflicts = '[]',
    decided_at = ${now}`
  const from = sql`state = 'ready' and wish = 'land' and landing = 1`
  const decided = yield* first(workspaceRow, settled(runId, workerId, change, from))
  if (decided !== undefined) yield* say('workspace.decided', decided, { sha, by: decided.wishBy })
  return decided
}

const settled = (runId: RunId, workerId: WorkerId, change: Sql, from: Sql): Sql =>
  sql`update workspaces set ${change} where run_id = ${runId} and settler = ${workerId} and ${from} returning *`

type Settled = 'landed' | 'ready' | 'discarded' | 'kept' | 'quarantined' | 'would_land' | 'would_discard'

const OVER = sql`landing = 0, settler = null, settle_until = null, error = null, wish = null, settled_at = ${now}`

function* settle(
  runId: RunId,
  workerId: WorkerId,
  change: Sql,
  from: readonly WorkspaceState[],
): Transition<Workspace | undefined> {
  const done = yield* first(
    workspaceRow,
    settled(runId, workerId, sql`${change}, ${OVER}`, sql`state in (${literals(from)})`),
  )
  if (done === undefined) return undefined
  yield* say(`workspace.${done.state as Settled}`, done, {
    branch: done.branch,
    ...(done.sha === null ? {} : { sha: done.sha }),
    ...(done.reason === null ? {} : { reason: done.reason }),
    ...(done.keptAs === null ? {} : { keptAs: done.keptAs }),
  })
  return done
}

/** The branch has it. Its remains stay as long as discarded work does. */
export function* landedWorkspace(runId: RunId, workerId: WorkerId, note: string | null, keptMs: number) {
  const change = sql`state = 'landed', reason = ${note}, keep_until = ${now} + ${keptMs}`
  return yield* settle(runId, workerId, change, ['decided', 'discarding'])
}

/** It cannot land by itself, or not any more; nothing of the user's was touched. */
export function* readyWorkspace(runId: RunId, workerId: WorkerId, reason: string, conflicts: readonly string[] = []) {
  const change = sql`state = 'ready', reason = ${reason}, conflicts = ${JSON.stringify(conflicts)}`
  return yield* settle(runId, workerId, change, ['decided', 'ready'])
}

/**
 * `work` is where its content can be found until its time is over; undefined if that is still the commit from before, if any. `unseen`: in
 * which trees nobody could look, and what that means, which stays a part of the reason.
 */
export function* discardedWorkspace(
  runId: RunId,
  workerId: WorkerId,
  work: Prepared | undefined,
  keptMs: number,
  unseen: { readonly error: string; readonly why: string } | null = null,
) {
  const found =
    work === undefined
      ? sql`sha = null`
      : sql`work = ${work.work}, sha = null, changed = ${JSON.stringify(work.changed)}, changed_count = ${work.changedCount},
        lines_added = ${work.linesAdded}, lines_removed = ${work.linesRemoved}, left_out = ${JSON.stringify(work.leftOut)}, left_out_count = ${work.leftOutCount}`
  const reason = unseen === null ? sql`reason` : sql`coalesce(reason || '; ', '') || ${unseen.why}`
  const change = sql`state = 'discarded', ${found}, reason = ${reason}, keep_until = ${now} + ${keptMs}`
  const done = yield* settle(runId, workerId, change, ['discarding'])
  return done === undefined || unseen === null ? done : yield* trouble(done, unseen.error)
}

/** A branch of the user's has it, by a name that a person gave. */
export function* keptWorkspace(runId: RunId, workerId: WorkerId) {
  const before = sql`case when state = 'discarded' then coalesce(reason || '; ', '') else '' end`
  const change = sql`state = 'kept', reason = ${before} || 'kept by ' || wish_by, keep_until = ${now}`
  return yield* settle(runId, workerId, change, ['ready', 'discarded', 'quarantined'])
}

/** What a person asked for cannot be done; it is as it was. */
export function* refuseWish(runId: RunId, workerId: WorkerId, error: string): Transition<Workspace | undefined> {
  const change = sql`wish = null, wish_by = null, kept_as = null, landing = 0, settler = null, settle_until = null, error = ${error}`
  const refused = yield* first(workspaceRow, settled(runId, workerId, change, sql`wish is not null`))
  if (refused !== undefined) yield* say('workspace.refused', refused, { error })
  return refused
}

/** Nobody can say what happened to it: it stays as it is until a person has looked. */
export function* quarantineWorkspace(runId: RunId, workerId: WorkerId, reason: string) {
  const change = sql`came_from = state, state = 'quarantined', reason = ${reason}`
  return yield* settle(runId, workerId, change, ['decided', 'discarding'])
}

export interface Observation extends Omit<Prepared, 'work'> {
  readonly lands: boolean
  readonly verdict: CheckResult
  readonly reason: string | null
  readonly error: string | null
}

/** What a transaction would have done. */
export function* observedWorkspace(runId: RunId, workerId: WorkerId, seen: Observation) {
  const { lands, verdict, changed, changedCount, linesAdded, linesRemoved, leftOut, leftOutCount, reason, error } = seen
  const done = yield* settle(
    runId,
    workerId,
    sql`state = ${lands ? 'would_land' : 'would_discard'}, verdict = ${JSON.stringify(verdict)}, reason = ${reason},
      changed = ${JSON.stringify(changed)}, changed_count = ${changedCount}, lines_added = ${linesAdded}, lines_removed = ${linesRemoved}, left_out = ${JSON.stringify(leftOut)},
      left_out_count = ${leftOutCount}, keep_until = ${now}`,
    ['observing'],
  )
  return done === undefined || error === null ? done : yield* trouble(done, error)
}

/** It is over, and there is something to be told of it. */
function* trouble({ runId, state }: Workspace, error: string): Transition<Workspace> {
  return yield* one(
    workspaceRow,
    sql`update workspaces set error = ${error} where run_id = ${runId} and state = ${state} returning *`,
  )
}

/** Of those that were opened in one repository, the newest of which nothing must be left. */
export const sweptIn = single((host: string, repo: string, limit: number) =>
  all(
    workspaceRow,
    sql`select * from workspaces where host = ${host} and repo = ${repo} and swept_at is not null order by seq desc limit ${limit}`,
  ),
)

const repositoryRow = row({ repo: text(), top: text() })

/** The repositories of the newest of those: who died in the middle of a sweep left something there. */
export const repositoriesSweptOn = single((host: string, limit: number) =>
  all(
    repositoryRow,
    sql`select distinct repo, top from
      (select repo, top from workspaces where host = ${host} and swept_at is not null order by seq desc limit ${limit}) newest`,
  ),
)

const SWEEPABLE = sql`keep_until is not null and keep_until <= ${now} and swept_at is null and wish is null`

/** What nobody can bring back any more, or never will: refs and folders are to go. */
export const sweepableOn = single((host: string, limit: number) =>
  all(
    workspaceRow,
    sql`select * from workspaces where host = ${host} and ${SWEEPABLE} and state in ('landed', 'discarded', 'kept', 'would_land', 'would_discard')
      order by keep_until limit ${limit}`,
  ),
)

/** Something of it is still needed. Whoever is told so has it for that long. */
export function* holdRemains(runId: RunId, forMs: number): Transition<boolean> {
  const held = yield* first(
    workspaceRow,
    sql`update workspaces set keep_until = ${now} + ${forMs} where run_id = ${runId} and ${SWEEPABLE} returning *`,
  )
  return held !== undefined
}

/** Before anything is removed: from here on nobody can ask for it any more. */
export function* sweepWorkspace(runId: RunId): Transition<boolean> {
  const swept = yield* first(
    workspaceRow,
    sql`update workspaces set swept_at = ${now} where run_id = ${runId} and ${SWEEPABLE} returning *`,
  )
  if (swept?.state === 'discarded') yield* say('workspace.swept', swept, {})
  return swept !== undefined
}
