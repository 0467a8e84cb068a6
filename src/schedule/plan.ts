import { countInstants, lastInstants, nextAfter } from './rule.ts'
import { jitterOf } from './schedule.ts'
import type { Schedule } from './schedule.ts'

/** One instant to act on. */
export interface Firing {
  readonly dueAt: number
  readonly lateMs: number
  /** `catch_up`: it comes later than it may, and says so. */
  readonly origin: 'due' | 'catch_up'
}

/** Instants that nothing is done about. */
export interface PassedOver {
  readonly from: number
  readonly to: number
  readonly instants: number
  readonly reason: string
}

export interface Plan {
  readonly passedOver: readonly PassedOver[]
  readonly fire: readonly Firing[]
  /** The next due instant of the rule; undefined: there is none. */
  readonly next: number | undefined
}

/**
 * What is to be done about a schedule whose next instant has come, at `now`: every instant up to now is fired or passed over
 * with a reason, and the next one lies ahead. However long nobody looked, no more fire than the schedule allows.
 */
export function planFiring(schedule: Schedule, now: number): Plan {
  const { rule, options } = schedule
  const first = schedule.nextAt ?? now
  const { misfire, graceMs } = options
  const wanted = misfire.policy === 'each' ? misfire.limit : 1
  const reached = lastInstants(rule, first, lastReached(schedule, first, now), wanted)
  const last = reached.at(-1) ?? first
  const next = until(schedule, nextAfter(rule, last))
  const late = (dueAt: number) => Math.max(now - dueAt - jitterOf(schedule.id, dueAt, options.jitterMs), 0)
  const left = options.maxFirings === undefined ? reached.length : options.maxFirings - schedule.firings
  const fire = reached
    .filter((dueAt) => misfire.policy !== 'skip' || late(dueAt) <= graceMs)
    .slice(0, Math.max(left, 1))
    .map((dueAt): Firing => ({
      dueAt,
      lateMs: late(dueAt),
      // Several at once follow each other, the last one too.
      origin: late(dueAt) > graceMs || reached.length > 1 ? 'catch_up' : 'due',
    }))
  const kept = fire[0]?.dueAt
  if (kept === first) return { passedOver: [], fire, next }
  return { passedOver: [passOver(schedule, first, kept ?? last, kept)], fire, next }
}

/** All from `first` up to what is kept, or all of them. */
function passOver({ rule }: Schedule, first: number, end: number, kept: number | undefined): PassedOver {
  const to = kept === undefined ? end : (lastInstants(rule, first, kept - 1, 1).at(-1) ?? first)
  const instants = countInstants(rule, first, to)
  const reason =
    kept === undefined
      ? 'missed: nobody was there to act on it in time'
      : `missed: ${new Date(kept).toISOString()} stands for it`
  return { from: first, to, instants, reason }
}

/** Up to where instants count as reached: one whose jitter has not passed yet is still ahead, and after `until` there is none. */
function lastReached({ id, rule, options }: Schedule, first: number, now: number): number {
  const end = Math.max(first, Math.min(now, options.until ?? now))
  const last = lastInstants(rule, first, end, 1).at(-1) ?? first
  return last > first && last + jitterOf(id, last, options.jitterMs) > now ? last - 1 : end
}

export function until({ options }: Pick<Schedule, 'options'>, next: number | undefined): number | undefined {
  return next === undefined || (options.until !== undefined && next > options.until) ? undefined : next
}
