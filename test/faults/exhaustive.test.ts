import { expect, test } from 'vitest'

import { everySo } from '../../faults/exhaustive/method.ts'
import type { Outcome } from '../../faults/method.ts'

/** A prime, so that over the whole table every scenario, moment and fault has its turn. */
const STEP = 997
const CASES = 30

test('a fault at any moment of a small scenario breaks no promise: some of the table', async () => {
  const told: Outcome[] = []
  await everySo(STEP, CASES, (outcome) => told.push(outcome))
  expect(told.flatMap(({ problems }) => problems)).toEqual([])
  expect(told.length).toBeGreaterThan(CASES / 2)
  // The one of the table, and in some scenarios the one that it begins with.
  for (const { seed, faults } of told) expect({ seed, faults }).not.toEqual({ seed, faults: {} })
  expect(new Set(told.flatMap(({ faults }) => Object.keys(faults))).size).toBeGreaterThan(5)
})
