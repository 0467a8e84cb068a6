import type { Dialect, Migration } from './migration.ts'

/** Runs that are called with an input, and the steps of functions. */
export const calls: Migration = {
  number: 10,
  name: 'calls',
  statements: (d: Dialect) => [
    // What a run was called with. It needs no message, and those of one function share their thread and run side by side.
    `alter table runs add column input text`,
    `drop index runs_one_active`,
    `create unique index runs_one_active on runs (thread_id)
      where state in ('running', 'parked') and kind <> 'observed' and input is null`,
    `drop index runs_one_agent`,
    `create unique index runs_one_agent on runs (thread_id)
      where kind = 'agent' and state in ('queued', 'running', 'parked') and input is null`,
    // The two queues are looked at apart: a claim of one does not read through the other. The state comes first because
    // SQLite takes the index with the most equalities.
    `drop index runs_queued`,
    `create index runs_queued on runs (state, priority desc, seq) where state = 'queued' and input is null`,
    `create index runs_called on runs (state, priority desc, seq) where state = 'queued' and input is not null`,
    // What every worker looks at after every commit: nothing, most of the time.
    `create index runs_cancelling on runs (state, id) where state = 'running' and cancel_requested_at is not null`,

    // One recorded thing that a function did. A write has its row before it happens, a read when it is over. By the run's
    // number: a third of its id, and what a commit writes is what it costs.
    `create table steps (
      run_seq ${d.integer} not null references runs (seq),
      name ${d.key} not null,
      effect text not null check (effect in ('read', 'write')),
      state text not null check (state in ('started', 'done', 'failed', 'in_doubt')),
      tries ${d.integer} not null,
      result text,
      error text,
      settled_by text,
      -- A write that is or was in doubt is an action too: that is where people find it and say what became of it.
      action_id ${d.key},
      started_at ${d.integer} not null,
      settled_at ${d.integer},
      primary key (run_seq, name),
      check ((settled_at is null) = (state = 'started'))
    )${d.clusteredEnd}`,
    `create index steps_as_actions on steps (action_id) where action_id is not null`,
  ],
}
