import { describe, expect, test } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import { newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { WorkerId } from '../../src/base/ids.ts'
import { callOne, openCalls } from '../../src/runs/call.ts'
import type { WorkerKind } from '../../src/runs/worker.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { run, single } from '../../src/store/transition.ts'
import { endRivals } from '../../src/workers/rivals.ts'
import { engines } from '../support/engines.ts'
import { aPayer } from '../support/one-worker.ts'
import { someIdentity } from '../support/world.ts'

/** As another machine sees it. */
const moveAway = single((id: WorkerId) =>
  run(sql`update workers set identity = ${JSON.stringify({ ...someIdentity(), host: 'elsewhere' })} where id = ${id}`),
)

/** A call whose worker drains while its step is under way, and that another worker has taken over. */
async function left(store: Store, kind: WorkerKind) {
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const pay = () => {
    begun.resolve()
    return go.promise
  }
  const first = await aPayer(store, (call) => call.step('pay', pay), kind)
  const id = newRunId(random)
  await store.apply(openCalls, 'payer')
  await store.apply(callOne, { id, agent: 'payer', input: '1' })
  await first.start()
  await begun.promise
  expect(await first.drain(0)).toEqual({ handedOver: 1 })
  await store.apply(moveAway, first.id)
  const second = await aPayer(store, () => go.promise, 'command')
  expect(await second.recover()).toHaveLength(1)
  const rival = await endRivals(store, systemClock, id)
  go.resolve()
  await second.settled()
  await second.drain(0)
  return rival
}

describe.each(engines)('on $name a worker stops while a step of it is under way', (engine) => {
  test('a program does not say that it stopped: it goes on, and could still do it [actions/once]', async () => {
    const store = await (await engine.database()).open()
    expect(await left(store, 'command')).toContain('a process on elsewhere, which cannot be reached, had begun it')
  })

  test('a daemon says so: its process ends with it', async () => {
    const store = await (await engine.database()).open()
    expect(await left(store, 'daemon')).toBeUndefined()
  })
})
