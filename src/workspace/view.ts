import { iso } from '../base/clock.ts'
import { refOfRun } from './workspace.ts'
import type { CheckResult, LeftOut, Workspace } from './workspace.ts'

/** The public JSON form of a workspace: what the command line prints and the HTTP API serves. */
export interface WorkspaceView {
  readonly runId: string
  readonly threadId: string
  readonly agent: string
  readonly mode: string
  readonly state: string
  readonly reason?: string
  /** What stands in the way of what is still to be done. */
  readonly error?: string
  readonly base: string
  /** The commit that lands or has landed; for discarded work the one under which it can still be found. */
  readonly sha?: string
  /** As people write it: `main`. */
  readonly branch: string
  readonly ref: string
  readonly repository: string
  readonly folder: string
  readonly changed: readonly string[]
  readonly changedCount: number
  readonly lines: { readonly added: number; readonly removed: number }
  readonly leftOut: readonly LeftOut[]
  readonly leftOutCount: number
  readonly conflicts?: readonly string[]
  readonly check?: CheckResult
  readonly wish?: { readonly kind: string; readonly by: string }
  readonly keptAs?: string
  readonly keptUntil?: string
  /** Nothing of its content is left. */
  readonly sweptAt?: string
  readonly openedAt: string
  readonly decidedAt?: string
  readonly settledAt?: string
}

const instantOf = (name: string, at: number | null) => (at === null ? {} : { [name]: iso(at) })
const wordOf = (name: string, value: string | null) => (value === null ? {} : { [name]: value })

export function viewWorkspace(workspace: Workspace): WorkspaceView {
  const { runId, threadId, agent, mode, state, base, top, folder, changed, leftOut, conflicts } = workspace
  return {
    runId,
    threadId,
    agent,
    mode,
    state,
    ...wordOf('reason', workspace.reason),
    ...wordOf('error', workspace.error),
    base,
    ...wordOf('sha', workspace.sha ?? workspace.work),
    branch: branchName(workspace.branch),
    ref: refOfRun(runId),
    repository: top,
    folder,
    changed,
    changedCount: workspace.changedCount,
    lines: { added: workspace.linesAdded, removed: workspace.linesRemoved },
    leftOut,
    leftOutCount: workspace.leftOutCount,
    ...(conflicts.length === 0 ? {} : { conflicts }),
    ...(workspace.verdict === null || workspace.verdict.verdict === 'none' ? {} : { check: workspace.verdict }),
    ...(workspace.wish === null ? {} : { wish: { kind: workspace.wish, by: workspace.wishBy ?? 'somebody' } }),
    ...wordOf('keptAs', workspace.keptAs),
    ...instantOf('keptUntil', workspace.sweptAt === null ? workspace.keepUntil : null),
    ...instantOf('sweptAt', workspace.sweptAt),
    openedAt: iso(workspace.openedAt),
    ...instantOf('decidedAt', workspace.decidedAt),
    ...instantOf('settledAt', workspace.settledAt),
  }
}

export const branchName = (ref: string) => ref.replace(/^refs\/heads\//, '')
