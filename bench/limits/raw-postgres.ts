/** The limit of the store, as the peers' benchmark has it (`raw-pg`): rows of hand-made tables, many a statement, no engine. */
import pg from 'pg'

import type { Watch } from './watch.ts'

const TABLES = `
  create table wf (id text primary key, steps int, done bool not null default false);
  create table step (wf text, i int, out jsonb, primary key (wf, i));
  create table job (id text primary key, due float8);
  create index on job (due)`
const STATEMENTS = {
  wf: 'insert into wf (id, steps) select * from unnest($1::text[], $2::int[])',
  step: 'insert into step (wf, i, out) select * from unnest($1::text[], $2::int[], $3::jsonb[])',
  done: 'update wf set done = true where id = any($1::text[])',
  add: 'insert into job (id, due) select * from unnest($1::text[], $2::float8[])',
  take: `delete from job where id in (select id from job where due <= $1 order by due limit $2 for update skip locked)
    returning id, due`,
} as const

const CONNECTIONS = 4
const IN_BULK = 5_000
const TAKEN_TOGETHER = 500

type Write = (kind: keyof typeof STATEMENTS, ...values: unknown[]) => Promise<number>

async function withRaw(url: string, work: (write: Write) => Promise<void>): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  // Their database is dropped while they are closing.
  pool.on('error', () => {})
  try {
    await pool.query(TABLES)
    await work(async (name, ...values) => {
      const { rowCount } = await pool.query({ name, text: STATEMENTS[name], values })
      return rowCount ?? 0
    })
  } finally {
    await pool.end()
  }
}

async function addAll(write: Write, count: number): Promise<void> {
  for (let from = 0; from < count; from += IN_BULK) {
    const ids = Array.from({ length: Math.min(IN_BULK, count - from) }, (_, index) => `j${from + index}`)
    await write(
      'add',
      ids,
      ids.map(() => 0),
    )
  }
}

export const rawBulk = (url: string, count: number, watch: Watch) =>
  withRaw(url, async (write) => {
    watch.begin()
    await addAll(write, count)
    watch.end()
  })

export const rawDrain = (url: string, count: number, watch: Watch) =>
  withRaw(url, async (write) => {
    await addAll(write, count)
    watch.begin()
    while ((await write('take', 0, TAKEN_TOGETHER)) > 0);
    watch.end()
  })

/** Workflows one after the other: the call, each of its steps, the end, each its own commit. */
export const rawAlone = (url: string, flows: number, perFlow: number, watch: Watch) =>
  withRaw(url, async (write) => {
    for (let flow = 0; flow < flows; flow += 1) {
      watch.begin()
      await write('wf', [`one-${flow}`], [perFlow])
      for (let step = 0; step < perFlow; step += 1)
        await write('step', [`one-${flow}`], [step], [JSON.stringify({ ok: step })])
      await write('done', [`one-${flow}`])
      watch.end()
    }
  })

/** A workflow of one step: the call, the step, the end, each its own commit. */
export const rawResults = (url: string, rests: readonly number[], watch: Watch) =>
  withRaw(url, async (write) => {
    for (const [index, restMs] of rests.entries()) {
      await watch.rest(restMs)
      watch.begin()
      await write('wf', [`one-${index}`], [1])
      await write('step', [`one-${index}`], [0], [JSON.stringify({ ok: 0 })])
      await write('done', [`one-${index}`])
      watch.end()
    }
  })
