import { describe, expect, test } from 'vitest'

import { createClient } from '../../src/api/client.ts'
import { sql } from '../../src/store/sql.ts'
import type { Sql } from '../../src/store/sql.ts'
import { run } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { engines } from '../support/engines.ts'
import { TOKEN, serve } from './support.ts'

const MANY = 100_000

/** As many runs as a year of a busy agent has, each of its own thread; nearly all have ended long ago. */
function* fill(engine: 'sqlite' | 'postgres'): Transition<void> {
  const numbers: Sql =
    engine === 'sqlite'
      ? sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${MANY})`
      : sql`with n (i) as (select generate_series(1, ${MANY}))`
  yield* run(sql`insert into threads (id, agent, created_at) ${numbers} select 't' || i, 'clerk', i from n`)
  yield* run(sql`insert into runs (id, thread_id, agent, state, request, request_digest, created_at, ended_at, cost_microusd)
    ${numbers} select 'run_' || i, 't' || i, 'clerk', case when i % 20000 = 7 then 'parked' else 'succeeded' end,
      '{"kind":"agent"}', 'd', i, case when i % 20000 = 7 then null else i end, 5 from n`)
  yield* run(sql`insert into messages (id, thread_id, generation, kind, key, state, body, created_at, consumed_by_run, reason, settled_at)
    ${numbers} select 'msg_' || i, 't' || i, 1, 'prompt', 'k', case when i % 20000 = 7 then 'dead' else 'consumed' end,
      '{"text":"hello"}', i, case when i % 20000 = 7 then null else 'run_' || i end,
      case when i % 20000 = 7 then 'expired' end, i from n`)
}

/** Far more than a range of an index takes on a busy machine, and less than going through all of them a few times. */
const QUICK_MS = 1_500

/** On PostgreSQL making them takes longer than looking at them: that is for the deep run. */
const looked = process.env['HOLDFAST_DEEP'] === undefined ? engines.slice(0, 1) : engines

describe.each(looked)('100,000 runs on $name', (engine) => {
  test('every page is quick, the first and one far down, also of what is rare', async () => {
    const store = await (await engine.database()).open()
    await store.apply(fill, engine.name)
    const { url } = await serve(store)
    const api = createClient({ url, token: TOKEN })
    const quick = async <T>(what: string, look: () => Promise<T>): Promise<T> => {
      let best = Number.POSITIVE_INFINITY
      for (let tries = 0; tries < 5 && best > QUICK_MS; tries++) {
        const before = performance.now()
        await look()
        best = Math.min(best, performance.now() - before)
      }
      expect({ what, quick: best < QUICK_MS }).toEqual({ what, quick: true })
      return look()
    }
    const first = await quick('runs', () => api.call('runs.list', { limit: 100 }))
    expect(first.items[0]?.id).toBe(`run_${MANY}`)
    const deep = await quick('far down', () => api.call('runs.list', { limit: 100, after: 'run_500' }))
    expect(deep.items.map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, index) => `run_${499 - index}`))
    const rare = await quick('the few that wait', () =>
      api.call('runs.list', { state: ['parked', 'running', 'queued'] }),
    )
    expect(rare.items.map(({ id }) => id)).toEqual(['run_80007', 'run_60007', 'run_40007', 'run_20007', 'run_7'])
    await quick('of an agent', () => api.call('runs.list', { agent: 'clerk', after: 'run_50000' }))
    const threads = await quick('threads', () => api.call('threads.list', { after: 't70000' }))
    expect(threads.items[0]).toMatchObject({ id: 't69999', preview: 'hello', doing: 'succeeded' })
    expect((await quick('dead letters', () => api.call('dead.list', {}))).items).toHaveLength(5)
    await quick('messages', () => api.call('messages.list', { state: ['consumed'], after: 'msg_50000' }))
    const chart = await quick('a chart', () =>
      api.call('series', { from: new Date(0).toISOString(), to: new Date(MANY + 1).toISOString(), bucketMs: 1_000 }),
    )
    expect(chart.items[1]).toMatchObject({ at: new Date(1_000).toISOString(), succeeded: 1_000, costUsd: 0.005 })
    await quick('status', () => api.call('status', {}))
  })
})
