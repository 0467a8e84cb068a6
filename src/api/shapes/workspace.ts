import { z } from 'zod'

import { instant } from './common.ts'

export const workspaceState = z.enum([
  'opened',
  'active',
  'prepared',
  'checked',
  'decided',
  'landed',
  'ready',
  'discarding',
  'discarded',
  'quarantined',
  'kept',
  'observing',
  'would_land',
  'would_discard',
])

export const workspaceMode = z.enum(['shadow', 'transaction'])

const checked = z.object({
  verdict: z.enum(['passed', 'failed', 'timed_out', 'not_validated', 'none']),
  exitCode: z.number().nullable(),
  output: z.string(),
  why: z.string().optional(),
  durationMs: z.number().optional(),
})

/** The git transaction of a run: what it changed, and what became of that. */
export const workspace = z.object({
  runId: z.string(),
  threadId: z.string(),
  agent: z.string(),
  mode: workspaceMode,
  state: workspaceState,
  reason: z.string().optional(),
  error: z.string().optional(),
  base: z.string(),
  sha: z.string().optional(),
  branch: z.string(),
  ref: z.string(),
  repository: z.string(),
  folder: z.string(),
  changed: z.array(z.string()),
  changedCount: z.number(),
  lines: z.object({ added: z.number(), removed: z.number() }),
  leftOut: z.array(z.object({ path: z.string(), why: z.string() })),
  leftOutCount: z.number(),
  conflicts: z.array(z.string()).optional(),
  check: checked.optional(),
  wish: z.object({ kind: z.string(), by: z.string() }).optional(),
  keptAs: z.string().optional(),
  keptUntil: instant.optional(),
  sweptAt: instant.optional(),
  openedAt: instant,
  decidedAt: instant.optional(),
  settledAt: instant.optional(),
})

/** What the work changes, as `git diff` says it. */
export const workspaceDiff = z.object({
  runId: z.string(),
  state: workspaceState,
  from: z.string(),
  to: z.string(),
  diff: z.string(),
  /** There is more than is shown. */
  truncated: z.boolean(),
})

const tally = z.object({ runs: z.number(), files: z.number(), added: z.number(), removed: z.number() })

/** What transactions would have done, from what shadows saw. */
export const workspaceReport = z.object({
  from: instant.optional(),
  to: instant.optional(),
  runs: z.number(),
  /** Still being looked at, or not ended. */
  open: z.number(),
  wouldLand: tally,
  wouldDiscard: tally,
  unchanged: z.number(),
  /** Why what would have been discarded would have been. */
  reasons: z.array(z.object({ reason: z.string(), runs: z.number() })),
  checks: z.object({
    passed: z.number(),
    failed: z.number(),
    timedOut: z.number(),
    notValidated: z.number(),
    notReached: z.number(),
    without: z.number(),
    medianMs: z.number().optional(),
    longestMs: z.number().optional(),
  }),
  repositories: z.array(z.object({ repository: z.string(), wouldLand: z.number(), wouldDiscard: z.number() })),
  /** What to do with it. */
  advice: z.string(),
})
