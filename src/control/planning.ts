import { isAbsolute } from 'node:path'

import { insideRun } from '../actions/verdict.ts'
import { covers } from '../api/endpoint.ts'
import type { Scope } from '../api/endpoint.ts'
import type { Answer, Ask } from '../api/routes.ts'
import { formatDuration } from '../base/duration.ts'
import { HoldfastError } from '../base/errors.ts'
import { newScheduleId } from '../base/ids.ts'
import { machineZone } from '../base/zone.ts'
import { knownAgents } from '../runs/worker.ts'
import { addSchedule, editSchedule } from '../schedule/edit.ts'
import type { NewSchedule } from '../schedule/edit.ts'
import { until } from '../schedule/plan.ts'
import { commandOf, messageTo, newThreadOf, readName, readOptions, readRule, webhookTo } from '../schedule/request.ts'
import type { OptionsRequest, WhenRequest } from '../schedule/request.ts'
import { nextInstants, settledFor } from '../schedule/rule.ts'
import type { NewRule, Rule } from '../schedule/rule.ts'
import { DEFAULT_OPTIONS } from '../schedule/schedule.ts'
import type { Schedule, Target } from '../schedule/schedule.ts'
import { viewRule, viewSchedule } from '../schedule/view.ts'
import { describeWhen, fromNow, zoneOf } from '../schedule/words.ts'
import type { Desk } from './desk.ts'
import { theRun, theSchedule, theThread } from './find.ts'
import { filled } from './page.ts'
import { isOver, maker, viewInstant } from './schedules.ts'

/** What is asked for becomes a schedule, in the words of `src/schedule/request.ts`. */

const wrong = (message: string, remedy: string) => new HoldfastError('usage/schedule', message, { remedy })

const neverComes = () =>
  wrong('it would never come: no instant lies ahead', 'look at until; a dry run shows what comes')

export async function add(desk: Desk, ask: Ask<'schedules.add'>): Promise<Answer<'schedules.add'>> {
  const rule = readWhen(desk, ask)
  const zone = ask.zone ?? machineZone()
  const options = { ...DEFAULT_OPTIONS, ...readOptions(ask as OptionsRequest, DEFAULT_OPTIONS, zone) }
  const name = readName(ask.name)
  const target = await targetOf(desk, ask)
  if (target === undefined) throw noTarget()
  refuseNarrow(desk, target)
  const schedule: NewSchedule = {
    id: newScheduleId(desk.runtime.random),
    name,
    kind: 'job',
    rule,
    target,
    options,
    madeBy: maker(desk, ask),
    ...filled({ owner: await ownerOf(desk, ask) }),
  }
  const added = await desk.apply(addSchedule, schedule)
  if (added.kind === 'never') throw neverComes()
  if (added.kind === 'taken') throw nameTaken(added.schedule)
  return viewSchedule(added.schedule)
}

/** What a run asks for may reach no more than its own tools, whoever is to be told. */
export async function ownerOf(
  desk: Desk,
  { owner, run }: Pick<Ask<'schedules.add'>, 'owner' | 'run'>,
): Promise<NewSchedule['owner']> {
  const { store } = desk.runtime
  const asking = run === undefined ? undefined : await theRun(store, run)
  if (owner === undefined) return asking && { threadId: asking.threadId, agent: asking.agent, runId: asking.id }
  const { id: threadId, agent } = await theThread(store, owner)
  return { threadId, agent, ...filled({ runId: asking?.id }) }
}

export const noTarget = () =>
  wrong(
    'it does not say what is to be done',
    'write -- COMMAND, --thread THREAD TEXT, --agent AGENT TEXT or --webhook URL',
  )

const nameTaken = ({ name, rule, state }: Schedule) =>
  new HoldfastError('schedules/name-taken', `"${name}" is ${state} already: ${describeWhen(rule)}`, {
    remedy: `change it with \`holdfast schedule edit ${name}\`, or choose another name`,
  })

const NEEDED: { readonly [Kind in Target['kind']]?: readonly [Scope, string] } = {
  command: ['admin', 'runs a command, which is whatever a program can do on this machine,'],
  webhook: ['approve', 'calls an address without asking again'],
}

/** Some of what a schedule does is more than operating: making it is a yes to each of its firings. */
function refuseNarrow({ who }: Desk, { kind }: Target): void {
  const [scope, why] = NEEDED[kind] ?? []
  if (scope === undefined || covers(who.scopes, scope)) return
  throw new HoldfastError('auth/scope', `a schedule that ${why} needs the scope ${scope}`, {
    remedy: 'use a token that has it, or let an agent do it, whose calls are decided on',
  })
}

/** An instant that has passed is a slip of the hand: whoever wants it now says so in another way. */
export function readWhen({ runtime }: Pick<Desk, 'runtime'>, when: WhenAsked): NewRule {
  const now = runtime.clock.now()
  const rule = readRule(when as WhenRequest, { now, zone: machineZone() })
  if (rule.kind !== 'once' || rule.at > now) return rule
  throw wrong(`${when.at ?? ''} has passed, ${fromNow(rule.at, now)}`, 'choose a later instant, or say --in 1s')
}

type WhenAsked = { readonly [K in keyof WhenRequest]?: string | undefined }
type Doing = Pick<
  Ask<'schedules.add'>,
  'threadId' | 'agent' | 'text' | 'command' | 'cwd' | 'env' | 'timeout' | 'webhook' | 'method' | 'body'
>

