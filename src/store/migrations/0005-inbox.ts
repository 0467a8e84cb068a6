import type { Dialect, Migration } from './migration.ts'

/** Deliveries, attachments, and the sessions of command-line agents. */
export const inbox: Migration = {
  number: 5,
  name: 'inbox',
  statements: (d) => [...deliveries(d), ...sessions(d)],
}

const deliveries = (d: Dialect) => [
  `alter table messages add column delivery_id ${d.key}`,
  // Who took it, as JSON: a process, a session, or a person who will say so.
  `alter table messages add column leased_by text`,
  `alter table messages add column leased_at ${d.integer}`,
  // Since when it is consumed, replaced or dead: what retention counts from.
  `alter table messages add column settled_at ${d.integer}`,
  // Of a message whose recipient is not known yet: when it is looked for again.
  `alter table messages add column next_attempt_at ${d.integer}`,
  `create index messages_leased on messages (delivery_id) where state = 'leased'`,
  `create index messages_held on messages (next_attempt_at) where state = 'pending' and next_attempt_at is not null`,
  `create index messages_dead on messages (settled_at) where state = 'dead'`,
  `create index messages_settled on messages (settled_at) where state in ('consumed', 'replaced')`,
  `create index messages_from on messages (from_thread, kind) where state = 'pending'`,

  // The whole text of a message that shows only its beginning.
  `create table attachments (
    message_id ${d.key} primary key references messages (id) on delete cascade,
    content text not null
  )${d.tableEnd}`,
]

const sessions = (d: Dialect) => [
  // A session of a command-line agent, seen through its hooks: a thread that takes its turns elsewhere. `woken_at`: since when
  // a wake has brought nothing yet.
  `create table sessions (
    id ${d.key} primary key,
    client text not null check (client in ('claude', 'codex', 'gemini')),
    session_id text not null,
    thread_id ${d.key} not null references threads (id),
    generation ${d.integer} not null,
    state text not null check (state in ('idle', 'busy', 'waiting', 'ended')),
    turn text,
    stops ${d.integer} not null default 0,
    turns ${d.integer} not null default 0,
    run_id ${d.key},
    blocks ${d.integer} not null default 0,
    delivery_id ${d.key},
    process text,
    wake text,
    woken_at ${d.integer},
    wakes ${d.integer} not null default 0,
    vain_wakes ${d.integer} not null default 0,
    transcript text,
    cwd text,
    started_at ${d.integer} not null,
    updated_at ${d.integer} not null,
    ended_at ${d.integer},
    unique (client, session_id)
  )${d.tableEnd}`,
  `create index sessions_by_thread on sessions (thread_id)`,
  // Ends of turns that were heard, by the client's own names for them: the same one told again is known by it.
  `create table turn_ends (
    id ${d.key} primary key,
    session ${d.key} not null references sessions (id),
    delivery_id ${d.key},
    heard_at ${d.integer} not null
  )${d.tableEnd}`,
  `create index turn_ends_by_time on turn_ends (heard_at)`,
]
