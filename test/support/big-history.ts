/** A year of a busy installation, made by the database itself in a few seconds: SQL for PostgreSQL. Nearly everything is over. */
export function bigHistory({ threads, runs }: { readonly threads: number; readonly runs: number }): string {
  const series = (count: number) => `generate_series(1, ${count}) as i`
  const ended = `case when i % 1000 = 7 then null else 1000000 + i end`
  return `
    set local session_replication_role to replica;
    insert into threads (id, agent, created_at) select 't' || i, 'agent' || i % 20, i from ${series(threads)};
    insert into workers (id, kind, home, host, identity, started_at, stopped_at)
      select 'w' || i, 'command', 'h' || i, 'here', '{}', i, i from ${series(runs / 100)};
    insert into runs (id, thread_id, agent, state, request, request_digest, submit_key, kind, input, created_at, ended_at, parent_run_id)
      select 'run_' || lpad(i::text, 10, '0'), 't' || i % ${threads}, 'agent' || i % 20,
        case when i % 1000 = 7 then 'queued' else 'succeeded' end, '{"kind":"agent"}', 'd' || i,
        case when i % 3 = 0 then 'key' || i end, 'agent', case when i % 2 = 0 or (i % 1000 = 7 and i > 1000) then '[]' end, 1000000 + i, ${ended},
        case when i % 10 = 0 then 'run_' || lpad((i - 1)::text, 10, '0') end from ${series(runs)};
    insert into attempts (id, run_id, number, fence, worker_id, mark, slots, claimed_at, lease_until, ended_at, outcome)
      select 'att_' || i, 'run_' || lpad(i::text, 10, '0'), 1, 1, 'w' || i % ${runs / 100}, 'm' || i, '[]', i, i, i, 'succeeded'
      from ${series(runs)} where i % 1000 <> 7;
    insert into events (at, type, thread_id, run_id, data)
      select i, case when i % 3 = 0 then 'run.queued' when i % 3 = 1 then 'run.started' else 'run.finished' end,
        't' || (i) % ${threads}, case when i % 10 = 0 then null else 'run_' || lpad((i)::text, 10, '0') end, '{}'
      from ${series(runs)};
    insert into events (at, type, run_seq, data) select i, 'step.recorded', i, '{"step":"s","state":"done"}' from ${series(runs)};
    insert into steps (run_seq, name, effect, state, tries, result, started_at, settled_at)
      select i / 2, 'step' || i % 2, 'write', 'done', 1, '1', i, i from ${series(runs)} where i % 2 = 0 or i % 4 = 1;
    insert into messages (id, thread_id, generation, kind, key, state, body, created_at, settled_at, consumed_by_run)
      select 'msg_' || i, 't' || i % ${threads}, 1, 'prompt', 'k' || i, case when i % 5000 = 7 then 'pending' else 'consumed' end, '{}', i, i,
        'run_' || lpad(i::text, 10, '0') from ${series(runs / 2)};
    insert into entries (thread_id, generation, run_id, kind, body, created_at)
      select 't' || i % ${threads}, 1, 'run_' || lpad(i::text, 10, '0'), case when i % 2 = 0 then 'user' else 'assistant' end, '{}', i
      from ${series(runs / 2)};
    insert into actions (id, run_id, thread_id, entry_seq, ordinal, call_id, tool, effect, repeats, input, signature, state, mark, created_at, started_at, settled_at)
      select 'act_' || i, 'run_' || lpad(i::text, 10, '0'), 't' || i % ${threads}, i, 0, 'c' || i, 'shell', 'write', 'once', '{}', 's' || i,
        case when i % 5000 = 7 then 'in_doubt' else 'done' end, 'm' || i, i, i, i from ${series(runs / 2)};
    insert into approvals (id, action_id, run_id, thread_id, digest, shown, state, asked_at, expires_at, asked_by)
      select 'apr_' || i, 'act_' || i, 'run_' || lpad(i::text, 10, '0'), 't' || i % ${threads}, 'd', '{}', 'consumed', i, i, 'a'
      from ${series(runs / 10)};
    insert into schedules (id, name, kind, state, rule, target, options, target_thread, owner_thread, made_by, next_at, next_fire_at, created_at, updated_at, ended_at, reason)
      select 'sch_' || i, 'n' || i, 'followup', case when i % 4 = 0 then 'active' else 'ended' end, '{}', '{}', '{}', 't' || i, 't' || i, 'a',
        case when i % 4 = 0 then 9000000000000 + i end, case when i % 4 = 0 then 9000000000000 + i end, i, i, case when i % 4 = 0 then null else i end, 'r'
      from ${series(threads / 2)};
    insert into occurrences (id, schedule_id, due_at, origin, state, attempts, created_at, fired_at, settled_at, run_id)
      select 'occ_' || i, 'sch_' || i % ${threads / 2}, i, 'due', 'succeeded', 1, i, i, i, 'run_' || lpad(i::text, 10, '0')
      from ${series(runs / 4)};
    insert into acts (id, at, call, by, via) select 'act_' || lpad(i::text, 10, '0'), i, 'runs.cancel', 'a', 'b' from ${series(threads)};
    set local session_replication_role to default;`
}

/** Tables that grow with use. The others have a row for each thing that somebody configured, or for what is under way. */
export const BIG_TABLES: ReadonlySet<string> = new Set([
  'threads',
  'runs',
  'attempts',
  'events',
  'steps',
  'messages',
  'entries',
  'actions',
  'approvals',
  'schedules',
  'occurrences',
  'acts',
])
