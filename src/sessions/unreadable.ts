import { record } from '../events/event.ts'
import { json, row } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import type { Client } from './session.ts'

export interface Misheard {
  /** By whoever heard it first: told again, it is the same. */
  readonly id: string
  readonly client: Client
  readonly why: string
  readonly bytes: number
  readonly beginning: string
}

const dataRow = row({ data: json<{ readonly id?: unknown }>() })

/** What is told again is told soon: so far back it is looked for, and no further. */
const LOOK_BACK = 200

/** A client's hook said something that nobody understands: kept, so that somebody can find out why. */
export function* recordUnreadable(misheard: Misheard): Transition<void> {
  const recent = yield* all(
    dataRow,
    sql`select data from events where type = 'hook.unreadable'
      and seq > (select coalesce(max(seq), 0) from events) - ${LOOK_BACK}`,
  )
  if (recent.some(({ data }) => data.id === misheard.id)) return
  yield* record({ type: 'hook.unreadable', data: { ...misheard } })
}
