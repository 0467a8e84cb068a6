import type { RunId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import type { EventType } from '../events/event.ts'
import type { AttemptRef } from '../runs/attempt.ts'
import { row, text } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { first, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { holdClaim, progress } from './open.ts'
import type { Progress } from './open.ts'
import { workspaceRow } from './workspace.ts'
import type { CheckResult, LeftOut, Workspace } from './workspace.ts'

/** The work as a commit on top of the base; the lists are bounded, the counts are not. */
export interface Prepared {
  readonly work: string
  readonly changed: readonly string[]
  readonly changedCount: number
  readonly linesAdded: number
  readonly linesRemoved: number
  readonly leftOut: readonly LeftOut[]
  readonly leftOutCount: number
}

/** The commit is there, under our ref; no branch has moved. */
export function* prepareWorkspace(attempt: AttemptRef, prepared: Prepared): Transition<Progress> {
  const { work, changed, changedCount, linesAdded, linesRemoved, leftOut, leftOutCount } = prepared
  const done = yield* progress(
    attempt,
    sql`state = 'prepared', work = ${work}, changed = ${JSON.stringify(changed)}, changed_count = ${changedCount},
      lines_added = ${linesAdded}, lines_removed = ${linesRemoved}, left_out = ${JSON.stringify(leftOut)}, left_out_count = ${leftOutCount}`,
    sql`state = 'active'`,
  )
  if (done.kind === 'done') yield* say('workspace.prepared', done.workspace, { work, changedCount, leftOutCount })
  return done
}

export type Landing =
  | Progress
  /** Another workspace is about to land there. */
  | { readonly kind: 'waiting'; readonly holder: RunId }

const holderRow = row({ runId: text<RunId>() })

/** Who is about to land where this workspace is, another one or itself: a look, which wakes nobody. */
export const landingHolder = single((runId: RunId) =>
  first(
    holderRow,
    sql`select other.run_id from workspaces other join workspaces mine on mine.run_id = ${runId}
      where other.host = mine.host and other.repo = mine.repo and other.landing = 1`,
  ),
)

/** The lock of the repository. It is the workspace's, not the worker's: whoever goes on with the run has it. */
export function* takeLanding(attempt: AttemptRef): Transition<Landing> {
  const held = yield* holdClaim(attempt)
  if (held.kind !== 'held') return held
  const taken = yield* first(
    workspaceRow,
    sql`update workspaces set landing = 1 where run_id = ${attempt.runId} and state in ('prepared', 'checked')
      and not exists (select 1 from workspaces other where other.host = workspaces.host and other.repo = workspaces.repo
        and other.landing = 1 and other.run_id <> workspaces.run_id) returning *`,
  )
  if (taken !== undefined) return { kind: 'done', workspace: taken }
  const holder = yield* landingHolder.single(attempt.runId)
  return holder === undefined ? { kind: 'superseded' } : { kind: 'waiting', holder: holder.runId }
}

/** What is checked: this commit, on top of that tip. Where they disagree it is the work itself. */
export interface Candidate {
  readonly checkedOn: string
  readonly sha: string
  readonly conflicts: readonly string[]
  /** Of the check's processes, new for each try. */
  readonly mark: string
}

/** The intent of the check: whoever goes on knows which tree it is about, and where to look for its end. */
export function* beginCheck(attempt: AttemptRef, candidate: Candidate): Transition<Progress> {
  const { checkedOn, sha, conflicts, mark } = candidate
  return yield* progress(
    attempt,
    sql`checked_on = ${checkedOn}, sha = ${sha}, conflicts = ${JSON.stringify(conflicts)}, check_mark = ${mark}`,
    sql`state = 'prepared' and landing = 1`,
  )
}

/** The verdict, about exactly the commit that was named before. */
export function* concludeCheck(attempt: AttemptRef, sha: string, verdict: CheckResult): Transition<Progress> {
  const passed = verdict.verdict === 'passed' || verdict.verdict === 'none'
  const done = yield* progress(
    attempt,
    sql`state = 'checked', verdict = ${JSON.stringify(verdict)}, passed = ${passed ? 1 : 0}`,
    sql`state = 'prepared' and landing = 1 and sha = ${sha}`,
  )
  const { verdict: kind, exitCode } = verdict
  if (done.kind === 'done') yield* say('workspace.checked', done.workspace, { sha, verdict: kind, exitCode })
  return done
}

export function* say(
  type: EventType,
  { threadId, runId }: Pick<Workspace, 'threadId' | 'runId'>,
  data: Readonly<Record<string, unknown>>,
): Transition<void> {
  yield* record({ type, threadId, runId, data })
}
