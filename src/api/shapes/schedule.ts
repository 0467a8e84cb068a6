import { z } from 'zod'

import { LIMITS } from '../../base/limits.ts'
import { anything, instant, name } from './common.ts'

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
  z.object({ kind: z.literal('call'), function: z.string(), input: anything.optional() }),
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

/** `local`: the time of its zone. */
const coming = z.object({ at: instant, local: z.string() })

export const listedSchedule = schedule.extend({ next: z.array(coming).optional() })

export const occurrenceState = z.enum(['due', 'dispatched', 'succeeded', 'failed', 'dropped', 'skipped'])

export const occurrence = z.object({
  id: z.string(),
  scheduleId: z.string(),
  dueAt: instant,
  firedAt: instant.optional(),
  state: occurrenceState,
  reason: z.string().optional(),
  attempts: z.number(),
  runId: z.string().optional(),
  origin: z.enum(['due', 'catch_up', 'run_now']),
  lateMs: z.number(),
  /** One line for a row of instants that were passed over: how many, and the last of them. */
  instants: z.number().optional(),
  lastAt: instant.optional(),
  waits: z.enum(['retry', 'overlap', 'thread']).optional(),
  error: z.string().optional(),
  nextAttemptAt: instant.optional(),
  threadId: z.string().optional(),
  messageId: z.string().optional(),
  /** While it goes on: what its run is at. */
  runState: z.string().optional(),
  runParkedFor: z.string().optional(),
  by: z.string().optional(),
  costUsd: z.number(),
  settledAt: instant.optional(),
})

/** With what a reader needs to know of its schedule. */
export const listedOccurrence = occurrence.extend({ schedule: z.object({ name: z.string(), zone: z.string() }) })

export const wholeSchedule = schedule.extend({
  zone: z.string(),
  /** Oldest first. */
  last: z.array(occurrence),
  next: z.array(coming),
})

/** `already`: it was so before. */
export const steeredSchedule = schedule.extend({ already: z.boolean().optional() })

export const preview = z.object({ rule, zone: z.string(), instants: z.array(coming) })

export const newFollowup = schedule.extend({ replaced: schedule.optional() })

const words = z.string().max(LIMITS.nameLength)

/** When: one of `in`, `at`, `every` and `cron`. Durations as `30m`, instants as ISO 8601. */
export const when = {
  in: words.optional(),
  at: words.optional(),
  every: words.optional(),
  /** An instant of `every`. */
  anchor: words.optional(),
  cron: words.optional(),
  /** IANA: of `cron`, and of instants without an offset. By default the daemon's. */
  zone: words.optional(),
}

/** How it is dealt with. `null` takes a limit away. */
export const dealing = {
  misfire: words.optional(),
  grace: words.optional(),
  overlap: z.enum(['skip', 'queue', 'cancel']).optional(),
  retries: z.number().optional(),
  retryBase: words.optional(),
  retryFactor: z.number().optional(),
  retryJitter: z.number().optional(),
  transient: z.array(words).max(50).optional(),
  pauseAfter: z.number().optional(),
  stopped: z.enum(['hold', 'drop', 'wake']).optional(),
  jitter: words.optional(),
  deleteAfterRun: z.boolean().optional(),
  until: words.nullable().optional(),
  maxFirings: z.number().nullable().optional(),
  maxCostUsd: z.number().nullable().optional(),
  maxCostUsdADay: z.number().nullable().optional(),
  why: words.optional(),
}

/** What: one of `threadId` or `agent` with a text, `command`, and `webhook`. */
export const doing = {
  threadId: name.optional(),
  agent: name.optional(),
  text: z.string().optional(),
  /** Needs the scope `admin`: it is whatever a program can do on the machine of the daemon. */
  command: z.array(z.string()).min(1).optional(),
  cwd: z.string().optional(),
  env: z.record(z.string(), z.string()).optional(),
  timeout: words.optional(),
  /** Needs the scope `approve`: whoever makes it says yes to each of its calls. */
  webhook: z.string().optional(),
  method: words.optional(),
  body: anything.optional(),
}

/** Who asks: the thread that is told what becomes of it, and the run that asks, whose own it then is. */
export const asking = { owner: name.optional(), run: name.optional() }
