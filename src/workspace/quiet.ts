import type { ThreadId } from '../base/ids.ts'
import { integer, row } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { one, single } from '../store/transition.ts'

const triesRow = row({ tries: integer, open: integer })

/**
 * How often an agent's tools were begun on a thread, and how many are under way. Each try is counted before it happens, and that is synced: as long
 * as the number is the same and none is under way, nobody has touched the files of its run. All of the thread: a run may do what an earlier one left in doubt.
 * None of them is forgotten meanwhile (`mayGo`).
 */
export const triesOn = single((threadId: ThreadId) =>
  one(
    triesRow,
    sql`select coalesce(sum(tries), 0) as tries, coalesce(sum(case when state = 'started' then 1 else 0 end), 0) as open
      from actions where thread_id = ${threadId}`,
  ),
)
