import type { Dialect, Migration } from './migration.ts'

/** Schedules and the ledger of their occurrences. */
export const schedules: Migration = {
  number: 7,
  name: 'schedules',
  statements: (d: Dialect) => [
    // Which agents there are, by what workers said of themselves: a schedule for one that nobody has is not dispatched.
    `create table agents_seen (
      agent text not null,
      host text not null,
      home text not null,
      kind text not null,
      seen_at ${d.integer} not null,
      primary key (agent, host, home, kind)
    )${d.tableEnd}`,

    // `next_at`: the next due instant by the rule. `next_fire_at`: that and its jitter, when it is acted on.
    `create table schedules (
      id ${d.key} primary key,
      name text not null,
      kind text not null check (kind in ('job', 'followup')),
      state text not null check (state in ('active', 'paused', 'ended', 'removed')),
      reason text,
      rule text not null,
      target text not null,
      options text not null,
      target_thread ${d.key},
      owner_thread ${d.key},
      owner_run ${d.key},
      owner_agent text,
      made_by text not null,
      next_at ${d.integer},
      next_fire_at ${d.integer},
      failures ${d.integer} not null default 0,
      firings ${d.integer} not null default 0,
      version ${d.integer} not null default 1,
      created_at ${d.integer} not null,
      updated_at ${d.integer} not null,
      ended_at ${d.integer},
      check ((ended_at is not null) = (state in ('ended', 'removed'))),
      check ((next_at is null) = (next_fire_at is null))
    )${d.tableEnd}`,
    // A name belongs to one schedule that is not over: the second of two that take it meets this index.
    `create unique index schedules_by_name on schedules (name) where state in ('active', 'paused')`,
    // What the timer looks at: its first entry, whatever lies behind it.
    `create index schedules_due on schedules (next_fire_at) where state = 'active' and next_fire_at is not null`,
    `create index schedules_of_target on schedules (target_thread) where target_thread is not null and state in ('active', 'paused')`,
    // What is over, for whoever forgets it.
    `create index schedules_over on schedules (ended_at) where ended_at is not null`,
    // How many follow-ups a thread asked for lately, and which of a run still waits.
    `create index schedules_of_owner on schedules (owner_thread, created_at) where owner_thread is not null`,

    // One line for a due instant, or for a row of them that nothing was done about (`instants`, up to `last_at`).
    `create table occurrences (
      id ${d.key} primary key,
      schedule_id ${d.key} not null references schedules (id),
      due_at ${d.integer} not null,
      origin text not null check (origin in ('due', 'catch_up', 'run_now')),
      state text not null check (state in ('due', 'dispatched', 'succeeded', 'failed', 'dropped', 'skipped')),
      waits text check (waits in ('retry', 'overlap', 'thread')),
      reason text,
      error text,
      attempts ${d.integer} not null default 0,
      next_attempt_at ${d.integer},
      wait_ms ${d.integer},
      late_ms ${d.integer} not null default 0,
      instants ${d.integer} not null default 1,
      last_at ${d.integer},
      thread_id ${d.key},
      message_id ${d.key},
      run_id ${d.key},
      cost_microusd ${d.integer} not null default 0,
      by_whom text,
      created_at ${d.integer} not null,
      fired_at ${d.integer},
      settled_at ${d.integer},
      check ((settled_at is not null) = (state in ('succeeded', 'failed', 'dropped', 'skipped'))),
      check (state = 'due' or (waits is null and next_attempt_at is null))
    )${d.tableEnd}`,
    // Each due instant once, whoever claims it: the database's own word. What a person asks for now is none of the rule's.
    `create unique index occurrences_by_instant on occurrences (schedule_id, due_at) where origin <> 'run_now'`,
    `create index occurrences_by_time on occurrences (schedule_id, due_at, id)`,
    `create index occurrences_due on occurrences (next_attempt_at) where state = 'due' and next_attempt_at is not null`,
    `create index occurrences_open on occurrences (schedule_id) where state in ('due', 'dispatched')`,
    `create index occurrences_by_run on occurrences (run_id) where state = 'dispatched' and run_id is not null`,
    `create index occurrences_by_message on occurrences (message_id) where state = 'dispatched' and message_id is not null`,
    `create index occurrences_held on occurrences (thread_id) where state = 'due' and waits = 'thread'`,
    `create index occurrences_settled on occurrences (settled_at) where settled_at is not null`,
  ],
}
