/** A long history, written straight into the tables: executing it would take an hour, and is not what is measured. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import pg from 'pg'

import { openProduct } from '../product.ts'
import type { Home } from '../product.ts'

const THREADS = 1_000

/** Of a database: rows 1 to n as `i`, and a number with leading zeros. */
interface Words {
  readonly upTo: (count: number) => string
  readonly id: (prefix: string, number: string) => string
}

const SQLITE: Words = {
  upTo: (count) =>
    `(with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count}) select i from n)`,
  id: (prefix, number) => `printf('${prefix}_%032d', ${number})`,
}
const POSTGRES: Words = {
  upTo: (count) => `generate_series(1, ${count}) as n (i)`,
  id: (prefix, number) => `'${prefix}_' || lpad((${number})::text, 32, '0')`,
}

/** A thousand threads of twenty agents; of the runs two in a hundred failed and one was cancelled. */
function statements({ upTo, id }: Words, runs: number): string[] {
  const [began, thread] = [Date.now() - runs * 1_000, id('thr', `i % ${THREADS}`)]
  const state = `case when i % 100 < 2 then 'failed' when i % 100 = 2 then 'cancelled' else 'succeeded' end`
  const at = `${began} + i * 1000`
  return [
    `insert into workers (id, kind, home, host, identity, started_at, stopped_at) values ('wrk_gone', 'command', '/gone', 'gone', '{}', 1, 2)`,
    `insert into threads (id, agent, created_at) select ${thread}, 'agent-' || i % 20, ${began} from ${upTo(THREADS)}`,
    `insert into runs (id, thread_id, agent, state, request, request_digest, kind, fence, attempt, created_at, started_at, ended_at,
        code, result) select ${id('run', 'i')}, ${thread}, 'agent-' || i % 20, ${state}, '{"kind":"agent"}', 'd', 'agent', 1, 1,
        ${at}, ${at}, ${at} + 900, case when i % 100 < 2 then 'model' end, case when i % 100 > 2 then '{"text":"done"}' end
      from ${upTo(runs)}`,
    `insert into attempts (id, run_id, number, fence, worker_id, mark, slots, claimed_at, lease_until, ended_at, outcome)
      select ${id('att', 'i')}, ${id('run', 'i')}, 1, 1, 'wrk_gone', 'm' || i, '[]', ${at}, ${at}, ${at} + 900, ${state}
      from ${upTo(runs)}`,
    `insert into events (at, type, thread_id, run_id, data) select ${at} + 900, 'run.finished', ${thread}, ${id('run', 'i')},
        '{"state":"succeeded"}' from ${upTo(runs)}`,
  ]
}

/** The id of the run with this number; the newest has the highest. */
export const runNumber = (number: number) => `run_${String(number).padStart(32, '0')}`
export const SOME_THREAD = `thr_${String(7).padStart(32, '0')}`

export async function seedRuns(at: Home, runs: number): Promise<void> {
  await (await openProduct(at.home, at.store)).close()
  if (at.engine === 'sqlite') {
    const database = new DatabaseSync(join(at.home, 'holdfast.db'))
    database.exec(`begin; ${statements(SQLITE, runs).join(';\n')}; commit`)
    database.close()
    return
  }
  const schema = new URL(at.store!).searchParams.get('schema')
  const client = new pg.Client(at.store)
  await client.connect()
  await client.query(`set search_path to ${schema}`)
  for (const statement of statements(POSTGRES, runs)) await client.query(statement)
  await client.query('analyze')
  await client.end()
}
