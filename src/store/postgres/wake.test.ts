import { EventEmitter } from 'node:events'

import type { Client, Pool } from 'pg'
import { expect, test } from 'vitest'

import { Wake } from './wake.ts'

// A second connection beside one that is on its way was forgotten, and kept a process alive that had closed its store.
test('a connection to listen on that is slow to come is asked for once, and ended with the store', async () => {
  const timers: (() => void)[] = []
  const clock = {
    now: () => 0,
    monotonicMs: () => 0,
    after: (_: number, then: () => void) => (timers.push(then), () => {}),
  }
  const asked: PromiseWithResolvers<Client>[] = []
  const connect = () => (asked.push(Promise.withResolvers<Client>()), asked.at(-1)!.promise)
  const pool = { query: () => Promise.resolve() } as unknown as Pool
  const wake = new Wake({ pool, clock, channel: 'c', self: 'me', connect })
  const listening = Promise.withResolvers<void>()
  let ended = 0
  const client = Object.assign(new EventEmitter(), {
    query: () => Promise.resolve(listening.resolve()),
    end: () => Promise.resolve(void (ended += 1)),
  })
  wake.listen(() => {})
  timers.splice(0).forEach((look) => look())
  expect(asked).toHaveLength(1)
  asked[0]!.resolve(client as unknown as Client)
  await listening.promise
  await wake.close()
  expect(ended).toBe(1)
})
