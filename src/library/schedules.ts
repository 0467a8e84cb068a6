import { resolve } from 'node:path'

import { HoldfastError } from '../base/errors.ts'
import { newMessageId, newRunId, newScheduleId, newThreadId } from '../base/ids.ts'
import type { RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { thisUser } from '../base/user.ts'
import { harmlessVariables } from '../base/variables.ts'
import { machineZone } from '../base/zone.ts'
import { runAround } from '../define/inside.ts'
import { findRun } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import { addSchedule, pauseSchedule, removeSchedule, resumeSchedule } from '../schedule/edit.ts'
import type { NewSchedule as StoredSchedule } from '../schedule/edit.ts'
import { runNow } from '../schedule/fire.ts'
import { AGENT_FOLLOWUPS, addFollowup } from '../schedule/followup.ts'
import { listOccurrences } from '../schedule/occurrence.ts'
import { commandOf, messageTo, newThreadOf, readName, readOptions, readRule, webhookTo } from '../schedule/request.ts'
import type { OptionsRequest, WhenRequest } from '../schedule/request.ts'
import { DEFAULT_OPTIONS, LIVE_SCHEDULES, listSchedules, schedulesByName } from '../schedule/schedule.ts'
import type { Schedule as StoredOne, Target } from '../schedule/schedule.ts'
import { viewOccurrence, viewSchedule } from '../schedule/view.ts'
import type { OccurrenceView, ScheduleView } from '../schedule/view.ts'
import type { Runtime } from '../runtime.ts'
import { findThread } from '../threads/thread.ts'
import type { Thread } from '../threads/thread.ts'

/** When, what, and how it is to be dealt with; durations as `30m`, instants as ISO 8601 or a Date. */
export type NewSchedule = WhenRequest &
  OptionsRequest & {
    readonly name: string
    /** A thread that is told what becomes of it. */
    readonly owner?: string
  } & (
    | { readonly threadId: string; readonly text: string }
    | { readonly agent: string; readonly text: string }
    | {
        readonly command: readonly string[]
        readonly cwd?: string
        readonly env?: Readonly<Record<string, string>>
        readonly timeout?: string
      }
    | { readonly function: string; readonly input?: unknown }
    | { readonly webhook: string; readonly method?: string; readonly body?: unknown }
  )

export interface Schedules {
  /** A name that a living one has rejects with `schedules/name-taken`: nothing is replaced unasked. */
  add(schedule: NewSchedule): Promise<ScheduleView>
  /** What comes next first; `all`: also those that are over. Follow-ups too. A page of them. */
  list(options?: { readonly all?: boolean }): Promise<ScheduleView[]>
  /** By name or id. */
  get(name: string): Promise<ScheduleView>
  pause(name: string, reason?: string): Promise<ScheduleView>
  resume(name: string): Promise<ScheduleView>
  /** A firing by hand; the next regular one stays where it is. The same key is the same firing. */
  runNow(name: string, options?: { readonly key?: string }): Promise<OccurrenceView>
  remove(name: string, options?: { readonly cancel?: boolean }): Promise<ScheduleView>
  /** Newest first. */
  occurrences(name: string, options?: { readonly limit?: number }): Promise<OccurrenceView[]>
}

/** A message to a thread, later. */
export type NewFollowUp = Pick<WhenRequest, 'in' | 'at'> & {
  readonly threadId: string
  readonly text: string
  readonly reason?: string
}

const notFound = (noun: 'schedule' | 'thread' | 'agent' | 'function', given: string, remedy: string) =>
  new HoldfastError(`not-found/${noun}`, `there is no ${noun} "${given}"`, { remedy })

const over = ({ name, state, reason }: StoredOne) =>
  new HoldfastError('schedules/over', `${name} is ${state}${reason === null ? '' : `: ${reason}`}`, {
    remedy: 'add a new one; the name is free',
  })

const neverComes = () =>
  new HoldfastError('usage/schedule', 'it would never come: no instant lies ahead', { remedy: 'look at until' })

export function openSchedules(runtime: Runtime): Schedules {
  const { store, random } = runtime
  const find = async (name: string): Promise<StoredOne> => {
    const found = (await store.read(schedulesByName, name)).find((each) => each.name === name || each.id === name)
    return found ?? Promise.reject(notFound('schedule', name, 'runtime.schedules.list() has them'))
  }
  /** Of every verb the answer has the schedule, or says that it is over. */
  const steered = async (schedule: StoredOne, answer: Promise<{ kind: string; schedule?: StoredOne }>) => {
    const { kind, schedule: changed = schedule } = await answer
    if (kind === 'over' || kind === 'unknown') throw over(changed)
    return viewSchedule(changed)
  }
  return {
    add: (schedule) => add(runtime, schedule),
    list: async ({ all = false } = {}) => {
      const filter = { limit: LIMITS.page, ...(all ? {} : { states: LIVE_SCHEDULES }) }
      return (await store.read(listSchedules, filter)).map(viewSchedule)
    },
    get: async (name) => viewSchedule(await find(name)),
    pause: async (name, reason) => {
      const schedule = await find(name)
      return steered(schedule, store.apply(pauseSchedule, schedule.id, thisUser(), reason))
    },
    resume: async (name) => {
      const schedule = await find(name)
      return steered(schedule, store.apply(resumeSchedule, schedule.id, thisUser()))
    },
    remove: async (name, { cancel = false } = {}) => {
      const schedule = await find(name)
      const removed = await store.apply(removeSchedule, schedule.id, thisUser(), cancel)
      if (removed.kind !== 'removed') throw over(schedule)
      return viewSchedule(removed.schedule)
    },
    runNow: async (name, { key = random.hex(8) } = {}) => {
      const schedule = await find(name)
      const ids = { threadId: newThreadId(random), runId: newRunId(random), messageId: newMessageId(random) }
      const fired = await store.apply(runNow, schedule.id, key, thisUser(), ids)
      if (fired.kind !== 'begun') throw over(schedule)
      return viewOccurrence(fired.occurrence)
    },
    occurrences: async (name, { limit = LIMITS.page } = {}) => {
      const { id: scheduleId } = await find(name)
      return (await store.read(listOccurrences, { scheduleId, limit })).map((each) => viewOccurrence(each))
    },
  }
}

async function add(runtime: Runtime, schedule: NewSchedule): Promise<ScheduleView> {
  const { store, clock, random } = runtime
  const zone = machineZone()
  const named = schedule.owner === undefined ? undefined : await theThread(runtime, schedule.owner)
  const owner = ownedBy(await runInside(runtime), named)
  const stored: StoredSchedule = {
    id: newScheduleId(random),
    name: readName(schedule.name),
    kind: 'job',
    rule: readRule(schedule, { now: clock.now(), zone }),
    target: await targetOf(runtime, schedule),
    options: { ...DEFAULT_OPTIONS, ...readOptions(schedule, DEFAULT_OPTIONS, schedule.zone ?? zone) },
    madeBy: owner?.runId ?? thisUser(),
    ...(owner === undefined ? {} : { owner }),
  }
  const added = await store.apply(addSchedule, stored)
  if (added.kind === 'never') throw neverComes()
  if (added.kind !== 'taken') return viewSchedule(added.schedule)
  throw new HoldfastError('schedules/name-taken', `"${schedule.name}" is ${added.schedule.state} already`, {
    remedy: 'remove that one first, or choose another name',
  })
}

/** The run whose tool is calling, or that started this process: what it asks for is its own, and no person's. */
async function runInside({ store }: Runtime): Promise<Run | undefined> {
  const id = runAround() ?? process.env['HOLDFAST_RUN']
  return id === undefined || id === '' ? undefined : store.read(findRun, id as RunId)
}

function ownedBy(run: Run | undefined, named: Thread | undefined): StoredSchedule['owner'] {
  const told =
    named === undefined
      ? run && { threadId: run.threadId, agent: run.agent }
      : { threadId: named.id, agent: named.agent }
  return told === undefined || run === undefined ? told : { ...told, runId: run.id }
}

async function theThread({ store }: Runtime, id: string): Promise<Thread> {
  const thread = await store.read(findThread, id as ThreadId)
  if (thread === undefined) throw notFound('thread', id, 'send something to it first, and it is opened')
  return thread
}

async function targetOf(runtime: Runtime, schedule: NewSchedule): Promise<Target> {
  if ('threadId' in schedule) return messageTo(await theThread(runtime, schedule.threadId), schedule.text)
  if ('function' in schedule) return callOf(runtime, schedule)
  if ('webhook' in schedule) return webhookTo({ ...schedule, url: schedule.webhook })
  if ('command' in schedule) {
    const { command: argv, cwd = '.', env = harmlessVariables(process.env) } = schedule
    const { timeout } = schedule
    return commandOf({ argv, cwd: resolve(cwd), env, ...(timeout === undefined ? {} : { timeout }) })
  }
  if (runtime.agents.includes(schedule.agent)) return newThreadOf(schedule.agent, schedule.text)
  throw notFound('agent', schedule.agent, `there are: ${runtime.agents.join(', ')}`)
}

function callOf(
  { agents }: Runtime,
  { function: name, input }: { readonly function: string; readonly input?: unknown },
): Target {
  if (!agents.includes(name)) throw notFound('function', name, `there are: ${agents.join(', ')}`)
  return { kind: 'call', function: name, ...(input === undefined ? {} : { input }) }
}

/** Those of a run to its own thread replace each other; what it asks for elsewhere has nothing to do with them. */
const askerOf = ({ id, threadId, agent }: Run, to: ThreadId) => ({
  threadId,
  agent,
  ...(threadId === to ? { runId: id } : {}),
})

export async function followUp(runtime: Runtime, asked: NewFollowUp): Promise<ScheduleView> {
  const { store, clock, random } = runtime
  const rule = readRule(asked, { now: clock.now(), zone: machineZone() })
  const run = await runInside(runtime)
  const { threadId, text } = messageTo(await theThread(runtime, asked.threadId), asked.text)
  const added = await store.apply(addFollowup, {
    id: newScheduleId(random),
    threadId,
    when: rule.kind === 'in' ? { delayMs: rule.delayMs } : { at: (rule as { readonly at: number }).at },
    prompt: text,
    madeBy: run?.id ?? thisUser(),
    ...(asked.reason === undefined ? {} : { reason: asked.reason }),
    ...(run === undefined ? {} : { owner: askerOf(run, threadId), limits: AGENT_FOLLOWUPS }),
  })
  if (added.kind === 'limit')
    throw new HoldfastError('schedules/limit', `this thread has ${added.value} follow-ups already`, {
      remedy: 'that many is a loop; remove some',
    })
  if (added.kind !== 'added') throw notFound('thread', asked.threadId, 'it was removed meanwhile')
  return viewSchedule(added.schedule)
}
