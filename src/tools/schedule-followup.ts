import { formatDuration } from '../base/duration.ts'
import type { ScheduleId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import type { JsonSchema, Tool, ToolContext, ToolOutcome } from '../loop/ports.ts'
import { AGENT_FOLLOWUPS, addFollowup, cancelFollowupOf } from '../schedule/followup.ts'
import type { AddedFollowup } from '../schedule/followup.ts'
import { livingOf } from '../schedule/job.ts'
import type { Schedule } from '../schedule/schedule.ts'
import {
  INSTANT,
  asAgent,
  done,
  failed,
  inOneLine,
  iso,
  overBecause,
  passed,
  readAhead,
  scheduleIdOf,
  scheduleTool,
  takenAwayBy,
} from './schedule-tool.ts'
import type { ScheduleToolOptions } from './schedule-tool.ts'

export const followupTools = (options: ScheduleToolOptions): Tool[] => [
  scheduleFollowup(options),
  listFollowups(options),
  cancelFollowup(options),
]

interface FollowupInput {
  readonly delay_seconds?: number
  readonly at?: string
  readonly prompt: string
  readonly reason?: string
}

const [LEAST, MOST] = [LIMITS.followupLeastMs / 1_000, LIMITS.followupMostMs / 1_000]

const FOLLOWUP_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    delay_seconds: { type: 'integer', description: `From now: ${LEAST} to ${MOST}. This, or "at".` },
    at: { ...INSTANT, description: `Instead of a delay. ${String(INSTANT['description'])}` },
    prompt: { type: 'string', minLength: 1, description: 'What you will be told then. Write what you need to know.' },
    reason: { type: 'string', minLength: 1, maxLength: 500, description: 'Why; it is shown with the prompt.' },
  },
  required: ['prompt'],
  additionalProperties: false,
}

const scheduleFollowup = (options: ScheduleToolOptions): Tool =>
  scheduleTool(
    {
      name: 'schedule_followup',
      description:
        'Starts a turn of yours later, in this conversation. There is one for each of your runs: a second call takes the place of the first.',
      inputSchema: FOLLOWUP_SCHEMA,
      effect: 'write',
      perform: async (input, context) => follow(input as FollowupInput, context, options),
    },
    (input: FollowupInput) => checked(input, options.clock.now()),
  )

function checked(input: FollowupInput, now: number): { input: FollowupInput } | { error: string } {
  const { delay_seconds: seconds, at, prompt, reason } = input
  if (prompt.trim() === '') return { error: 'prompt: is empty' }
  if ((seconds === undefined) === (at === undefined)) return { error: 'either "delay_seconds" or "at" is needed' }
  if (seconds !== undefined && (seconds < LEAST || seconds > MOST))
    return { error: `delay_seconds: ${seconds} is out of bounds, from ${LEAST} to ${MOST}; nothing was scheduled` }
  const instant = at === undefined ? now : readAhead('at', at, { now })
  if (typeof instant === 'string') return { error: instant }
  const inUtc = at === undefined ? {} : { at: new Date(instant).toISOString() }
  return { input: { ...input, ...inUtc, ...(reason === undefined ? {} : { reason: inOneLine(reason) }) } }
}

async function follow(
  input: FollowupInput,
  context: ToolContext,
  { store, agent }: ScheduleToolOptions,
): Promise<ToolOutcome> {
  const { delay_seconds: seconds = 0, at, prompt, reason } = input
  const { threadId, runId } = context
  const added = await store.apply(addFollowup, {
    id: scheduleIdOf(context),
    threadId,
    when: at === undefined ? { delayMs: seconds * 1_000 } : { at: Date.parse(at) },
    prompt,
    ...(reason === undefined ? {} : { reason }),
    owner: { threadId, runId, agent },
    madeBy: asAgent(agent),
    refusePast: true,
    limits: AGENT_FOLLOWUPS,
  })
  return outcomeOf(added)
}

function outcomeOf(added: AddedFollowup): ToolOutcome {
  switch (added.kind) {
    case 'added': {
      const { schedule, replaced } = added
      return done({
        ...viewFollowup(schedule),
        ...(replaced === undefined ? {} : { replaced: viewFollowup(replaced) }),
      })
    }
    case 'past':
      return failed(passed('at', added.at, added.now))
    case 'unknown-thread':
      return failed('this conversation was removed')
    case 'limit':
      return failed(LIMIT_WORDS[added.limit](added.value))
  }
}

const LIMIT_WORDS = {
  pending: (value: number) =>
    `${value} follow-ups of this conversation are pending already, and that is the limit; cancel some first`,
  aDay: (value: number) =>
    `this conversation has asked for ${value} follow-ups within ${formatDuration(86_400_000)}, and that is the limit`,
}

/** When it was to come stays known of one that is over: it comes once. */
const viewFollowup = ({ id, rule, target, options }: Schedule) => ({
  id,
  due: rule.kind === 'once' ? iso(rule.at) : null,
  ...(target.kind === 'message' ? { prompt: target.text } : {}),
  ...(options.why === undefined ? {} : { reason: options.why }),
})

const NOTHING: JsonSchema = { type: 'object', properties: {}, additionalProperties: false }

const listFollowups = ({ store }: ScheduleToolOptions): Tool =>
  scheduleTool({
    name: 'list_followups',
    description: 'Your follow-ups in this conversation that have not come yet, the next one first.',
    inputSchema: NOTHING,
    effect: 'read',
    perform: async (_, { threadId }) => {
      const pending = await store.read(livingOf, threadId, 'followup', LIMITS.followupsPending)
      return done(pending.filter(({ nextAt }) => nextAt !== null).map(viewFollowup))
    },
  })

const CANCEL_SCHEMA: JsonSchema = {
  type: 'object',
  properties: { id: { type: 'string', minLength: 1, description: 'As schedule_followup or list_followups said it.' } },
  required: ['id'],
  additionalProperties: false,
}

const cancelFollowup = (options: ScheduleToolOptions): Tool =>
  scheduleTool({
    name: 'cancel_followup',
    description: 'Takes back a follow-up of this conversation that has not come yet.',
    inputSchema: CANCEL_SCHEMA,
    effect: 'write',
    perform: async (input, context) => cancel((input as { id: string }).id, context, options),
  })

async function cancel(id: string, context: ToolContext, { store, agent }: ScheduleToolOptions): Promise<ToolOutcome> {
  const by = { by: asAgent(agent), reason: takenAwayBy(agent, context) }
  const cancelled = await store.apply(cancelFollowupOf, context.threadId, id as ScheduleId, by)
  switch (cancelled.kind) {
    case 'cancelled':
      return done({ cancelled: viewFollowup(cancelled.schedule) })
    case 'has-come':
      return failed(`${id} has come already`)
    case 'over':
      return failed(`${id} cannot be cancelled: ${overBecause(cancelled.schedule)}`)
    case 'unknown':
      return failed(`this conversation has no follow-up ${id}; list_followups shows those it has`)
  }
}
