import { z } from 'zod'

import { SCOPES } from '../endpoint.ts'
import { anything, instant } from './common.ts'
import { policyRule } from './desk.ts'
import { run, silentRun } from './run.ts'
import { schedule } from './schedule.ts'

const counts = z.record(z.string(), z.number())

export const breaker = z.object({
  agent: z.string(),
  cause: z.string(),
  failures: z.number(),
  openings: z.number(),
  openUntil: instant.optional(),
})

export const status = z.object({
  home: z.string(),
  engine: z.enum(['sqlite', 'postgres']),
  daemons: z.array(z.object({ id: z.string(), home: z.string(), host: z.string(), pid: z.number() })),
  runs: counts,
  messages: counts,
  wakes: z.object({ total: z.number(), vain: z.number() }),
  needsAPerson: z.object({ approvals: z.number(), doubts: z.number(), workspaces: z.number() }),
  schedules: counts,
  workspaces: counts,
  /** Those that are paused, or failed the last time. */
  troubledSchedules: z.array(schedule),
  active: z.array(run),
  /** Held by a machine that cannot be reached; nobody may run them again. */
  silentRuns: z.array(silentRun),
  openBreakers: z.array(z.object({ agent: z.string(), cause: z.string(), openUntil: instant })),
})

export const quota = z.object({ quota: z.string(), blockedUntil: instant, reason: z.string() })

/** Runs that ended between `at` and the next one's. */
export const bucket = z.object({
  at: instant,
  succeeded: z.number(),
  failed: z.number(),
  cancelled: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  costUsd: z.number(),
})

export const storedRule = z.object({
  /** Only rules that somebody made by saying "always" have one, and can be taken back. */
  id: z.string().optional(),
  from: z.enum(['configuration', 'always']),
  rule: policyRule,
  words: z.string(),
  madeBy: z.string().optional(),
  madeFrom: z.string().optional(),
  madeAt: instant.optional(),
})

export const explained = z.object({
  decision: z.enum(['allow', 'ask', 'deny']),
  by: z.string(),
  via: z.string(),
  action: z.object({
    agent: z.string(),
    tool: z.string(),
    effect: z.enum(['read', 'write']),
    input: anything,
    thread: z.string().optional(),
  }),
  rule: policyRule.optional(),
  overruled: z.array(z.object({ name: z.string(), rule: policyRule })),
  /** What a person should know: a tool that is not known here, an input that it would refuse. */
  remarks: z.array(z.string()),
})

export const hookStatus = z.object({
  client: z.string(),
  scope: z.enum(['user', 'project']),
  folder: z.string().optional(),
  path: z.string(),
  state: z.enum(['not-installed', 'installed', 'drifted']),
  events: z.array(z.string()),
  drift: z.array(z.looseObject({ what: z.string() })),
})

export const scopes = z.array(z.enum(SCOPES)).min(1)

export const token = z.object({
  id: z.string(),
  name: z.string(),
  /** `browser`: the cookie of one that is signed in. */
  kind: z.enum(['token', 'browser']),
  scopes: z.array(z.enum(SCOPES)),
  threadId: z.string().optional(),
  createdAt: instant,
  createdBy: z.string(),
  expiresAt: instant.optional(),
  usedAt: instant.optional(),
  revokedAt: instant.optional(),
})

/** Its text is known to whoever made it, and to nobody afterwards: only its digest is kept. */
export const newToken = token.extend({ token: z.string() })

export const act = z.object({
  id: z.string(),
  at: instant,
  /** The name of the endpoint, whichever door it came through. */
  call: z.string(),
  on: z.string().optional(),
  by: z.string(),
  via: z.string(),
  tokenId: z.string().optional(),
  outcome: z.string().optional(),
})

export const caller = z.object({
  by: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  threadId: z.string().optional(),
  tokenId: z.string().optional(),
})
