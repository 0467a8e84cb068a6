import { z } from 'zod'

import { anything, instant } from './common.ts'
import { action, run, runState, step } from './run.ts'
import { schedule } from './schedule.ts'

export const thread = z.object({
  id: z.string(),
  agent: z.string(),
  state: z.enum(['open', 'stopped', 'removed']),
  generation: z.number(),
  parentId: z.string().optional(),
  createdAt: instant,
})

export const listedThread = thread.extend({
  /** What it began with. */
  preview: z.string().optional(),
  doing: z.string(),
  /** Messages that wait in its inbox. */
  pending: z.number(),
  run: z
    .object({
      id: z.string(),
      state: runState,
      createdAt: instant,
      endedAt: instant.optional(),
      code: z.string().optional(),
    })
    .optional(),
})

export const branch = thread.extend({
  doing: z.string(),
  pending: z.number(),
  run: z.object({ id: z.string(), state: runState, code: z.string().optional() }).optional(),
  session: z.object({ client: z.string(), state: z.string() }).optional(),
  get children() {
    return z.array(branch)
  },
})

export const messageState = z.enum(['pending', 'leased', 'consumed', 'replaced', 'dead'])

export const message = z.object({
  id: z.string(),
  threadId: z.string(),
  from: z.string().nullable(),
  kind: z.string(),
  key: z.string(),
  state: messageState,
  reason: z.string().optional(),
  attempts: z.number(),
  body: z.record(z.string(), z.unknown()),
  createdAt: instant,
  dueAt: instant.optional(),
  consumedByRun: z.string().optional(),
})

export const wholeMessage = message.extend({ attachment: z.string().optional() })

export const wholeThread = branch.extend({
  /** `input`: what a call that is under way was given. */
  runs: z.array(run.extend({ input: anything.optional() })),
  conversation: z.array(step),
  actions: z.array(action),
  messages: z.array(message),
  /** What is to come to it. */
  schedules: z.array(schedule),
  /** The last event that this snapshot includes: whoever follows the events after it misses nothing. */
  seq: z.number(),
})

export const sent = z.object({
  message,
  threadId: z.string(),
  runId: z.string().optional(),
  /** The thread of that name had been removed, and begins anew with this. */
  anew: z.boolean().optional(),
})

export const delivery = z.object({
  delivery: z.string().optional(),
  messages: z.array(message),
  remaining: z.number(),
})
