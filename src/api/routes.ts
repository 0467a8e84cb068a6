import { z } from 'zod'

import { LIMITS } from '../base/limits.ts'
import type { ENDPOINTS, EndpointName } from './endpoints.ts'
import { after, anything, instant, limit, name, page, seq } from './shapes/common.ts'
import { approval, approvalState, decided, doubt, edited } from './shapes/desk.ts'
import {
  act,
  breaker,
  bucket,
  caller,
  explained,
  hookStatus,
  newToken,
  quota,
  scopes,
  status,
  storedRule,
  token,
} from './shapes/house.ts'
import {
  asking,
  dealing,
  doing,
  listedOccurrence,
  listedSchedule,
  newFollowup,
  occurrence,
  occurrenceState,
  preview,
  schedule,
  scheduleState,
  steeredSchedule,
  when,
  wholeSchedule,
} from './shapes/schedule.ts'
import { action, event, run, runState, statement, step, wholeRun } from './shapes/run.ts'
import {
  branch,
  delivery,
  listedThread,
  message,
  messageState,
  sent,
  thread,
  wholeMessage,
  wholeThread,
} from './shapes/thread.ts'
import { workspace, workspaceDiff, workspaceMode, workspaceReport, workspaceState } from './shapes/workspace.ts'

/** What a caller says besides the parts of the path: in the query of a GET, in the body of a POST. */
interface Route {
  readonly ask: z.ZodObject
  readonly answer: z.ZodType
}

const nothing = z.strictObject({})
const paging = { limit, after }
const digest = z.string().min(1).max(LIMITS.nameLength)
const note = z.string().min(1).max(LIMITS.nameLength).optional()
/** Who decides, as the caller says: recorded as that, beside whose token it was. */
const by = name.optional()
const ask = <T extends z.ZodRawShape>(shape: T) => z.strictObject(shape)
const text = z.string()

