import { z } from 'zod'

import { anything, instant } from './common.ts'

export const policyRule = z.object({
  tool: z.string().optional(),
  effect: z.enum(['read', 'write']).optional(),
  agent: z.string().optional(),
  thread: z.string().optional(),
  where: z.array(z.looseObject({ argument: z.string() })).optional(),
  /** It has no argument that `where` does not name. */
  only: z.literal(true).optional(),
  decision: z.enum(['allow', 'deny', 'ask']),
  name: z.string().optional(),
})

export const approvalState = z.enum(['pending', 'approved', 'consumed', 'skipped', 'denied', 'expired', 'withdrawn'])

export const approval = z.object({
  id: z.string(),
  state: approvalState,
  actionId: z.string(),
  /** The reply that asked: calls of one reply have the same. */
  step: z.number(),
  runId: z.string(),
  threadId: z.string(),
  agent: z.string(),
  tool: z.string(),
  effect: z.enum(['read', 'write']),
  input: anything,
  digest: z.string(),
  /** The exact bytes that a decision covers. */
  shown: z.string(),
  /** How many values in them are secret, and not told; the digest is of them all the same. */
  hidden: z.number().optional(),
  askedBy: z.string(),
  askedAt: instant,
  expiresAt: instant,
  modelSaid: z.string().optional(),
  decided: z.object({ by: z.string().nullable(), via: z.string().nullable(), at: instant }).optional(),
  note: z.string().optional(),
  /** What `always` would allow, in words; or why it can allow nothing. */
  always: z.union([z.object({ rule: z.string() }), z.object({ refused: z.string() })]).optional(),
  /** Whether its input can be changed before it is done. */
  editable: z.boolean().optional(),
})

export const decided = approval.extend({
  ruleId: z.string().optional(),
  rule: z.string().optional(),
  /** Of a session whose client has ended: the command that goes on with it. */
  resume: z.string().optional(),
})
export const edited = approval.extend({ replaces: z.string() })

export const doubt = z.object({
  id: z.string(),
  runId: z.string(),
  threadId: z.string(),
  agent: z.string(),
  runState: z.string(),
  tool: z.string(),
  input: anything,
  signature: z.string(),
  state: z.string(),
  tries: z.number(),
  createdAt: instant,
  startedAt: instant.optional(),
  allowedBy: z.object({ by: z.string(), via: z.string() }).optional(),
  seen: z.string().optional(),
  settledBy: z.string().optional(),
  givenUp: z.string().optional(),
  modelSaid: z.string().optional(),
})
