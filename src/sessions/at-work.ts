import type { RunId } from '../base/ids.ts'
import { RUN_STATES } from '../runs/run.ts'
import { integer, nullable, oneOf, text } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { THREAD_COLUMNS } from '../threads/thread.ts'
import { CLIENTS, SESSION_STATES } from './session.ts'

/** A thread with what it is at. */
export const AT_WORK_COLUMNS = {
  ...THREAD_COLUMNS,
  /** Its latest run. */
  runId: nullable(text<RunId>()),
  runState: nullable(oneOf(RUN_STATES)),
  runCode: nullable(text()),
  client: nullable(oneOf(CLIENTS)),
  sessionState: nullable(oneOf(SESSION_STATES)),
  /** What waits in its inbox. */
  pending: integer,
}

/** The same, to be selected from `THREADS_AT_WORK`. */
export const AT_WORK = sql`t.*, r.id as run_id, r.state as run_state, r.code as run_code, s.client, s.state as session_state,
  (select count(*) from messages m where m.thread_id = t.id and m.state = 'pending') as pending`

export const THREADS_AT_WORK = sql`threads t left join runs r on r.seq = (select max(seq) from runs where thread_id = t.id)
  left join sessions s on s.id = (select id from sessions where thread_id = t.id order by updated_at desc, id limit 1)`
