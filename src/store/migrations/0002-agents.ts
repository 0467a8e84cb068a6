import type { Dialect, Migration } from './migration.ts'

/** Conversations, actions, and runs that wait for an instant. */
export const agents: Migration = {
  number: 2,
  name: 'agents',
  statements: (d) => [...waiting(d), ...conversation(d), ...ledger(d)],
}

const waiting = (d: Dialect) => [
  `alter table runs add column resume_at ${d.integer}`,
  `alter table runs add column kind text not null default 'command' check (kind in ('command', 'agent', 'observed'))`,
  // What a session does in its client is not ours to order: its turns may lie beside each other, and beside a command.
  `drop index runs_one_active`,
  `create unique index runs_one_active on runs (thread_id) where state in ('running', 'parked') and kind <> 'observed'`,
  // The run that started this one by delegation or from one of its processes, and how far it waits for it.
  `alter table runs add column parent_run_id ${d.key}`,
  `alter table runs add column parent_mode text check (parent_mode in ('wait', 'background', 'detached'))`,
  `create index runs_by_parent_run on runs (parent_run_id) where parent_run_id is not null`,
  // An agent's thread has one run at a time, and none in wait behind it: who wakes it second meets this index.
  `create unique index runs_one_agent on runs (thread_id) where kind = 'agent' and state in ('queued', 'running', 'parked')`,
  `create index runs_resuming on runs (resume_at) where state = 'parked' and resume_at is not null`,
  `create index messages_pending on messages (thread_id, seq) where state = 'pending'`,
]

const conversation = (d: Dialect) => [
  // What a model was shown and said, in order; written by the run that holds the thread, so the order is its own.
  `create table entries (
    seq ${d.serial},
    thread_id ${d.key} not null references threads (id),
    generation ${d.integer} not null,
    run_id ${d.key} not null references runs (id),
    kind text not null check (kind in ('user', 'assistant', 'summary')),
    body text not null,
    input_tokens ${d.integer} not null default 0,
    output_tokens ${d.integer} not null default 0,
    cost_microusd ${d.integer} not null default 0,
    created_at ${d.integer} not null
  )${d.tableEnd}`,
  `create index entries_by_thread on entries (thread_id, generation, seq)`,
  `create index entries_by_run on entries (run_id, seq)`,
  // Where a conversation begins for its model: the last of these, found without reading what came before it.
  `create index entries_summaries on entries (thread_id, generation, seq) where kind = 'summary'`,
]

const ledger = (d: Dialect) => [
  `create table actions (
    id ${d.key} primary key,
    run_id ${d.key} not null references runs (id),
    thread_id ${d.key} not null,
    entry_seq ${d.integer} not null,
    ordinal ${d.integer} not null,
    call_id text not null,
    tool text not null,
    effect text not null check (effect in ('read', 'write')),
    repeats text not null check (repeats in ('once', 'each')),
    input text not null,
    signature text not null,
    state text not null check (state in ('proposed', 'waiting', 'approved', 'started', 'done', 'failed', 'in_doubt',
      'skipped', 'denied', 'expired', 'withdrawn')),
    mark ${d.key} not null,
    tries ${d.integer} not null default 0,
    home text,
    decision text,
    repeat_of ${d.key},
    result text,
    error text,
    settled_by text,
    created_at ${d.integer} not null,
    started_at ${d.integer},
    settled_at ${d.integer},
    unique (entry_seq, ordinal)
  )${d.tableEnd}`,
  `create index actions_by_run on actions (run_id, entry_seq, ordinal)`,
  `create index actions_by_thread on actions (thread_id, entry_seq, ordinal)`,
  `create index actions_by_signature on actions (run_id, signature)`,
  // However often a call succeeded, counting its failures reads the failures alone.
  `create index actions_failed on actions (run_id, signature) where state = 'failed'`,
  `create index actions_open on actions (thread_id) where state in ('waiting', 'in_doubt')`,
  // Where a tool says once, the database itself lets one action with a signature start in a run.
  `create unique index actions_once on actions (run_id, signature)
    where repeats = 'once' and effect = 'write' and repeat_of is null and state in ('started', 'done', 'in_doubt')`,
]
