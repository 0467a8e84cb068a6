import { expect, test } from 'vitest'

import { someOf } from '../../faults/exhaustive/method.ts'
import type { Outcome } from '../../faults/method.ts'

/** A prime, so that over the whole table every scenario, moment and fault has its turn. */
const STEP = 1_499
const CASES = 20

async function played(step: number, most: number, pattern?: string): Promise<Outcome[]> {
  const told: Outcome[] = []
  await someOf(step, most, (outcome) => told.push(outcome), pattern)
  // The one of the table, and in some scenarios the one that it begins with.
  for (const { seed, faults } of told) expect({ seed, faults }).not.toEqual({ seed, faults: {} })
  return told
}

test('a fault at any moment of a small scenario breaks no promise: some of the table', async () => {
  const told = await played(STEP, CASES)
  expect(told.flatMap(({ problems }) => problems)).toEqual([])
  expect(told.length).toBeGreaterThan(CASES / 2)
  expect(new Set(told.flatMap(({ faults }) => Object.keys(faults))).size).toBeGreaterThan(4)
})

// A worker that was paused in front of a write, and of which a probe or a person says that it was not done.
test('a worker that is paused in front of a write and comes back does it once [actions/once] [runs/fenced]', async () => {
  const told = await played(1, 30, '^(a run that succeeds|a doubt).*before effect.*stopped')
  expect(told.flatMap(({ problems }) => problems)).toEqual([])
  expect(told.length).toBeGreaterThan(8)
})
