import type { RunId, ScheduleId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { integer, row } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { first, holding, one, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { findThread } from '../threads/thread.ts'
import { addSchedule, removeSchedule } from './edit.ts'
import { DEFAULT_OPTIONS, findSchedule, scheduleRow } from './schedule.ts'
import type { Schedule } from './schedule.ts'

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
  /** An agent's own bounds; a person has none. */
  readonly limits?: { readonly pending: number; readonly aDay: number }
}

export type AddedFollowup =
  | { readonly kind: 'added'; readonly schedule: Schedule; readonly replaced?: Schedule }
  | { readonly kind: 'unknown-thread' }
  | { readonly kind: 'limit'; readonly limit: 'pending' | 'aDay'; readonly value: number }

/** Stores a follow-up. A second one of the same run takes the place of the first, while that has not come due. */
export function* addFollowup(followup: NewFollowup): Transition<AddedFollowup> {
  const { id, threadId, owner } = followup
  const known = yield* findSchedule.single(id)
  if (known !== undefined) return { kind: 'added', schedule: known }
  // Held: of two that count at the same time one sees the other.
  yield* holding(`thread:${threadId}`, run(sql`update threads set agent = agent where id = ${threadId}`))
  const thread = yield* findThread.single(threadId)
  if (thread === undefined || thread.state === 'removed') return { kind: 'unknown-thread' }
  const earlier = owner?.runId === undefined ? undefined : yield* pendingOf(owner.threadId, owner.runId)
  const reached = yield* limitReached(followup, earlier)
  if (reached !== undefined) return reached
  if (earlier !== undefined)
    yield* removeSchedule(earlier.id, followup.madeBy, false, 'replaced by a later one of the same run')
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
  return { kind: 'added', schedule: added.schedule, ...(earlier === undefined ? {} : { replaced: earlier }) }
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
