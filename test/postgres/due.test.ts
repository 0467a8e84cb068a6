import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import type { ScheduleId } from '../../src/base/ids.ts'
import { dueSchedules, fireSchedule } from '../../src/schedule/fire.ts'
import { DEFAULT_OPTIONS } from '../../src/schedule/schedule.ts'
import { parsePostgresUrl } from '../../src/store/postgres/settings.ts'
import { Renderer } from '../../src/store/postgres/statement.ts'
import { newIds } from '../schedule/support.ts'
import { freshSchema, openedStore } from './support.ts'

// Compared with a function that may answer otherwise for each row, all that wait were looked at: half a second with 200,000.
test('what is due is found by its index, however many wait', async () => {
  const url = await freshSchema()
  await openedStore(url)
  const client = new pg.Client(parsePostgresUrl(url).pool)
  onTestFinished(() => client.end())
  await client.connect()
  await client.query(`insert into schedules
      (id, name, kind, state, rule, target, options, made_by, next_at, next_fire_at, created_at, updated_at)
    select 'sch_' || n, 'job ' || n, 'job', 'active', '{}', '{}', '{}', 'ada', due, due, 0, 0
    from generate_series(1, 20000) as n, lateral (select 9000000000000 + n as due)`)
  const { text } = new Renderer({ named: false }).request(dueSchedules.single(100).sql)
  const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, [100])
  const { Plan: plan } = (rows as { 'QUERY PLAN': [{ Plan: Record<string, number> }] }[])[0]!['QUERY PLAN'][0]
  expect(JSON.stringify(plan)).toContain('"Index Cond":"(next_fire_at <= ')
  expect(plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!).toBeLessThan(20)
})

test('a schedule that another daemon is firing is not waited for, and fires as soon as that one has given it up', async () => {
  const url = await freshSchema()
  const store = await openedStore(url)
  const client = new pg.Client(parsePostgresUrl(url).pool)
  onTestFinished(() => client.end())
  await client.connect()
  const values = [{ kind: 'once', at: 1 }, { kind: 'command', argv: ['true'], cwd: '/' }, DEFAULT_OPTIONS]
  await client.query(
    `insert into schedules (id, name, kind, state, rule, target, options, made_by, next_at, next_fire_at, created_at, updated_at)
      select 'sch_' || n, 'job ' || n, 'job', 'active', $1, $2, $3, 'ada', 1, 1, 0, 0 from generate_series(1, 2) as n`,
    values.map((value) => JSON.stringify(value)),
  )
  const fire = async (id: string) => (await store.apply(fireSchedule, id as ScheduleId, 1, newIds())).kind
  await client.query('begin')
  await client.query(`select 1 from schedules where id = 'sch_1' for update`)
  // If it waited, it would for as long as this transaction is open, and so would the other one that shares its commit.
  expect(await Promise.all(['sch_1', 'sch_2'].map(fire))).toEqual(['lost', 'fired'])
  await client.query('rollback')
  expect(await Promise.all(['sch_1', 'sch_2'].map(fire))).toEqual(['fired', 'lost'])
})
