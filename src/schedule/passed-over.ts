import { record } from '../events/event.ts'
import { storeTime } from '../store/clock.ts'
import { now, sql } from '../store/sql.ts'
import { run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import type { PassedOver } from './plan.ts'
import { countInstants, lastInstants } from './rule.ts'
import type { Schedule } from './schedule.ts'

/** One line for all of them: each has its reason, and a second's rule that nobody looked at for a week has no million lines. */
export function* passOver({ id, name }: Schedule, passed: PassedOver): Transition<void> {
  const { from, to, instants, reason } = passed
  const occurrence = `${id}.${from}`
  const stored =
    yield* run(sql`insert into occurrences (id, schedule_id, due_at, origin, state, reason, instants, last_at, created_at, settled_at)
    values (${occurrence}, ${id}, ${from}, 'due', 'skipped', ${reason}, ${instants}, ${to}, ${now}, ${now}) on conflict do nothing`)
  if (stored === 0) return
  const data = { scheduleId: id, name, dueAt: from, state: 'skipped', origin: 'due', attempts: 0, reason, instants }
  yield* record({ type: 'occurrence.settled', data })
}

/**
 * What has come due by now and nobody acted on will not be acted on any more: its schedule is changed, resumed or over.
 * Returns the last instant of it.
 */
export function* passDue(schedule: Schedule, reason: string): Transition<number | undefined> {
  const { nextAt: from } = schedule
  if (from === null) return undefined
  const { at } = yield* storeTime.single()
  if (from > at) return undefined
  const { to, instants } = reached(schedule, from, at)
  yield* passOver(schedule, { from, to, instants, reason })
  return to
}

function reached({ rule, options }: Schedule, from: number, at: number) {
  try {
    const end = Math.max(from, Math.min(at, options.until ?? at))
    const to = lastInstants(rule, from, end, 1).at(-1) ?? from
    return { to, instants: countInstants(rule, from, to) }
  } catch {
    // A rule that says nothing any more must not keep its schedule from being taken away.
    return { to: from, instants: 1 }
  }
}
