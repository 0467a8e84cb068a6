import pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'

import { LIMITS } from '../../src/base/limits.ts'
import { lastEventSeq } from '../../src/events/event.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { increment } from '../support/counters.ts'
import { query, withParameters } from '../support/engines.ts'
import { Installation } from '../support/holdfast.ts'
import { freshSchema, openedStore } from './support.ts'

/** How many connections a process has, at the most that was seen until `work` is done. */
async function mostDuring(url: string, name: string, work: () => Promise<unknown>): Promise<number> {
  const [state, text] = [
    { most: 0, isDone: false },
    `select count(*)::int as count from pg_stat_activity where application_name = '${name}'`,
  ]
  const working = work().finally(() => (state.isDone = true))
  while (!state.isDone) {
    const [row] = await query(url, text)
    state.most = Math.max(state.most, row?.['count'] as number)
  }
  await working
  return state.most
}

const many = (count: number, make: (index: number) => Promise<unknown>) =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)))

test('a process has as many connections as its pool allows and one that listens, whatever is asked of it', async () => {
  const name = `few_${process.pid}`
  const url = withParameters(await freshSchema(), { pool: '4', application_name: name })
  const store = await openedStore(url)
  store.onChange(() => {})
  const most = await mostDuring(url, name, () =>
    many(400, (index) => (index % 2 === 0 ? store.read(lastEventSeq) : store.apply(increment, `n${index}`))),
  )
  expect(most).toBeGreaterThan(1)
  expect(most).toBeLessThanOrEqual(4 + 1)
})

test('a connection is kept for the next commit, and given back once no commit came for a while', async () => {
  const clock = new FakeClock()
  const released = vi.fn<() => void>()
  class Watched extends pg.Pool {
    constructor(options?: pg.PoolConfig) {
      super(options)
      this.on('release', released)
    }
  }
  const driver = { Pool: Watched, Client: pg.Client }
  const store = await openedStore(await freshSchema(), { clock, driver })
  // Others are told of a commit on any connection, which is given back whenever the server has answered.
  const announced = Promise.resolve() as unknown as undefined
  const announcing = vi.spyOn(pg.Pool.prototype, 'query').mockReturnValue(announced)
  onTestFinished(() => announcing.mockRestore())
  released.mockClear()
  await store.apply(increment, 'n')
  clock.advance(LIMITS.keptConnectionMs - 1)
  await store.apply(increment, 'n')
  clock.advance(LIMITS.keptConnectionMs - 1)
  expect(released).not.toHaveBeenCalled()
  clock.advance(1)
  expect(released).toHaveBeenCalledTimes(1)
  // With the next one it begins again.
  await store.apply(increment, 'n')
  expect(released).toHaveBeenCalledTimes(1)
  clock.advance(LIMITS.keptConnectionMs)
  expect(released).toHaveBeenCalledTimes(2)
})

test('a daemon with a queue has no more than that either', async () => {
  const name = `daemon_${process.pid}`
  const url = await freshSchema()
  const place = new Installation({ store: withParameters(url, { application_name: name }) })
  const daemon = await place.up()
  const most = await mostDuring(url, name, async () => {
    await many(3, () => place.run(['run', '--detach', '--', 'true']))
    await place.run(['status'])
  })
  // Each of the three commands beside it has connections of its own, under the same name.
  expect(most).toBeLessThanOrEqual(4 * (LIMITS.poolConnections + 1))
  const count = async () => {
    const [row] = await query(url, `select count(*)::int as n from pg_stat_activity where application_name = '${name}'`)
    return row?.['n']
  }
  // Those of commands that have ended go within a moment.
  await expect.poll(count, { timeout: 20_000 }).toBeLessThanOrEqual(LIMITS.poolConnections + 1)
  daemon.kill('SIGTERM')
  await daemon.ended
})
