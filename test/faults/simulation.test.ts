import { describe, expect, test } from 'vitest'

import type { Outcome } from '../../faults/method.ts'
import { simulation } from '../../faults/simulation/method.ts'

/** Kept because each of them once found something, or because much happens in it. */
const SEEDS = [
  { first: 1, most: 2, what: 'any' },
  { first: 49, most: 1, what: 'a worker paused in front of a write whose probe says that it is not done' },
  { first: 20_303, most: 1, what: 'a worker paused in front of a write of which a person says that it did not happen' },
] as const

async function worlds(first: number, most: number): Promise<Outcome[]> {
  const told: Outcome[] = []
  await simulation.run({ first, most, isOver: () => false, tell: (outcome) => told.push(outcome) })
  return told.toSorted((a, b) => a.seed - b.seed)
}

describe('a simulated world with faults at every statement', () => {
  test.each(SEEDS)('seed $first: $what', async ({ first, most }) => {
    const told = await worlds(first, most)
    expect(told.map(({ seed, problems }) => ({ seed, problems }))).toEqual(
      Array.from({ length: most }, (_, index) => ({ seed: first + index, problems: [] })),
    )
    for (const { runs, effects, faults } of told) {
      expect(runs).toBeGreaterThan(0)
      expect(effects).toBeGreaterThan(0)
      expect(Object.keys(faults)).not.toEqual([])
    }
  })

  test('the same seed is the same world', async () => {
    expect(await worlds(1, 1)).toEqual(await worlds(1, 1))
  })
})
