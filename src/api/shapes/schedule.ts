import { z } from 'zod'

import { anything, instant } from './common.ts'

const rule = z.union([
  z.object({ kind: z.literal('once'), at: instant }),
  z.object({ kind: z.literal('every'), everyMs: z.number(), anchor: instant }),
  z.object({ kind: z.literal('cron'), expression: z.string(), zone: z.string() }),
])

const target = z.union([
  z.object({ kind: z.literal('message'), threadId: z.string(), text: z.string() }),
  z.object({ kind: z.literal('agent'), agent: z.string(), text: z.string() }),
  z.object({
    kind: z.literal('command'),
    argv: z.array(z.string()),
    cwd: z.string(),
    timeoutMs: z.number().optional(),
  }),
  z.object({
    kind: z.literal('webhook'),
    url: z.string(),
    method: z.string().optional(),
    body: anything.optional(),
  }),
])

const options = z.object({
  misfire: z.union([
    z.object({ policy: z.enum(['once', 'skip']) }),
    z.object({ policy: z.literal('each'), limit: z.number() }),
  ]),
  graceMs: z.number(),
  overlap: z.enum(['skip', 'queue', 'cancel']),
  retry: z.object({ tries: z.number(), baseMs: z.number(), factor: z.number(), jitter: z.number() }),
  transient: z.array(z.string()),
  pauseAfter: z.number(),
  stopped: z.enum(['hold', 'drop', 'wake']),
  jitterMs: z.number(),
  deleteAfterRun: z.boolean(),
  until: instant.optional(),
  maxFirings: z.number().optional(),
  maxCostUsd: z.number().optional(),
  maxCostUsdADay: z.number().optional(),
  why: z.string().optional(),
})

export const scheduleState = z.enum(['active', 'paused', 'ended', 'removed'])

/** A job, or a follow-up: a message to one thread, once. */
export const schedule = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.enum(['job', 'followup']),
  state: scheduleState,
  reason: z.string().optional(),
  rule,
  target,
  options,
  /** The instant that is due next. */
  nextAt: instant.optional(),
  ownerThreadId: z.string().optional(),
  ownerRunId: z.string().optional(),
  ownerAgent: z.string().optional(),
  madeBy: z.string(),
  /** In a row. */
  failures: z.number(),
  firings: z.number(),
  version: z.number(),
  createdAt: instant,
  updatedAt: instant,
  endedAt: instant.optional(),
})
