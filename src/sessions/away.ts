import type { ActionId, RunId } from '../base/ids.ts'
import { shellWord } from '../base/text.ts'
import { ITS_CLIENT } from '../runs/park.ts'
import { json, oneOf, row, text } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, first, single } from '../store/transition.ts'
import { CLIENTS, sessionRow } from './session.ts'
import type { Session } from './session.ts'

/** The session whose turn waits for nothing but its client, which has ended; undefined: it waits for somebody, or goes on. */
export const sessionAway = single((runId: RunId) =>
  first(
    sessionRow,
    sql`select s.* from sessions s join runs r on r.id = s.run_id
      where r.id = ${runId} and r.state = 'parked' and r.parked_for = ${ITS_CLIENT} and s.ended_at is not null`,
  ),
)

/** What a person types. Without a prompt the client goes on with the call that had waited. */
export const resumeLine = ({ cwd, sessionId }: Pick<Session, 'cwd' | 'sessionId'>): string =>
  `${cwd === null ? '' : `cd ${shellWord(cwd)} && `}claude -p --resume ${sessionId}`

const awayRow = row({
  sessionId: text(),
  client: oneOf(CLIENTS),
  /** The call whose answer it is resumed for: once for each. */
  actionId: text<ActionId>(),
  /** Of the entry with the call: the run that had started the client. */
  body: json<{ readonly startedBy?: string }>(),
})

/** Sessions whose turn waits for nothing but their client, each with the run that had started it; not those that were resumed. */
export const sessionsAway = single((limit: number) =>
  all(
    awayRow,
    sql`select s.session_id, s.client, a.id as action_id, e.body from runs r
      join sessions s on s.run_id = r.id
      join actions a on a.run_id = r.id and a.mark = 'deferred'
      join entries e on e.seq = a.entry_seq
      where r.state = 'parked' and r.parked_for = ${ITS_CLIENT} and r.kind = 'observed' and s.ended_at is not null
        and not exists (select 1 from actions later where later.run_id = r.id and later.mark = 'deferred' and later.entry_seq > a.entry_seq)
        and not exists (select 1 from runs q where q.submit_key = 'resume:' || a.id)
      order by r.seq limit ${limit}`,
  ),
)

export const resumeKey = (actionId: ActionId): string => `resume:${actionId}`
