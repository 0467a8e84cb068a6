import type { Dialect, Migration } from './migration.ts'

/** Which session of a command-line agent a thread goes on with. */
export const agentSessions: Migration = {
  number: 11,
  name: 'agent-sessions',
  statements: (d: Dialect) => [
    `create table agent_sessions (
      thread_id ${d.key} not null references threads (id),
      generation ${d.integer} not null,
      agent ${d.key} not null,
      client text not null,
      session_id text not null,
      totals text not null,
      updated_at ${d.integer} not null,
      primary key (thread_id, generation, agent)
    )${d.clusteredEnd}`,
  ],
}
