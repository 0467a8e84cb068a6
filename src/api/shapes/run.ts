import { z } from 'zod'

import { anything, instant, usage } from './common.ts'
import { workspace } from './workspace.ts'

const request = z.union([
  z.object({
    kind: z.literal('command'),
    argv: z.array(z.string()),
    cwd: z.string(),
    timeoutMs: z.number().optional(),
  }),
  z.object({
    kind: z.literal('agent'),
    /** A function, with an input. */
    called: z.literal(true).optional(),
    timeoutMs: z.number().optional(),
  }),
  z.object({
    kind: z.literal('observed'),
    client: z.string(),
    sessionId: z.string(),
    generation: z.number(),
    turn: z.string(),
    part: z.number(),
  }),
])

export const runState = z.enum(['queued', 'running', 'parked', 'succeeded', 'failed', 'cancelled'])

export const run = z.object({
  id: z.string(),
  threadId: z.string(),
  agent: z.string(),
  state: runState,
  cancelRequestedAt: instant.optional(),
  cancel: z.object({ by: z.string(), reason: z.string().optional() }).optional(),
  code: z.string().optional(),
  error: z.string().optional(),
  result: anything.optional(),
  lateResults: z.array(z.looseObject({ arrivedAt: instant })).optional(),
  attempt: z.number(),
  parentThreadId: z.string().optional(),
  createdAt: instant,
  startedAt: instant.optional(),
  parkedAt: instant.optional(),
  parkedFor: z.string().optional(),
  endedAt: instant.optional(),
  request,
  usage,
})

const attempt = z.object({
  id: z.string(),
  number: z.number(),
  workerId: z.string(),
  claimedAt: instant,
  endedAt: instant.optional(),
  outcome: z.string().optional(),
})

/** What a model was shown, or what it said; its other fields are those of its kind: `text`, `calls`, … */
export const step = z.looseObject({
  seq: z.number(),
  runId: z.string(),
  kind: z.enum(['user', 'assistant', 'summary']),
  at: instant,
  usage: usage.optional(),
})

export const action = z.object({
  id: z.string(),
  runId: z.string(),
  /** The step whose reply asked for it. A step of a function is an action itself, named as its tool. */
  step: z.number().optional(),
  tool: z.string(),
  effect: z.enum(['read', 'write']),
  input: anything,
  signature: z.string(),
  state: z.enum([
    'proposed',
    'waiting',
    'approved',
    'started',
    'done',
    'failed',
    'in_doubt',
    'skipped',
    'denied',
    'expired',
    'withdrawn',
  ]),
  decision: z.object({ kind: z.string(), by: z.string(), via: z.string(), at: instant }).optional(),
  settledBy: z.string().optional(),
  repeatOf: z.string().optional(),
  replacedBy: z.string().optional(),
  again: z.string().optional(),
  result: anything.optional(),
  /** Among many, as in a thread, a long result is text and its beginning alone: so many bytes is the whole, which `actions.show` has. */
  resultBytes: z.number().optional(),
  error: z.string().optional(),
  startedAt: instant.optional(),
  settledAt: instant.optional(),
})

const waitsFor = z.object({ approvals: z.array(z.string()), doubts: z.array(z.string()) })

/** Its worker is on a machine that cannot be reached, and has said nothing since. */
const silent = z.object({ host: z.string(), since: instant })

export const silentRun = silent.extend({ runId: z.string(), agent: z.string() })

export const wholeRun = run.extend({
  /** What a function was called with. */
  input: anything.optional(),
  attempts: z.array(attempt),
  steps: z.array(step).optional(),
  actions: z.array(action).optional(),
  waitsFor: waitsFor.optional(),
  silent: silent.optional(),
  /** What it did to files. */
  workspace: workspace.optional(),
})

export const event = z.object({
  seq: z.number(),
  at: instant,
  type: z.string(),
  threadId: z.string().optional(),
  runId: z.string().optional(),
  data: z.record(z.string(), z.unknown()),
})

const effect = z.object({
  actionId: z.string(),
  tool: z.string(),
  input: anything,
  signature: z.string(),
  digest: z.string().optional(),
  state: z.string(),
  allowedBy: z.object({ by: z.string(), via: z.string() }).optional(),
  approvalId: z.string().optional(),
  allowedAt: instant.optional(),
  tries: z.number(),
  startedAt: instant.optional(),
  settledAt: instant.optional(),
  settledBy: z.string().optional(),
  givenUp: z.string().optional(),
  result: anything.optional(),
  error: z.string().optional(),
})

export const statement = z.object({
  runId: z.string(),
  /** What became of the files that it changed; what it did besides is among the effects, and git takes none of that back. */
  workspace: workspace.optional(),
  threadId: z.string(),
  agent: z.string(),
  state: runState,
  final: z.boolean(),
  command: z.array(z.string()).optional(),
  effects: z.array(effect),
  withoutEffect: z.array(
    z.object({
      actionId: z.string(),
      tool: z.string(),
      input: anything,
      signature: z.string(),
      state: z.string(),
      repeatOf: z.string().optional(),
      why: z.string().optional(),
    }),
  ),
  children: z.array(
    z.object({
      runId: z.string(),
      agent: z.string(),
      state: runState,
      effects: z.number(),
      inDoubt: z.number(),
    }),
  ),
})
