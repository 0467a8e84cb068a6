import type { RunId, ThreadId, WorkerId } from '../base/ids.ts'
import { flag, integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { literals, sql } from '../store/sql.ts'
import { all, first, single } from '../store/transition.ts'

/**
 * The git transaction that a run works in: of the run, not of an attempt. Everything up to `checked` can still go either way;
 * `decided` and `discarding` are written by the transaction that ends the run, and after them there is only redoing.
 */
export const WORKSPACE_MOVES = {
  /** What will be touched is written down; nothing is touched yet. */
  opened: ['active', 'observing', 'discarding'],
  /** The tree is complete, the work may begin. */
  active: ['prepared', 'observing', 'discarding'],
  /** The work is one commit under our own ref; no branch has moved. Active again: the agent goes on. */
  prepared: ['active', 'checked', 'discarding'],
  /** Under the landing lock: put on top of the branch as it is, and checked there. */
  checked: ['active', 'decided', 'discarding'],
  /** The run has succeeded with this commit: it lands, or it waits. */
  decided: ['landed', 'ready', 'quarantined', 'discarding'],
  landed: [],
  /** It could not land by itself; a person says what becomes of it. */
  ready: ['decided', 'kept', 'discarding'],
  /** Landed: the branch had it by the time that a person gave it up. */
  discarding: ['discarded', 'landed', 'quarantined'],
  discarded: ['kept'],
  /** What happened to it cannot be proven, so nobody touches it but a person. */
  quarantined: ['decided', 'discarding', 'kept'],
  kept: [],
  /** Shadow: the run has ended, what it changed is being looked at. */
  observing: ['would_land', 'would_discard'],
  would_land: [],
  would_discard: [],
} as const satisfies Record<string, readonly string[]>
export type WorkspaceState = keyof typeof WORKSPACE_MOVES
export const WORKSPACE_STATES = Object.keys(WORKSPACE_MOVES) as WorkspaceState[]

/** Its run has ended, and something is left to do: by whoever comes first, again and again until it is done. */
export const UNSETTLED = ['decided', 'discarding', 'observing'] as const satisfies readonly WorkspaceState[]

export const WORKSPACE_MODES = ['shadow', 'transaction'] as const
export type WorkspaceMode = (typeof WORKSPACE_MODES)[number]

/** What is asked for: part of the request of a run, and of an agent of the configuration. */
export interface WorkspaceRequest {
  /** A folder of the repository, absolute; the command works in the same folder of the private tree. */
  readonly root: string
  readonly mode: WorkspaceMode
  /** A command line for `/bin/sh -c`, or an executable file of the repository, by its path from the top of it. */
  readonly check?: CheckRequest
  readonly checkTimeoutMs?: number
  /** Paths from the top of the repository, as a rule ignored ones, that the private tree gets a copy of, or a link to. */
  readonly copy?: readonly string[]
  readonly link?: readonly string[]
  /** One commit of everything (the default), or those that the agent made, and one for the rest. */
  readonly commits?: 'squash' | 'keep'
  /** How long discarded work can be brought back. */
  readonly keepMs?: number
  /** The largest file that is taken up, as bytes. */
  readonly largestFile?: number
}

export type CheckRequest = { readonly command: string } | { readonly file: string }

/** The check as it was before the agent began; a file is the content that the base commit has. */
export type CapturedCheck =
  /** `file`: the program that it begins with is a file of the repository. */
  | { readonly kind: 'command'; readonly command: string; readonly file?: string; readonly blob?: string }
  | { readonly kind: 'file'; readonly file: string; readonly blob: string }

const VERDICTS = ['passed', 'failed', 'timed_out', 'not_validated', 'none'] as const
export type Verdict = (typeof VERDICTS)[number]

/** How the check ended. */
export interface CheckResult {
  readonly verdict: Verdict
  readonly exitCode: number | null
  /** The end of what it printed. */
  readonly output: string
  /** Why it counts as it does, where the exit code does not say it. */
  readonly why?: string
  readonly durationMs?: number
}

/** Something that does not become part of the commit. */
export interface LeftOut {
  readonly path: string
  readonly why: string
}

/** What a person wants done, until it is. */
export const WISHES = ['land', 'keep'] as const
export type Wish = (typeof WISHES)[number]

export const workspaceRow = row({
  seq: integer,
  runId: text<RunId>(),
  threadId: text<ThreadId>(),
  agent: text(),
  mode: oneOf(WORKSPACE_MODES),
  state: oneOf(WORKSPACE_STATES),
  request: json<WorkspaceRequest>(),
  /** Where it is: the machine, our folder there, and the user's repository (the common git folder and the working tree). */
  host: text(),
  folder: text(),
  repo: text(),
  top: text(),
  /** The folder inside of the repository, without slashes around it. */
  prefix: text(),
  /** The branch on which it is to land, as `refs/heads/main`. */
  branch: text(),
  base: text(),
  validator: nullable(json<CapturedCheck>()),
  /** The fence of the attempt whose tree it is: each makes its own, so that one who comes back late touches no other's. */
  opening: nullable(integer),
  /** The commit of the work on top of the base, or the last checkpoint of it; of a shadow, what there was before. */
  work: nullable(text()),
  /** The tip of the branch on which it was checked, and the commit that was checked there: the one that lands. */
  checkedOn: nullable(text()),
  sha: nullable(text()),
  /** Paths that changed, bounded, and how many there are. */
  changed: json<readonly string[]>(),
  changedCount: integer,
  /** Of all of them, as `git diff --numstat` counts; binary files have no lines. */
  linesAdded: integer,
  linesRemoved: integer,
  leftOut: json<readonly LeftOut[]>(),
  leftOutCount: integer,
  /** Paths on which it and the branch disagree: it can not land by itself. */
  conflicts: json<readonly string[]>(),
  /** Of the check's processes; its folder follows it, as that of a command. */
  checkMark: nullable(text()),
  verdict: nullable(json<CheckResult>()),
  /** The check passed, or there is none: without it nothing can be decided. */
  passed: flag,
  /** It holds the landing lock of its repository. */
  landing: flag,
  /** Why it is in this state. */
  reason: nullable(text()),
  /** What stands in the way of redoing, since when. */
  error: nullable(text()),
  /** From which state it was quarantined: where a retry goes on. */
  cameFrom: nullable(oneOf(WORKSPACE_STATES)),
  wish: nullable(oneOf(WISHES)),
  wishBy: nullable(text()),
  /** The branch under which a person keeps it. */
  keptAs: nullable(text()),
  settler: nullable(text<WorkerId>()),
  settleUntil: nullable(integer),
  /** Until then discarded work can be brought back; null: for ever, or nothing is kept. */
  keepUntil: nullable(integer),
  /** Nothing of it is left but this row. */
  sweptAt: nullable(integer),
  openedAt: integer,
  decidedAt: nullable(integer),
  settledAt: nullable(integer),
})
export type Workspace = Decoded<typeof workspaceRow>

/** The ref in the user's repository that owns everything of it. */
export const refOfRun = (runId: string) => `refs/holdfast/tx/${runId}`

export const findWorkspace = single((runId: RunId) =>
  first(workspaceRow, sql`select * from workspaces where run_id = ${runId}`),
)

/** Those whose run's id starts so, two at most: enough to know whether it is unique. */
export const workspacesByPrefix = single((prefix: string) =>
  all(
    workspaceRow,
    sql`select * from workspaces where run_id >= ${prefix} and run_id < ${`${prefix}\u{10ffff}`} order by run_id limit 2`,
  ),
)

export interface WorkspaceFilter {
  readonly states?: readonly WorkspaceState[]
  readonly mode?: WorkspaceMode
  /** The common git folder of a repository, on one machine. */
  readonly repo?: { readonly host: string; readonly path: string }
  /** Only older ones than that of this run: the last one of the page before. */
  readonly after?: RunId
  readonly limit: number
}

/** Newest first. */
export const listWorkspaces = single(({ states, mode, repo, after, limit }: WorkspaceFilter) =>
  all(
    workspaceRow,
    sql`select * from workspaces where ${states === undefined ? sql`1 = 1` : sql`state in (${literals(states)})`}
      and ${mode === undefined ? sql`1 = 1` : sql`mode = ${mode}`}
      and ${repo === undefined ? sql`1 = 1` : sql`host = ${repo.host} and repo = ${repo.path}`}
      and ${after === undefined ? sql`1 = 1` : sql`seq < (select seq from workspaces where run_id = ${after})`}
      order by seq desc limit ${limit}`,
  ),
)

const countRow = row({ state: oneOf(WORKSPACE_STATES), count: integer })
export const countWorkspaces = single(() =>
  all(countRow, sql`select state, count(*) as count from workspaces group by state`),
)
