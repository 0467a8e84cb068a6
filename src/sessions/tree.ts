import type { ThreadId } from '../base/ids.ts'
import type { Event } from '../events/event.ts'
import { TOLD, eventRow, lastEventSeq } from '../events/event.ts'
import { row } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { AT_WORK, AT_WORK_COLUMNS, THREADS_AT_WORK } from './at-work.ts'

const relativeRow = row(AT_WORK_COLUMNS)
/** A thread with what it is at. */
export type Relative = Decoded<typeof relativeRow>

/** Each once, whatever circle somebody has made of parents. */
const below = (threadId: ThreadId) => sql`with recursive family (id) as (
    select id from threads where id = ${threadId}
    union select child.id from threads child join family on child.parent_id = family.id)
  select id from family`

/** A thread and everything that was started from it, at any depth, oldest first. */
export const threadFamily = single((threadId: ThreadId, limit: number) =>
  all(
    relativeRow,
    sql`select ${AT_WORK} from ${THREADS_AT_WORK}
      where t.id in (${below(threadId)}) order by t.created_at, t.id limit ${limit}`,
  ),
)

export interface FamilyEvents {
  readonly events: readonly Event[]
  /** Up to here everything was looked at: the next look begins after it. */
  readonly seq: number
}

/** What happened to a thread, or to all of its family, after a number; from one snapshot. */
export function* familyEvents(
  threadId: ThreadId,
  withChildren: boolean,
  after: number,
  limit: number,
): Transition<FamilyEvents> {
  const { seq } = yield* lastEventSeq.single()
  const whose = withChildren ? sql`e.thread_id in (${below(threadId)})` : sql`e.thread_id = ${threadId}`
  const events = yield* all(
    eventRow,
    sql`select ${TOLD} from events e where e.seq > ${after} and ${whose} order by e.seq limit ${limit}`,
  )
  return { events, seq: events.length < limit ? seq : (events.at(-1)?.seq ?? seq) }
}
