import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { dueSchedules } from '../../src/schedule/fire.ts'
import { parsePostgresUrl } from '../../src/store/postgres/settings.ts'
import { Renderer } from '../../src/store/postgres/statement.ts'
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
