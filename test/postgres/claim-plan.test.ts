import { expect, test } from 'vitest'

import { newAttemptId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import { callAll, claimCalls, openCalls } from '../../src/runs/call.ts'
import { run, single } from '../../src/store/transition.ts'
import { raw } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LEASE_MS, addWorker } from '../support/world.ts'
import { freshSchema, openedStore } from './support.ts'

const queue = (store: Store, calls: number) =>
  store.apply(
    callAll,
    Array.from({ length: calls }, () => ({ id: newRunId(random), agent: 'adder', input: '[]' })),
  )

/** What the server takes a table for decides how it looks for the next calls: by the rows that it found when it counted. */
const count = single(() => run(raw('analyze runs')))

test.each([0, 1, 2, 3])('as many calls are claimed as there are places, counted with %i rows', async (rows) => {
  const store = await openedStore(await freshSchema())
  await store.apply(openCalls, 'adder')
  if (rows > 0) await queue(store, rows)
  await store.apply(count)
  await queue(store, 8)
  const workerId = await addWorker(store)
  const attempts = [newAttemptId(random), newAttemptId(random)]
  const claimed = await store.apply(claimCalls, { workerId, leaseMs: LEASE_MS, agents: ['adder'], attempts })
  expect(claimed.map(({ attemptId }) => attemptId).toSorted()).toEqual(attempts.toSorted())
  await assertInvariants(store)
})
