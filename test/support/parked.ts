import { DatabaseSync } from 'node:sqlite'

export const FIRST_PARKED = 'run_00000001'

/**
 * So many runs that wait, in a database that is there: some for a person, some for an instant far away, some for their
 * children. The instant of the first is over. Written straight into the tables; parking them one by one would take minutes.
 */
export function putParkedRuns(path: string, count: number): void {
  const database = new DatabaseSync(path)
  const numbers = `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count})`
  const id = `printf('%08d', i)`
  const [now, later] = [Date.now(), Date.now() + 86_400_000]
  database.exec(`begin;
    insert into workers (id, kind, home, host, identity, started_at, stopped_at) values ('wrk_gone', 'command', '/gone', 'gone', '{}', 1, 2);
    ${numbers} insert into threads (id, agent, created_at) select 'thr_' || ${id}, 'clerk', ${now} from n;
    ${numbers} insert into runs (id, thread_id, agent, state, request, request_digest, kind, fence, attempt, created_at, started_at,
        parked_at, parked_for, resume_at)
      select 'run_' || ${id}, 'thr_' || ${id}, 'clerk', 'parked', '{"kind":"agent"}', 'd', 'agent', 1, 1, ${now}, ${now}, ${now},
        case i % 3 when 0 then 'a person' when 1 then 'rate limit of the provider' else 'children' end,
        case when i = 1 then 1 when i % 3 = 1 then ${later} end from n;
    ${numbers} insert into attempts (id, run_id, number, fence, worker_id, mark, slots, claimed_at, lease_until, ended_at, outcome)
      select 'att_' || ${id}, 'run_' || ${id}, 1, 1, 'wrk_gone', 'm' || i, '[]', ${now}, ${now}, ${now}, 'parked' from n;
    ${numbers} insert into messages (id, thread_id, generation, kind, key, state, body, created_at, consumed_by_run)
      select 'msg_' || ${id}, 'thr_' || ${id}, 1, 'prompt', 'k', 'consumed', '{"text":"hello"}', ${now}, 'run_' || ${id} from n;
    ${numbers} insert into entries (thread_id, generation, run_id, kind, body, created_at)
      select 'thr_' || ${id}, 1, 'run_' || ${id}, 'user', '{"text":"hello"}', ${now} from n;
    commit`)
  database.close()
}