/** The other half of the table: what goes in and what comes out of each endpoint, under its name. */
export const ROUTES = {
  health: { ask: nothing, answer: z.object({ status: z.literal('ok'), instance: z.string() }) },
  openapi: { ask: nothing, answer: z.looseObject({ openapi: z.string() }) },

  'session.open': { ask: ask({ code: z.string().max(64).optional() }), answer: caller },
  'session.show': { ask: nothing, answer: caller },
  'session.close': { ask: nothing, answer: z.object({ closed: z.boolean() }) },
  'session.code': { ask: nothing, answer: z.object({ code: z.string(), expiresAt: instant, url: z.string() }) },
  'tokens.list': { ask: ask({ ...paging, all: z.enum(['true', 'false']).optional() }), answer: page(token) },
  'tokens.create': {
    ask: ask({
      scopes,
      name: name.optional(),
      threadId: name.optional(),
      expiresInMs: z.number().int().positive().optional(),
    }),
    answer: newToken,
  },
  'tokens.revoke': { ask: nothing, answer: token },

  status: { ask: nothing, answer: status },
  'agents.list': { ask: nothing, answer: page(z.object({ name: z.string() })) },
  series: {
    ask: ask({
      from: instant.optional(),
      to: instant.optional(),
      bucketMs: z.coerce.number<number>().int().min(1_000).optional(),
    }),
    answer: z.object({ from: instant, to: instant, bucketMs: z.number(), items: z.array(bucket) }),
  },
  metrics: { ask: nothing, answer: text },
  events: { ask: ask({ after: seq.optional() }), answer: text },
  'events.list': {
    ask: ask({
      limit,
      after: seq.optional(),
      before: seq.optional(),
      type: z.array(z.string().max(LIMITS.nameLength)).max(50).optional(),
      thread: name.optional(),
    }),
    answer: z.object({
      items: z.array(event),
      next: z.number().optional(),
      seq: z.number(),
      forgottenThrough: z.number().optional(),
    }),
  },

  'audit.list': { ask: ask(paging), answer: page(act) },

  'threads.list': { ask: ask(paging), answer: page(listedThread).extend({ seq: z.number() }) },
  'threads.show': { ask: nothing, answer: wholeThread },
  'threads.conversation': {
    ask: ask({ limit, before: seq.optional() }),
    answer: z.object({ items: z.array(step), actions: z.array(action), next: z.number().optional() }),
  },
  'threads.tree': { ask: nothing, answer: branch },
  'threads.stop': {
    ask: nothing,
    answer: thread.extend({ cancelled: z.array(z.string()), observed: z.number() }),
  },
  'threads.resume': { ask: nothing, answer: thread },
  'threads.remove': { ask: ask({ force: z.boolean().optional() }), answer: thread.extend({ deadLetters: z.number() }) },
  'messages.send': {
    ask: ask({
      agent: name.optional(),
      threadId: name.optional(),
      text: z.string().default(''),
      key: name.optional(),
      /** The thread that says it; a token for one thread says nothing for another. */
      from: name.optional(),
      timeoutMs: z.number().int().positive().optional(),
    }),
    answer: sent,
  },
  'messages.list': {
    ask: ask({ ...paging, state: z.array(messageState).optional() }),
    answer: page(message),
  },
  'messages.show': { ask: nothing, answer: wholeMessage },
  'inbox.list': { ask: ask({ ...paging, state: z.array(messageState).optional() }), answer: page(message) },
  'inbox.drain': { ask: ask({ limit: z.number().int().min(1).max(LIMITS.longestPage).optional() }), answer: delivery },
  'inbox.ack': { ask: nothing, answer: z.object({ delivery: z.string(), acknowledged: z.number() }) },
  'inbox.release': { ask: nothing, answer: z.object({ delivery: z.string(), released: z.number() }) },
  'dead.list': { ask: ask({ ...paging, thread: name.optional() }), answer: page(message) },
  'dead.show': { ask: nothing, answer: wholeMessage },
  'dead.retry': { ask: nothing, answer: message.extend({ held: z.boolean() }) },
  'dead.purge': {
    ask: ask({ message: name.optional(), olderThanMs: z.number().int().min(0).optional() }),
    answer: z.object({ purged: z.number() }),
  },

  'runs.list': {
    ask: ask({
      ...paging,
      state: z.array(runState).optional(),
      thread: name.optional(),
      agent: name.optional(),
    }),
    answer: page(run),
  },
  'runs.show': { ask: nothing, answer: wholeRun },
  'runs.cancel': { ask: ask({ reason: note }), answer: run },
  'runs.disown': { ask: nothing, answer: run },
  'runs.events': {
    ask: ask({ limit, after: seq.optional() }),
    answer: z.object({ items: z.array(event), next: z.number().optional() }),
  },
  'runs.statement': { ask: nothing, answer: statement },
  'actions.list': {
    ask: ask({
      ...paging,
      run: name.optional(),
      thread: name.optional(),
      tool: name.optional(),
      state: z.array(action.shape.state).optional(),
    }),
    answer: page(action),
  },
  'actions.show': { ask: nothing, answer: action },
  'actions.again': { ask: ask({ why: note }), answer: action },

  'approvals.list': { ask: ask({ ...paging, state: approvalState.optional() }), answer: page(approval) },
  'approvals.show': { ask: nothing, answer: approval },
  'approvals.decide': {
    ask: ask({ decision: z.enum(['approve', 'skip', 'deny']), digest, note, by }),
    answer: decided,
  },
  'approvals.always': { ask: ask({ digest, note, by }), answer: decided },
  'approvals.edit': { ask: ask({ input: anything, digest, note, by }), answer: edited },
  'doubts.list': { ask: ask(paging), answer: page(doubt) },
  'doubts.show': { ask: nothing, answer: doubt },
  'doubts.resolve': {
    ask: ask({
      resolution: z.enum(['happened', 'did-not-happen', 'run-again', 'give-up']),
      result: anything.optional(),
      why: note,
      by,
      /** With `run-again`: who had begun it on that machine is dead; somebody has made sure of that. */
      deadHost: name.optional(),
    }),
    answer: doubt,
  },

  'workspaces.list': {
    ask: ask({ ...paging, state: z.array(workspaceState).optional(), mode: workspaceMode.optional() }),
    answer: page(workspace),
  },
  'workspaces.report': { ask: ask({ since: instant.optional() }), answer: workspaceReport },
  'workspaces.show': { ask: nothing, answer: workspace },
  'workspaces.diff': { ask: nothing, answer: workspaceDiff },
  'workspaces.land': { ask: ask({ by }), answer: workspace },
  'workspaces.keep': { ask: ask({ branch: name.optional(), by }), answer: workspace },
  'workspaces.discard': { ask: ask({ by }), answer: workspace },
  'workspaces.retry': { ask: ask({ by }), answer: workspace },

  'schedules.list': {
    ask: ask({
      ...paging,
      state: z.array(scheduleState).optional(),
      kind: z.enum(['job', 'followup']).optional(),
      owner: name.optional(),
      thread: name.optional(),
      /** With so many of the instants that come. */
      next: z.coerce.number<number>().int().min(0).max(LIMITS.instantsShown).optional(),
    }),
    answer: page(listedSchedule),
  },
  'schedules.add': { ask: ask({ name, ...when, ...dealing, ...doing, ...asking }), answer: schedule },
  'schedules.preview': {
    ask: ask({ schedule: name.optional(), name: name.optional(), ...when, ...dealing, ...doing }),
    answer: preview,
  },
  'schedules.show': { ask: nothing, answer: wholeSchedule },
  'schedules.edit': { ask: ask({ ...when, ...dealing, ...doing, run: name.optional() }), answer: schedule },
  'schedules.pause': { ask: ask({ reason: note, run: name.optional() }), answer: steeredSchedule },
  'schedules.resume': { ask: ask({ run: name.optional() }), answer: steeredSchedule },
  'schedules.run-now': { ask: ask({ key: name.optional(), run: name.optional() }), answer: occurrence },
  'schedules.remove': { ask: ask({ cancel: z.boolean().optional(), run: name.optional() }), answer: schedule },
  'occurrences.list': {
    ask: ask({ ...paging, schedule: name.optional(), state: z.array(occurrenceState).optional() }),
    answer: page(listedOccurrence),
  },
  'occurrences.show': { ask: nothing, answer: occurrence },
  'followups.list': {
    ask: ask({ ...paging, thread: name.optional(), all: z.enum(['true', 'false']).optional() }),
    answer: page(schedule),
  },
  'followups.add': {
    ask: ask({ threadId: name, text: z.string(), in: when.in, at: when.at, zone: when.zone, reason: note, ...asking }),
    answer: newFollowup,
  },
  'followups.cancel': { ask: ask({ run: name.optional() }), answer: schedule },

  'quotas.list': { ask: nothing, answer: page(quota) },
  'breakers.list': { ask: nothing, answer: page(breaker) },
  'policy.list': { ask: nothing, answer: page(storedRule) },
  'policy.check': {
    ask: nothing,
    answer: z.object({ rules: z.number(), problems: z.array(z.object({ kind: z.string(), text: z.string() })) }),
  },
  'policy.explain': {
    ask: ask({
      agent: name,
      tool: name,
      input: anything.optional(),
      thread: name.optional(),
      effect: z.enum(['read', 'write']).optional(),
    }),
    answer: explained,
  },
  'policy.remove': { ask: nothing, answer: storedRule },
  'hooks.status': { ask: nothing, answer: page(hookStatus) },
  'hooks.hear': { ask: z.looseObject({}), answer: z.looseObject({ output: z.string() }) },
  'hooks.client': { ask: z.looseObject({}), answer: z.looseObject({}) },
} as const satisfies Record<EndpointName, Route>

/** The parts of a path that its caller fills in, as a type. */
type Parts<Path extends string> = Path extends `${string}:${infer Part}/${infer Rest}`
  ? Part | Parts<`/${Rest}`>
  : Path extends `${string}:${infer Part}`
    ? Part
    : never

/** No fields at all would else be "no field of any name", and leave no room for the parts of the path. */
type Said<Fields> = Fields extends Readonly<Record<string, never>> ? unknown : Readonly<Fields>

/** Everything that a caller says: the parts of the path, and the fields of the query or the body. */
export type Ask<N extends EndpointName> = Readonly<Record<Parts<(typeof ENDPOINTS)[N]['path']>, string>> &
  Said<z.input<(typeof ROUTES)[N]['ask']>>

/** Nobody changes an answer. */
type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T

export type Answer<N extends EndpointName> = Frozen<z.output<(typeof ROUTES)[N]['answer']>>
