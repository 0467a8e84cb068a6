import type { Dialect, Migration } from './migration.ts'

/** Tokens with a scope, and the orders in which an operator pages through what there is. */
export const control: Migration = {
  number: 8,
  name: 'control',
  statements: (d: Dialect) => [
    // Only a digest: whoever reads the database, or a copy of it, has no token.
    `create table tokens (
      id ${d.key} primary key,
      kind text not null check (kind in ('token', 'browser')),
      name text not null,
      scopes text not null,
      thread_id ${d.key},
      digest text not null unique,
      created_at ${d.integer} not null,
      created_by text not null,
      expires_at ${d.integer},
      revoked_at ${d.integer},
      revoked_by text,
      check ((revoked_at is null) = (revoked_by is null))
    )${d.tableEnd}`,
    `create index tokens_in_force on tokens (created_at, id) where revoked_at is null`,

    // Who did what, through which token; written in the transaction that did it.
    `create table acts (
      id ${d.key} primary key,
      at ${d.integer} not null,
      call text not null,
      target text,
      by text not null,
      via text not null,
      token_id ${d.key},
      outcome text
    )${d.tableEnd}`,

    // A page is a range of one of these, however many rows there are.
    `create index threads_by_age on threads (created_at, id)`,
    `create index runs_by_state on runs (state, seq)`,
    `create index runs_by_agent on runs (agent, seq)`,
    `create index runs_by_end on runs (ended_at) where ended_at is not null`,
    `create index messages_by_state on messages (state, seq)`,
    `create index messages_by_thread on messages (thread_id, generation, seq)`,
    `create index approvals_by_state on approvals (state, asked_at)`,
  ],
}
