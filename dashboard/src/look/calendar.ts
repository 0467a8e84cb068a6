import type { Occurrence, Rule, Schedule } from '../api/schedules.ts'
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

/** Four weeks from a Monday: the one before last, moved by so many weeks. */
export function daysAround(
  now: number,
  weeks: number,
  schedules: readonly Schedule[],
  past: readonly Occurrence[],
): readonly Day[] {
  const today = new Date(now)
  const sinceMonday = (today.getDay() + 6) % 7
  const byDay = Map.groupBy(thingsOf(schedules, past), ({ at }) => dayOf(new Date(at)))
  return Array.from({ length: DAYS }, (_, index) => {
    const date = new Date(today.getFullYear(), today.getMonth(), today.getDate() - sinceMonday - 7 + 7 * weeks + index)
    const key = dayOf(date)
    return {
      key,
      weekday: weekday.format(date),
      label: dayAndMonth.format(date),
      short: date.getDate() === 1 ? month.format(date) : String(date.getDate()),
      isToday: key === dayOf(today),
      things: together(byDay.get(key) ?? []),
    }
  })
}

export function ruleWords(rule: Rule): string {
  if (rule.kind === 'once') return 'once'
  return rule.kind === 'every'
    ? `every ${span(rule.everyMs).replace(/ 0 (s|min|h)$/, '')}`
    : `${rule.expression} in ${rule.zone}`
}

/** A job of every second has more instants than a calendar can show. */
const SHOWN = 300

/** What comes: as the daemon says, or, where it is plain arithmetic, from the next one on. */
function comingOf({ rule, options, next = [], nextAt }: Schedule): readonly string[] {
  const isEndless = options.until === undefined && options.maxFirings === undefined
  if (nextAt === undefined || rule.kind !== 'every' || !isEndless) return next.map(({ at }) => at)
  const end = Date.parse(nextAt) + DAYS * 86_400_000
  const count = Math.min(SHOWN, Math.ceil((end - Date.parse(nextAt)) / rule.everyMs))
  return Array.from({ length: count }, (_, index) => new Date(Date.parse(nextAt) + index * rule.everyMs).toISOString())
}

function thingsOf(schedules: readonly Schedule[], past: readonly Occurrence[]): Thing[] {
  const coming = schedules
    .filter(({ state }) => state === 'active')
    .flatMap((schedule) => comingOf(schedule).map((at) => ({ scheduleId: schedule.id, at })))
  return [
    ...past.map(({ scheduleId, state, dueAt, instants = 1 }) => ({ scheduleId, state, at: dueAt, count: instants })),
    ...coming.map((each) => ({ ...each, state: 'planned', count: 1 })),
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