/** Undefined: nothing of it was said. */
async function targetOf(desk: Desk, ask: Doing): Promise<Target | undefined> {
  const { threadId, agent, command, webhook, method, body, text = '' } = ask
  const said = Object.entries({ threadId, agent, command, webhook }).filter(([, value]) => value !== undefined)
  if (said.length > 1)
    throw wrong(
      `${said.map(([name]) => name).join(' and ')} are two answers to what is to be done`,
      'make a schedule for each',
    )
  if (threadId !== undefined) return messageTo(await theThread(desk.runtime.store, threadId), text)
  if (agent !== undefined) return newThreadOf(await knownAgent(desk, agent), text)
  if (webhook !== undefined) return webhookTo({ url: webhook, ...filled({ method, body }) })
  return command === undefined ? undefined : commandTarget(ask, command)
}

function commandTarget({ cwd, env, timeout }: Doing, argv: readonly string[]): Target {
  return commandOf({ argv, cwd: folderOf(cwd), ...filled({ env, timeout }) })
}

function folderOf(cwd: string | undefined): string {
  if (cwd !== undefined && isAbsolute(cwd)) return cwd
  throw wrong('it does not say where the command runs', 'give cwd as a whole path')
}

/** One of the configuration, or one that somebody has. */
async function knownAgent({ runtime }: Desk, agent: string): Promise<string> {
  const seen = await runtime.store.read(knownAgents)
  const known = [...new Set([...runtime.agents, ...seen.map(({ agent: name }) => name)])].toSorted()
  if (known.includes(agent)) return agent
  const named = known.filter((name) => !name.includes(':'))
  throw new HoldfastError('not-found/agent', `there is no agent "${agent}"`, {
    remedy: named.length === 0 ? 'the configuration has none' : `there are: ${named.join(', ')}`,
  })
}

export async function edit(desk: Desk, ask: Ask<'schedules.edit'>): Promise<Answer<'schedules.edit'>> {
  const schedule = await theSchedule(desk.runtime.store, ask.schedule)
  const { rule, options } = changed(desk, schedule, ask)
  const target = (await targetOf(desk, ask)) ?? adjusted(schedule.target, ask)
  if (rule === undefined && target === undefined && Object.keys(options).length === 0)
    throw wrong('this changes nothing', 'say what is to be different')
  if (target !== undefined) refuseNarrow(desk, target)
  if (target?.kind === 'webhook' && schedule.ownerRun === null && ask.run !== undefined)
    throw insideRun(`this process was started by ${ask.run}`)
  const edited = await desk.apply(editSchedule, schedule.id, { options, ...filled({ rule, target }) }, maker(desk, ask))
  if (edited.kind === 'never') throw neverComes()
  if (edited.kind !== 'edited') throw isOver(schedule)
  return viewSchedule(edited.schedule)
}

function changed(desk: Desk, schedule: Schedule, ask: WhenAsked & object) {
  const when = editedWhen(schedule.rule, ask)
  const rule = when === undefined ? undefined : readWhen(desk, when)
  const options = readOptions(ask as OptionsRequest, schedule.options, ask.zone ?? zoneOf(schedule.rule))
  return { rule, options }
}

/** What is not said of a rule stays: another expression is one in the same zone. */
function editedWhen(rule: Rule, asked: WhenAsked): WhenAsked | undefined {
  const { in: delay, at, every, anchor, cron, zone } = asked
  const isOther = delay !== undefined || at !== undefined || every !== undefined
  if (rule.kind === 'cron' && !isOther && (cron ?? zone) !== undefined)
    return { ...asked, cron: cron ?? rule.expression, zone: zone ?? rule.zone }
  if (rule.kind === 'every' && !isOther && cron === undefined && anchor !== undefined)
    return { ...asked, every: formatDuration(rule.everyMs) }
  return isOther || cron !== undefined || anchor !== undefined ? asked : undefined
}

/** Only where or how long: the command stays. */
function adjusted(target: Target, { cwd, timeout }: Doing): Target | undefined {
  if (cwd === undefined && timeout === undefined) return undefined
  if (target.kind !== 'command') throw wrong('--cwd and --timeout are for a command', 'leave them out')
  const moved = { ...target, cwd: cwd === undefined ? target.cwd : folderOf(cwd) }
  return timeout === undefined ? moved : commandOf({ ...moved, timeout })
}

const SHOWN = 10

/** What would come, and nothing stored. */
export async function preview(desk: Desk, ask: Ask<'schedules.preview'>): Promise<Answer<'schedules.preview'>> {
  const now = desk.runtime.clock.now()
  const base =
    ask.schedule === undefined
      ? { options: DEFAULT_OPTIONS, firings: 0, rule: undefined }
      : await theSchedule(desk.runtime.store, ask.schedule)
  const { rule: asked, options: said } =
    'id' in base
      ? changed(desk, base, ask)
      : {
          rule: readWhen(desk, ask),
          options: readOptions(ask as OptionsRequest, DEFAULT_OPTIONS, ask.zone ?? machineZone()),
        }
  if (ask.name !== undefined) readName(ask.name)
  await targetOf(desk, ask)
  const rule = asked === undefined ? base.rule! : settledFor(asked, now)
  const options = { ...base.options, ...said }
  const zone = zoneOf(rule)
  const left = options.maxFirings === undefined ? SHOWN : Math.max(options.maxFirings - base.firings, 0)
  const instants = nextInstants(rule, now, Math.min(SHOWN, left)).filter((at) => until({ options }, at) !== undefined)
  return { rule: viewRule(rule), zone, instants: instants.map((at) => viewInstant(at, zone)) }
}
