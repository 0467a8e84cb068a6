import type { Dialect, Migration } from './migration.ts'

/** Approvals, rules that people made of them, and what is known of an action in doubt. */
export const decisions: Migration = {
  number: 6,
  name: 'decisions',
  statements: (d: Dialect) => [
    // What a decision is bound to: the tool as it is, and its exact arguments.
    `alter table actions add column digest text`,
    `alter table actions add column version text`,
    // A person changed this call: the other one is what happens instead.
    `alter table actions add column replaced_by ${d.key}`,
    // Who said to go on although nobody knows.
    `alter table actions add column given_up text`,
    `create index actions_undecided on actions (state, created_at) where state in ('waiting', 'in_doubt')`,

    `create table approvals (
      id ${d.key} primary key,
      action_id ${d.key} not null unique references actions (id),
      run_id ${d.key} not null references runs (id),
      thread_id ${d.key} not null,
      digest text not null,
      shown text not null,
      state text not null check (state in ('pending', 'approved', 'consumed', 'skipped', 'denied', 'expired', 'withdrawn')),
      asked_at ${d.integer} not null,
      expires_at ${d.integer} not null,
      asked_by text not null,
      decided_by text,
      decided_via text,
      decided_at ${d.integer},
      note text
    )${d.tableEnd}`,
    `create index approvals_pending on approvals (expires_at) where state = 'pending'`,
    `create index approvals_by_run on approvals (run_id)`,

    `create table policy_rules (
      id ${d.key} primary key,
      rule text not null,
      made_by text not null,
      made_from ${d.key},
      made_at ${d.integer} not null,
      removed_at ${d.integer},
      removed_by text
    )${d.tableEnd}`,
    `create index policy_rules_in_force on policy_rules (made_at) where removed_at is null`,

    // Who said that what was done may be done once more.
    `alter table actions add column again text`,
    `drop index actions_once`,
    `create unique index actions_once on actions (run_id, signature) where repeats = 'once' and effect = 'write'
      and repeat_of is null and again is null and state in ('started', 'done', 'in_doubt')`,
    // Where a tool says once across runs: whose turn it is. Only the action that is named here may begin.
    `create table once_marks (
      scope ${d.key} not null,
      signature text not null,
      action_id ${d.key} not null,
      ends_at ${d.integer} not null,
      primary key (scope, signature)
    )${d.tableEnd}`,
    `create index once_marks_over on once_marks (ends_at)`,

    // What a person outside is told, by each way that there is; and the last event that was looked at for that.
    `create table notices (
      id ${d.key} primary key,
      channel text not null,
      body text not null,
      state text not null check (state in ('pending', 'sent', 'given_up')),
      tries ${d.integer} not null default 0,
      next_at ${d.integer} not null,
      created_at ${d.integer} not null,
      settled_at ${d.integer},
      error text
    )${d.tableEnd}`,
    `create index notices_due on notices (next_at) where state = 'pending'`,
    `create index notices_over on notices (settled_at) where state <> 'pending'`,
    `create table notice_cursor (
      id ${d.integer} primary key,
      seq ${d.integer} not null
    )${d.tableEnd}`,
  ],
}
