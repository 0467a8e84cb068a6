import type { Dialect, Migration } from './migration.ts'

/** Threads, runs, attempts, workers, capacity, breakers, messages to parents, events. */
export const foundation: Migration = {
  number: 1,
  name: 'foundation',
  statements: (d) => [...people(d), ...execution(d), ...surroundings(d)],
}

const people = (d: Dialect) => [
  // One row: which database this is, so that an older backup of it can be told from another one.
  `create table store_identity (
    singleton ${d.integer} primary key check (singleton = 1),
    id text not null,
    created_at ${d.integer} not null
  )${d.tableEnd}`,

  `create table threads (
    id ${d.key} primary key,
    generation ${d.integer} not null default 1,
    agent text not null,
    state text not null default 'open' check (state in ('open', 'stopped', 'removed')),
    parent_id ${d.key},
    created_at ${d.integer} not null,
    removed_at ${d.integer}
  )${d.tableEnd}`,
  `create index threads_by_parent on threads (parent_id) where parent_id is not null`,

  // A process that claims runs. The identity (host, boot, pid namespace, pid, start time) is what a taker judges.
  `create table workers (
    id ${d.key} primary key,
    kind text not null check (kind in ('daemon', 'command')),
    home text not null,
    host text not null,
    identity text not null,
    started_at ${d.integer} not null,
    stopped_at ${d.integer}
  )${d.tableEnd}`,
  // Two daemons on one home folder: the second insert loses here, whatever either of them had looked up before.
  `create unique index workers_one_daemon on workers (host, home) where kind = 'daemon' and stopped_at is null`,
]

const execution = (d: Dialect) => [
  `create table runs (
    seq ${d.serial},
    id ${d.key} not null unique,
    thread_id ${d.key} not null references threads (id),
    agent text not null,
    state text not null check (state in ('queued', 'running', 'parked', 'succeeded', 'failed', 'cancelled')),
    priority ${d.integer} not null default 0,
    request text not null,
    request_digest text not null,
    submit_key ${d.key},
    parent_thread_id ${d.key},
    notify ${d.integer} not null default 1,
    for_worker ${d.key},
    fence ${d.integer} not null default 0,
    attempt ${d.integer} not null default 0,
    cancel_requested_at ${d.integer},
    cancel_by text,
    cancel_reason text,
    code text,
    error text,
    result text,
    input_tokens ${d.integer} not null default 0,
    output_tokens ${d.integer} not null default 0,
    cost_microusd ${d.integer} not null default 0,
    created_at ${d.integer} not null,
    expires_at ${d.integer},
    started_at ${d.integer},
    parked_at ${d.integer},
    parked_for text,
    parked_ms ${d.integer} not null default 0,
    ended_at ${d.integer},
    check ((ended_at is not null) = (state in ('succeeded', 'failed', 'cancelled'))),
    check (cancel_requested_at is null or state not in ('succeeded', 'failed'))
  )${d.tableEnd}`,
  `create unique index runs_by_submit_key on runs (submit_key) where submit_key is not null`,
  `create index runs_queued on runs (priority desc, seq) where state = 'queued'`,
  `create index runs_expiring on runs (expires_at) where state = 'queued' and expires_at is not null`,
  `create index runs_reserved on runs (for_worker) where state = 'queued' and for_worker is not null`,
  `create index runs_by_thread on runs (thread_id, seq)`,
  // A thread executes one run at a time; the loser of two claims meets this index.
  `create unique index runs_one_active on runs (thread_id) where state in ('running', 'parked')`,

  `create table attempts (
    id ${d.key} primary key,
    run_id ${d.key} not null references runs (id),
    number ${d.integer} not null,
    fence ${d.integer} not null,
    worker_id ${d.key} not null references workers (id),
    mark ${d.key} not null,
    slots text not null,
    claimed_at ${d.integer} not null,
    lease_until ${d.integer} not null,
    starting_at ${d.integer},
    released_at ${d.integer},
    ended_at ${d.integer},
    outcome text check (outcome in ('succeeded', 'failed', 'cancelled', 'parked', 'requeued', 'superseded')),
    unique (run_id, number),
    unique (run_id, fence),
    check ((ended_at is null) = (outcome is null))
  )${d.tableEnd}`,
  // One live attempt a run: the database's own word that two workers never hold the same claim.
  `create unique index attempts_one_live on attempts (run_id) where ended_at is null`,
  `create index attempts_by_lease on attempts (lease_until) where ended_at is null`,
  `create index attempts_by_worker on attempts (worker_id) where ended_at is null`,

  `create table late_results (
    attempt_id ${d.key} primary key references attempts (id),
    run_id ${d.key} not null references runs (id),
    outcome text not null,
    arrived_at ${d.integer} not null
  )${d.tableEnd}`,
  `create index late_results_by_run on late_results (run_id)`,
]

const surroundings = (d: Dialect) => [
  `create table capacity (
    scope ${d.key} primary key,
    used ${d.integer} not null check (used >= 0)
  )${d.tableEnd}`,

  `create table breakers (
    agent text not null,
    cause text not null,
    failures ${d.integer} not null,
    openings ${d.integer} not null default 0,
    open_until ${d.integer},
    probe_run_id ${d.key},
    primary key (agent, cause)
  )${d.tableEnd}`,

  // Numbered as they come: a millisecond holds many, and an inbox is read in order.
  `create table messages (
    seq ${d.serial},
    id ${d.key} not null unique,
    thread_id ${d.key} not null,
    generation ${d.integer} not null,
    from_thread ${d.key},
    kind text not null,
    key ${d.key} not null,
    state text not null check (state in ('pending', 'leased', 'consumed', 'replaced', 'dead')),
    reason text,
    attempts ${d.integer} not null default 0,
    body text not null,
    created_at ${d.integer} not null,
    due_at ${d.integer},
    consumed_by_run ${d.key},
    unique (thread_id, generation, key)
  )${d.tableEnd}`,

  `create table events (
    seq ${d.serial},
    at ${d.integer} not null,
    type text not null,
    thread_id ${d.key},
    run_id ${d.key},
    data text not null
  )${d.tableEnd}`,
  `create index events_by_run on events (run_id, seq) where run_id is not null`,
]
