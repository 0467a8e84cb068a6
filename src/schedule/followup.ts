import type { RunId, ScheduleId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { storeTime } from '../store/clock.ts'
import { integer, row } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { first, one } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findThread, holdThread } from '../threads/thread.ts'
import { addSchedule, isOver, removeSchedule } from './edit.ts'
import { DEFAULT_OPTIONS, findSchedule, scheduleRow } from './schedule.ts'
import type { Schedule } from './schedule.ts'
import { holdSchedule } from './settle.ts'

/** A message of a thread to itself, or to another one, with a due time. */
export interface NewFollowup {
  readonly id: ScheduleId
  readonly threadId: ThreadId
  readonly when: { readonly delayMs: number } | { readonly at: number }
  readonly prompt: string
  readonly reason?: string
  /** Who asks for it: a run has one at a time. */
  readonly owner?: { readonly threadId: ThreadId; readonly runId?: RunId; readonly agent?: string }
  readonly madeBy: string
  /** An instant that has passed is refused; otherwise it is late, and fires at once. */
  readonly refusePast?: boolean
  /** An agent's own bounds; a person has none. */
  readonly limits?: { readonly pending: number; readonly aDay: number }
}

export type AddedFollowup =
  | { readonly kind: 'added'; readonly schedule: Schedule; readonly replaced?: Schedule }
  | { readonly kind: 'unknown-thread' }
  /** By the database's clock. */
  | { readonly kind: 'past'; readonly at: number; readonly now: number }
  | { readonly kind: 'limit'; readonly limit: 'pending' | 'aDay'; readonly value: number }

/** Stores a follow-up. A second one of the same run takes the place of the first, while that has not come due. */
export function* addFollowup(followup: NewFollowup): Transition<AddedFollowup> {
  const { id, threadId, owner } = followup
  // Held: of two that count at the same time one sees the other. In one order, whoever asks for whom.
  for (const held of [...new Set([threadId, owner?.threadId ?? threadId])].toSorted()) yield* holdThread(held)
  // Looked up after that: the same one, asked for twice at once, would take its own place and be gone.
  const known = yield* findSchedule.single(id)
  if (known !== undefined) return addedWith(known, yield* replacedBy(known))
  const thread = yield* findThread.single(threadId)
  if (thread === undefined || thread.state === 'removed') return { kind: 'unknown-thread' }
  const earlier = owner?.runId === undefined ? undefined : yield* pendingOf(owner.threadId, owner.runId)
  const reached = (yield* isPast(followup)) ?? (yield* limitReached(followup, earlier))
  if (reached !== undefined) return reached
  if (earlier !== undefined) yield* removeSchedule(earlier.id, followup.madeBy, false, replacedFor(id))
  const { when, prompt, reason } = followup
  const added = yield* addSchedule({
    id,
    name: id,
    kind: 'followup',
    rule: 'at' in when ? { kind: 'once', at: when.at } : { kind: 'in', delayMs: when.delayMs },
    target: { kind: 'message', threadId, generation: thread.generation, text: prompt },
    options: { ...DEFAULT_OPTIONS, ...(reason === undefined ? {} : { why: reason }) },
    ...(owner === undefined ? {} : { owner }),
    madeBy: followup.madeBy,
  })
  if (!('schedule' in added)) throw new Error(`the follow-up ${id} has no instant`)
  return addedWith(added.schedule, earlier)
}

const addedWith = (schedule: Schedule, replaced: Schedule | undefined): AddedFollowup => ({
  kind: 'added',
  schedule,
  ...(replaced === undefined ? {} : { replaced }),
})

/** In the reason, so that whoever asks again is told the same. */
const replacedFor = (id: ScheduleId) => `replaced by ${id}, a later one of the same run`

function* replacedBy({ id, ownerThread }: Schedule): Transition<Schedule | undefined> {
  if (ownerThread === null) return undefined
  return yield* first(
    scheduleRow,
    sql`select * from schedules where owner_thread = ${ownerThread} and reason = ${replacedFor(id)} limit 1`,
  )
}

function* isPast({ when, refusePast }: NewFollowup): Transition<AddedFollowup | undefined> {
  if (refusePast !== true || !('at' in when)) return undefined
  const { at } = yield* storeTime.single()
  return when.at > at ? undefined : { kind: 'past', at: when.at, now: at }
}

function* pendingOf(threadId: ThreadId, runId: RunId): Transition<Schedule | undefined> {
  return yield* first(
    scheduleRow,
    sql`select * from schedules where owner_thread = ${threadId} and owner_run = ${runId} and kind = 'followup'
      and state in ('active', 'paused') and next_at is not null order by created_at desc limit 1`,
  )
}

const countRow = row({ pending: integer, aDay: integer })

function* limitReached(
  { limits, owner, threadId }: NewFollowup,
  earlier: Schedule | undefined,
): Transition<AddedFollowup | undefined> {
  if (limits === undefined) return undefined
  const asker = owner?.threadId ?? threadId
  const { pending, aDay } = yield* one(
    countRow,
    sql`select coalesce(sum(case when state in ('active', 'paused') and next_at is not null then 1 else 0 end), 0) as pending,
        coalesce(sum(case when created_at > ${now} - 86400000 then 1 else 0 end), 0) as a_day
      from schedules where owner_thread = ${asker} and kind = 'followup'`,
  )
  if (pending - (earlier === undefined ? 0 : 1) >= limits.pending)
    return { kind: 'limit', limit: 'pending', value: limits.pending }
  return aDay >= limits.aDay ? { kind: 'limit', limit: 'aDay', value: limits.aDay } : undefined
}

export const AGENT_FOLLOWUPS = { pending: LIMITS.followupsPending, aDay: LIMITS.followupsADay }

export type CancelledFollowup =
  | { readonly kind: 'cancelled' | 'has-come' | 'over'; readonly schedule: Schedule }
  /** Of this thread there is none of that id. */
  | { readonly kind: 'unknown' }

/** An agent takes back what its own thread asked for and what has not come. The same reason is the same request again. */
export function* cancelFollowupOf(
  threadId: ThreadId,
  id: ScheduleId,
  { by, reason }: { readonly by: string; readonly reason: string },
): Transition<CancelledFollowup> {
  const schedule = yield* holdSchedule(id)
  if (schedule?.kind !== 'followup' || schedule.ownerThread !== threadId) return { kind: 'unknown' }
  if (schedule.reason === reason) return { kind: 'cancelled', schedule }
  if (isOver(schedule)) return { kind: 'over', schedule }
  if (schedule.nextAt === null) return { kind: 'has-come', schedule }
  yield* removeSchedule(id, by, false, reason)
  return { kind: 'cancelled', schedule }
}
