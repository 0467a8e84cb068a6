import { describeError } from '../base/errors.ts'
import { formatDuration, parseDuration } from '../base/duration.ts'
import { LIMITS } from '../base/limits.ts'
import { harmlessVariables } from '../base/variables.ts'
import type { JsonSchema, Tool, ToolContext, ToolOutcome } from '../loop/ports.ts'
import { pauseSchedule, removeSchedule, resumeSchedule } from '../schedule/edit.ts'
import { addJob, jobsOf, ownSchedule } from '../schedule/job.ts'
import type { AddedJob, JobWithLast, NewJob } from '../schedule/job.ts'
import { readName } from '../schedule/request.ts'
import { checkRule, describeRule, settledFor } from '../schedule/rule.ts'
import type { NewRule } from '../schedule/rule.ts'
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
import type { CommandPlace } from './supervised-command.ts'

export interface JobToolOptions extends ScheduleToolOptions {
  readonly place: CommandPlace
  /** The agents that a job may start: those that its agent may delegate to. */
  readonly agents: readonly string[]
  /** Whether a job may run a command: for an agent that has a shell this is nothing new. */
  readonly commands: boolean
}

const ACTIONS = ['create', 'list', 'cancel', 'pause', 'resume'] as const

interface JobInput {
  readonly action: (typeof ACTIONS)[number]
  readonly name?: string
  readonly every?: string
  readonly cron?: string
  readonly zone?: string
  readonly at?: string
  readonly until?: string
  readonly max_firings?: number
  readonly prompt?: string
  readonly agent?: string
  readonly command?: readonly [string, ...string[]]
  readonly folder?: string
  readonly reason?: string
}

/** Creates, lists and changes the jobs of its own thread. Each creation is an action with a decision of its own. */
export function manageJobsTool(options: JobToolOptions): Tool {
  return scheduleTool(
    {
      name: 'manage_jobs',
      description:
        'Jobs that come again and again, or once: a turn of yours in this conversation, or a task for another agent. They outlive this run; what goes wrong with them is told to you here. A name that a job has is not given to another one.',
      inputSchema: schemaOf(options),
      effect: 'write',
      effectOf: (input) => ((input as JobInput).action === 'list' ? 'read' : 'write'),
      perform: async (input, context) => {
        const job = input as JobInput
        if (job.action === 'create') return create(job, context, options)
        return job.action === 'list' ? list(context, options) : change(job, context, options)
      },
    },
    (input: JobInput) => checked(input, options),
  )
}

const text = (description: string, more: object = {}) => ({ type: 'string', minLength: 1, ...more, description })

function schemaOf({ agents, commands }: JobToolOptions): JsonSchema {
  const least = formatDuration(LIMITS.jobEveryLeastMs)
  const properties = {
    action: { type: 'string', enum: ACTIONS, description: 'list only reads.' },
    name: text('Which job. A new one needs a name that no other job has.', { maxLength: 100 }),
    every: text(`For create: the distance, as 30m, 12h or 7d; ${least} at least. This, or "cron", or "at".`),
    cron: text('For create: 5 fields as in crontab(5), as "30 9 * * 1-5".'),
    zone: text('The IANA time zone of "cron", as Europe/Berlin. UTC if it is not said.'),
    at: { ...INSTANT, description: `For create: once, then. ${String(INSTANT['description'])}` },
    until: { ...INSTANT, description: 'It ends then. Written as "at" is.' },
    max_firings: { type: 'integer', minimum: 1, description: 'It ends after so many.' },
    prompt: text('For create: what you, or "agent", will be told each time. Write what is needed to know.'),
    reason: text('Why; it is shown with the prompt.', { maxLength: 500 }),
  }
  const agent = { type: 'string', enum: agents, description: 'Who is told instead of you, in a new thread each time.' }
  const command = {
    type: 'array',
    items: { type: 'string' },
    minItems: 1,
    description: 'Instead of a prompt: a program with its arguments.',
  }
  const folder = text('The working folder of the command.')
  return {
    type: 'object',
    properties: {
      ...properties,
      ...(agents.length === 0 ? {} : { agent }),
      ...(commands ? { command, folder } : {}),
    },
    required: ['action'],
    additionalProperties: false,
  }
}

