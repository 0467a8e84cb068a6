import type { ThreadId } from '../base/ids.ts'
import { json, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { first, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { CLIENTS } from './session.ts'
import type { Client } from './session.ts'

/** Tokens as a client counts them. Cached ones are not among `input`. */
export interface TokensTold {
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly output: number
}

/** What a session had taken when its last turn ended, where its client counts from the begin. */
export interface SessionTotals {
  readonly tokens?: TokensTold
  readonly costUsd?: number
}

const keptRow = row({ client: oneOf(CLIENTS), sessionId: text(), totals: json<SessionTotals>() })
/** The client's own conversation behind a thread of an agent that is such a client: the next message goes on with it. */
export type KeptSession = Decoded<typeof keptRow>

export interface KeptBy {
  readonly threadId: ThreadId
  readonly generation: number
  readonly agent: string
}

export const keptSession = single(({ threadId, generation, agent }: KeptBy) =>
  first(
    keptRow,
    sql`select client, session_id, totals from agent_sessions
      where thread_id = ${threadId} and generation = ${generation} and agent = ${agent}`,
  ),
)

/** From now on the thread goes on with this one. */
export function* keepSession(
  { threadId, generation, agent }: KeptBy,
  client: Client,
  sessionId: string,
  totals: SessionTotals = {},
): Transition<void> {
  yield* run(sql`insert into agent_sessions (thread_id, generation, agent, client, session_id, totals, updated_at)
    values (${threadId}, ${generation}, ${agent}, ${client}, ${sessionId}, ${JSON.stringify(totals)}, ${now})
    on conflict (thread_id, generation, agent) do update set client = excluded.client, session_id = excluded.session_id,
      totals = excluded.totals, updated_at = excluded.updated_at`)
}

/** It was never there: the thread begins with another one. */
export function* forgetSession({ threadId, generation, agent }: KeptBy, sessionId: string): Transition<void> {
  yield* run(sql`delete from agent_sessions where thread_id = ${threadId} and generation = ${generation}
    and agent = ${agent} and session_id = ${sessionId}`)
}
