import type { Occurrence, Schedule } from '../api/shapes.ts'
import { span } from './words.ts'

export interface Thing {
  readonly scheduleId: string
  readonly state: string
  readonly at: string
  /** How many of the same in a day. */
  readonly count: number
}

export interface Day {
  readonly key: string
  readonly weekday: string
  readonly label: string
  /** Where there is little room: the month only where it begins. */
  readonly short: string
  readonly isToday: boolean
  readonly things: readonly Thing[]
}

const DAYS = 28
const weekday = new Intl.DateTimeFormat(undefined, { weekday: 'short' })
const month = new Intl.DateTimeFormat(undefined, { month: 'short' })
const dayAndMonth = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })

/** The local day of an instant. */
const dayOf = (instant: Date) => `${instant.getFullYear()}-${instant.getMonth()}-${instant.getDate()}`

/** Four weeks from a Monday, the one before last, moved by so many weeks; and the day after, where the last one ends. */
function datesAround(now: number, weeks: number): readonly Date[] {
  const today = new Date(now)
  const sinceMonday = (today.getDay() + 6) % 7
  return Array.from({ length: DAYS + 1 }, (_, index) => {
    const day = today.getDate() - sinceMonday - 7 + 7 * weeks + index
    return new Date(today.getFullYear(), today.getMonth(), day)
  })
}

export function daysAround(
  now: number,
  weeks: number,
  schedules: readonly Schedule[],
  past: readonly Occurrence[],
): readonly Day[] {
  const dates = datesAround(now, weeks)
  const things = thingsOf(
    schedules,
    past,
    dates.map((date) => date.getTime()),
  )
  const byDay = Map.groupBy(things, ({ at }) => dayOf(new Date(at)))
  return dates.slice(0, DAYS).map((date) => {
    const key = dayOf(date)
    return {
      key,
      weekday: weekday.format(date),
      label: dayAndMonth.format(date),
      short: date.getDate() === 1 ? month.format(date) : String(date.getDate()),
      isToday: key === dayOf(new Date(now)),
      things: together(byDay.get(key) ?? []),
    }
  })
}

export function ruleWords(rule: Schedule['rule']): string {
  if (rule.kind === 'once') return 'once'
  return rule.kind === 'every'
    ? `every ${span(rule.everyMs).replace(/ 0 (s|min|h)$/, '')}`
    : `${rule.expression} in ${rule.zone}`
}

/** What comes, as the daemon says; where it is plain arithmetic, all of it: once for each day, with how many that are. */
function comingOf({ id, rule, options, next = [], nextAt }: Schedule, starts: readonly number[]): Thing[] {
  const planned = { scheduleId: id, state: 'planned' }
  if (nextAt === undefined || rule.kind !== 'every' || options.maxFirings !== undefined)
    return next.map(({ at }) => ({ ...planned, at, count: 1 }))
  const [begin, end] = [Date.parse(nextAt), options.until === undefined ? Infinity : Date.parse(options.until)]
  return starts.slice(0, -1).flatMap((start, index) => {
    const first = begin + Math.max(0, Math.ceil((start - begin) / rule.everyMs)) * rule.everyMs
    const stop = Math.min(starts[index + 1] ?? start, end + 1)
    if (first >= stop) return []
    return [{ ...planned, at: new Date(first).toISOString(), count: Math.ceil((stop - first) / rule.everyMs) }]
  })
}

/** Those of which more comes in these weeks than the daemon was asked for: the later days look emptier than they will be. */
export function cutShort(now: number, weeks: number, schedules: readonly Schedule[], asked: number): Schedule[] {
  const end = datesAround(now, weeks).at(-1)?.getTime() ?? now
  return schedules.filter(({ state, rule, options, next = [] }) => {
    const isListed = rule.kind !== 'every' || options.maxFirings !== undefined
    return state === 'active' && isListed && next.length >= asked && Date.parse(next.at(-1)?.at ?? '') < end
  })
}

function thingsOf(schedules: readonly Schedule[], past: readonly Occurrence[], starts: readonly number[]): Thing[] {
  const active = schedules.filter(({ state }) => state === 'active')
  return [
    ...past.map(({ scheduleId, state, dueAt, instants = 1 }) => ({ scheduleId, state, at: dueAt, count: instants })),
    ...active.flatMap((schedule) => comingOf(schedule, starts)),
  ]
}

/** A job of every ten minutes is one line a day and outcome. What went wrong comes first. */
function together(things: readonly Thing[]): Thing[] {
  const groups = Map.groupBy(things, ({ scheduleId, state }) => `${scheduleId} ${state}`)
  const rank = ({ state }: Thing) => ['failed', 'dropped', 'skipped'].indexOf(state) + 1 || 9
  return [...groups.values()]
    .flatMap((group) =>
      group[0] === undefined ? [] : [{ ...group[0], count: group.reduce((sum, { count }) => sum + count, 0) }],
    )
    .toSorted((a, b) => rank(a) - rank(b) || a.at.localeCompare(b.at))
}