type Checked = { readonly input: JobInput } | { readonly error: string }

function checked(input: JobInput, { clock }: JobToolOptions): Checked {
  if (input.action === 'list') return { input: { action: 'list' } }
  if (input.name === undefined) return { error: `name: is needed to ${input.action} a job` }
  if (input.action !== 'create') return { input: { action: input.action, name: input.name } }
  try {
    return checkedNew(input, clock.now())
  } catch (error) {
    return { error: describeError(error) }
  }
}

function checkedNew(input: JobInput, now: number): Checked {
  const { name = '', prompt, command, agent, reason } = input
  readName(name)
  if ((prompt === undefined) === (command === undefined)) return { error: 'what is to be done is missing: "prompt"' }
  if (command !== undefined && agent !== undefined) return { error: 'either "agent" with "prompt", or "command"' }
  if (command === undefined && input.folder !== undefined) return { error: 'folder: is for a command' }
  if (prompt?.trim() === '') return { error: 'prompt: is empty' }
  const until = input.until === undefined ? undefined : readAhead('until', input.until, { now })
  if (typeof until === 'string') return { error: until }
  const rule = ruleOf(input, now)
  if (typeof rule === 'string') return { error: rule }
  checkRule(settledFor(rule, now))
  return {
    input: {
      ...input,
      ...(rule.kind === 'once' ? { at: new Date(rule.at).toISOString() } : {}),
      ...(until === undefined ? {} : { until: new Date(until).toISOString() }),
      ...(rule.kind === 'cron' ? { zone: rule.zone } : {}),
      ...(reason === undefined ? {} : { reason: inOneLine(reason) }),
    },
  }
}

/** When, or what is wrong with it in words for the model. */
function ruleOf({ every, cron, zone, at }: JobInput, now: number): NewRule | string {
  if ([every, cron, at].filter((each) => each !== undefined).length !== 1)
    return 'one of "every", "cron" and "at" is needed'
  if (zone !== undefined && cron === undefined) return 'zone: is for "cron"'
  if (at !== undefined) {
    const instant = readAhead('at', at, { now })
    return typeof instant === 'string' ? instant : { kind: 'once', at: instant }
  }
  if (cron !== undefined) {
    if (cron.trim().split(/\s+/).length === 6) return 'cron: has 6 fields; a job comes once a minute at most'
    return { kind: 'cron', expression: cron.trim(), zone: zone ?? 'UTC' }
  }
  const everyMs = parseDuration(every ?? '')
  if (everyMs >= LIMITS.jobEveryLeastMs) return { kind: 'every', everyMs }
  return `every: ${every} is too often, ${formatDuration(LIMITS.jobEveryLeastMs)} at least`
}

async function create(input: JobInput, context: ToolContext, options: JobToolOptions): Promise<ToolOutcome> {
  const { store, agent } = options
  const { threadId, runId } = context
  const { name = '', until, max_firings: maxFirings, reason } = input
  const added = await store.apply(addJob, {
    id: scheduleIdOf(context),
    name,
    rule: storedRule(input),
    target: targetOf(input, options),
    options: {
      ...(until === undefined ? {} : { until: Date.parse(until) }),
      ...(maxFirings === undefined ? {} : { maxFirings }),
      ...(reason === undefined ? {} : { why: reason }),
    },
    owner: { threadId, runId, agent },
    madeBy: asAgent(agent),
    limits: { jobs: LIMITS.jobsAThread, depth: LIMITS.delegationDepth },
  })
  return outcomeOf(added, name)
}

/** It was checked when it was asked for; whether its instant has passed meanwhile is for the database to say. */
function storedRule({ every, cron, zone = 'UTC', at }: JobInput): NewRule {
  if (at !== undefined) return { kind: 'once', at: Date.parse(at) }
  if (cron !== undefined) return { kind: 'cron', expression: cron.trim(), zone }
  return { kind: 'every', everyMs: parseDuration(every ?? '') }
}

