import type { Instant } from '../base/clock.ts'
import type { RunId } from '../base/ids.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, single } from '../store/transition.ts'
import { WORKSPACE_MODES, WORKSPACE_STATES } from './workspace.ts'
import type { CheckResult } from './workspace.ts'

const reportRow = row({
  runId: text<RunId>(),
  agent: text(),
  mode: oneOf(WORKSPACE_MODES),
  state: oneOf(WORKSPACE_STATES),
  runState: text(),
  runCode: nullable(text()),
  top: text(),
  branch: text(),
  changedCount: integer,
  linesAdded: integer,
  linesRemoved: integer,
  leftOutCount: integer,
  verdict: nullable(json<CheckResult>()),
  reason: nullable(text()),
  error: nullable(text()),
  openedAt: integer,
})
/** One line of the evidence on which a person decides: what became of a run, and what became, or would have, of its files. */
export type ReportLine = Decoded<typeof reportRow>

export interface ReportFilter {
  readonly since?: Instant
  readonly mode?: (typeof WORKSPACE_MODES)[number]
  readonly after?: RunId
  readonly limit: number
}

/** Newest first. From what is recorded alone, so that it says the same however often it is made. */
export const reportLines = single(({ since, mode, after, limit }: ReportFilter) =>
  all(
    reportRow,
    sql`select w.run_id, w.agent, w.mode, w.state, r.state as run_state, r.code as run_code, w.top, w.branch, w.changed_count,
        w.lines_added, w.lines_removed, w.left_out_count, w.verdict, w.reason, w.error, w.opened_at
      from workspaces w join runs r on r.id = w.run_id
      where ${since === undefined ? sql`1 = 1` : sql`w.opened_at >= ${since}`}
        and ${mode === undefined ? sql`1 = 1` : sql`w.mode = ${mode}`}
        and ${after === undefined ? sql`1 = 1` : sql`w.seq < (select seq from workspaces where run_id = ${after})`}
      order by w.seq desc limit ${limit}`,
  ),
)
