import { iso } from '../base/clock.ts'
import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import { newMessageId, newRunId, newThreadId } from '../base/ids.ts'
import type { OccurrenceId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { localTime } from '../base/zone.ts'
import { findRun } from '../runs/run.ts'
import { pauseSchedule, removeSchedule, resumeSchedule } from '../schedule/edit.ts'
import { runNow as fireNow } from '../schedule/fire.ts'
import { findOccurrence, listOccurrences } from '../schedule/occurrence.ts'
import type { Occurrence } from '../schedule/occurrence.ts'
import { until } from '../schedule/plan.ts'
import { nextInstants } from '../schedule/rule.ts'
import { findSchedule, listSchedules } from '../schedule/schedule.ts'
import type { Schedule } from '../schedule/schedule.ts'
import { viewOccurrence, viewSchedule } from '../schedule/view.ts'
import { zoneOf } from '../schedule/words.ts'
import type { Desk } from './desk.ts'
import { theSchedule, theThread } from './find.ts'
import { filled, paged } from './page.ts'

/** What comes by itself: how it stands, what came of it, and how it is steered. */

/** Who does it, for the record: the run that asks, or whoever called. Over HTTP a run is only what its caller says. */
export function maker({ who: { by, via } }: Desk, { run }: { readonly run?: string | undefined }): string {
  if (run === undefined) return by
  return via === 'command line' ? run : `${run}, as ${by} says`
}

export const isOver = ({ name, state, reason }: Schedule) =>
  new HoldfastError('schedules/over', `${name} is ${state}${reason === null ? '' : `: ${reason}`}`, {
    remedy: 'add a new one; the name is free',
  })

export async function list(desk: Desk, ask: Ask<'schedules.list'>): Promise<Answer<'schedules.list'>> {
  const { limit = LIMITS.page, state: states, kind, next } = ask
  const { store } = desk.runtime
  const found = await desk.read(listSchedules, {
    limit,
    ...filled({
      states,
      kind,
      after: ask.after === undefined ? undefined : (await theSchedule(store, ask.after)).id,
      ownerThread: ask.owner === undefined ? undefined : (await theThread(store, ask.owner)).id,
      targetThread: ask.thread === undefined ? undefined : (await theThread(store, ask.thread)).id,
    }),
  })
  const shown = (each: Schedule) =>
    next === undefined ? viewSchedule(each) : { ...viewSchedule(each), next: comingOf(each, next) }
  return paged(found.map(shown), limit)
}

const LAST = 10
const NEXT = 5

/** The last and the next firings. */
export async function show(desk: Desk, ask: Ask<'schedules.show'>): Promise<Answer<'schedules.show'>> {
  const schedule = await theSchedule(desk.runtime.store, ask.schedule)
  const found = await desk.read(listOccurrences, { scheduleId: schedule.id, limit: LAST })
  const last = await Promise.all(found.toReversed().map((each) => viewWithRun(desk, each)))
  return { ...viewSchedule(schedule), zone: zoneOf(schedule.rule), last, next: comingOf(schedule, NEXT) }
}

/** From the instant that is stored: it may be late, and then it still comes. */
function comingOf({ nextAt, rule, options, firings, state }: Schedule, count: number) {
  if (nextAt === null || state !== 'active' || count === 0) return []
  const left = options.maxFirings === undefined ? count : Math.max(Math.min(count, options.maxFirings - firings), 1)
  const instants = [nextAt, ...nextInstants(rule, nextAt, left - 1)]
  return instants.filter((at) => until({ options }, at) !== undefined).map((at) => viewInstant(at, zoneOf(rule)))
}

export const viewInstant = (at: number, zone: string) => ({ at: iso(at), local: localTime(at, zone) })

/** While it is open, with what the run is at that it led to. */
async function viewWithRun(desk: Desk, occurrence: Occurrence): Promise<Answer<'occurrences.show'>> {
  const { runId, state } = occurrence
  const isOpen = state === 'dispatched' && runId !== null
  return viewOccurrence(occurrence, isOpen ? await desk.read(findRun, runId) : undefined)
}

export async function ledger(desk: Desk, ask: Ask<'occurrences.list'>): Promise<Answer<'occurrences.list'>> {
  const { limit = LIMITS.page, state: states } = ask
  const only = ask.schedule === undefined ? undefined : await theSchedule(desk.runtime.store, ask.schedule)
  const after = ask.after === undefined ? undefined : (await theOccurrence(desk, ask.after)).id
  const found = await desk.read(listOccurrences, { limit, ...filled({ states, after, scheduleId: only?.id }) })
  const schedules = new Map<string, Schedule | undefined>(only === undefined ? [] : [[only.id, only]])
  for (const { scheduleId } of found)
    if (!schedules.has(scheduleId)) schedules.set(scheduleId, await desk.read(findSchedule, scheduleId))
  const lines = found.map(async (each) => {
    const schedule = schedules.get(each.scheduleId)
    const { name, zone } =
      schedule === undefined
        ? { name: each.scheduleId, zone: 'UTC' }
        : { name: schedule.name, zone: zoneOf(schedule.rule) }
    return { ...(await viewWithRun(desk, each)), schedule: { name, zone } }
  })
  return paged(await Promise.all(lines), limit)
}

async function theOccurrence(desk: Desk, id: string): Promise<Occurrence> {
  const found = await desk.read(findOccurrence, id as OccurrenceId)
  if (found !== undefined) return found
  throw new HoldfastError('not-found/occurrence', `there is no occurrence "${id}"`, {
    remedy: '`holdfast schedule occurrences` shows them; old ones are forgotten',
  })
}

export async function showOccurrence(desk: Desk, ask: Ask<'occurrences.show'>): Promise<Answer<'occurrences.show'>> {
  return viewWithRun(desk, await theOccurrence(desk, ask.occurrence))
}

export async function pause(desk: Desk, ask: Ask<'schedules.pause'>): Promise<Answer<'schedules.pause'>> {
  const schedule = await theSchedule(desk.runtime.store, ask.schedule)
  const paused = await desk.apply(pauseSchedule, schedule.id, maker(desk, ask), ask.reason)
  if (paused.kind === 'unknown' || paused.kind === 'over') throw isOver(schedule)
  return { ...viewSchedule(paused.schedule), ...(paused.kind === 'already' ? { already: true } : {}) }
}

export async function resume(desk: Desk, ask: Ask<'schedules.resume'>): Promise<Answer<'schedules.resume'>> {
  const schedule = await theSchedule(desk.runtime.store, ask.schedule)
  const resumed = await desk.apply(resumeSchedule, schedule.id, maker(desk, ask))
  if (resumed.kind === 'unknown') throw isOver(schedule)
  if (resumed.kind === 'over') throw isOver(resumed.schedule)
  return { ...viewSchedule(resumed.schedule), ...(resumed.kind === 'already' ? { already: true } : {}) }
}

export async function runNow(desk: Desk, ask: Ask<'schedules.run-now'>): Promise<Answer<'schedules.run-now'>> {
  const { random, store } = desk.runtime
  const schedule = await theSchedule(store, ask.schedule)
  const ids = { threadId: newThreadId(random), runId: newRunId(random), messageId: newMessageId(random) }
  const fired = await desk.apply(fireNow, schedule.id, ask.key ?? random.hex(8), maker(desk, ask), ids)
  if (fired.kind !== 'begun') throw isOver(schedule)
  return viewWithRun(desk, fired.occurrence)
}

export async function remove(desk: Desk, ask: Ask<'schedules.remove'>): Promise<Answer<'schedules.remove'>> {
  const schedule = await theSchedule(desk.runtime.store, ask.schedule)
  const removed = await desk.apply(removeSchedule, schedule.id, maker(desk, ask), ask.cancel === true)
  if (removed.kind !== 'removed') throw isOver(schedule)
  return viewSchedule(removed.schedule)
}