function targetOf({ prompt = '', agent, command, folder }: JobInput, { place }: JobToolOptions): NewJob['target'] {
  if (command !== undefined)
    return { kind: 'command', argv: command, cwd: folder ?? place.cwd, env: harmlessVariables(place.env) }
  return agent === undefined ? { kind: 'self', text: prompt } : { kind: 'agent', agent, text: prompt }
}

function outcomeOf(added: AddedJob, name: string): ToolOutcome {
  switch (added.kind) {
    case 'added':
    case 'existing':
      return done(viewJob(added.schedule))
    case 'taken':
      return failed(
        `the name ${name} is taken, and nothing was changed: ${briefly(added.schedule)}; choose another name, or cancel that one first if it is yours`,
      )
    case 'never':
      return failed('no instant of it lies ahead')
    case 'past':
      return failed(passed('at', added.at, added.now))
    case 'unknown-thread':
      return failed('this conversation was removed')
    case 'limit':
      return failed(LIMIT_WORDS[added.limit](added.value))
  }
}

const LIMIT_WORDS = {
  jobs: (value: number) => `this conversation has ${value} jobs already, and that is the limit; cancel some first`,
  depth: (value: number) => `delegation is ${value} levels deep, and that is the limit`,
}

const briefly = ({ id, rule, state, madeBy }: Schedule) =>
  `it is ${id}, ${describeRule(rule)}, ${state}, made by ${madeBy}`

async function list({ threadId }: ToolContext, { store }: JobToolOptions): Promise<ToolOutcome> {
  return done((await store.read(jobsOf, threadId, LIMITS.jobsAThread)).map(viewWithLast))
}

const viewWithLast = ({ job, last }: JobWithLast) => ({
  ...viewJob(job),
  ...(last === undefined
    ? {}
    : { last: { due: iso(last.dueAt), state: last.state, ...(last.reason === null ? {} : { reason: last.reason }) } }),
})

function viewJob({ id, name, rule, target, state, reason, nextAt, options }: Schedule) {
  const what =
    target.kind === 'message'
      ? { prompt: target.text }
      : target.kind === 'agent'
        ? { agent: target.agent, prompt: target.text }
        : target.kind === 'command'
          ? { command: target.argv }
          : target.kind === 'call'
            ? { function: target.function }
            : { webhook: target.url }
  return {
    id,
    name,
    when: describeRule(rule),
    ...what,
    state,
    ...(reason === null ? {} : { why_so: reason }),
    next: iso(nextAt),
    ...(options.why === undefined ? {} : { reason: options.why }),
  }
}

async function change({ action, name = '' }: JobInput, context: ToolContext, options: JobToolOptions) {
  const { store, agent } = options
  const own = await store.read(ownSchedule, context.threadId, 'job', name)
  if (own === undefined) return failed(`this conversation has no job ${name}; action "list" shows those it has`)
  if (action === 'cancel') return cancel(own, context, options)
  const by = asAgent(agent)
  const changed = await (action === 'pause'
    ? store.apply(pauseSchedule, own.id, by)
    : store.apply(resumeSchedule, own.id, by))
  if (changed.kind === 'unknown') return failed(`there is no job ${name} any more`)
  return changed.kind === 'over' ? failed(`${name}: ${overBecause(changed.schedule)}`) : done(viewJob(changed.schedule))
}

async function cancel(own: Schedule, context: ToolContext, { store, agent }: JobToolOptions): Promise<ToolOutcome> {
  const reason = takenAwayBy(agent, context)
  const removed = await store.apply(removeSchedule, own.id, asAgent(agent), false, reason)
  if (removed.kind === 'unknown') return failed(`there is no job ${own.name} any more`)
  if (removed.kind === 'already' && removed.schedule.reason !== reason)
    return failed(`${own.name}: ${overBecause(removed.schedule)}`)
  return done({ cancelled: own.name, id: own.id })
}
