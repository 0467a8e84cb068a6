import { describe, expect, test } from 'vitest'

import type { Outcome } from '../../faults/method.ts'
import type { Fault } from '../../faults/simulation/faults.ts'
import { simulation } from '../../faults/simulation/method.ts'
import { fewest } from '../../faults/simulation/shrink.ts'

/** Any, and one because of what happens in it. */
const SEEDS = [
  { first: 1, most: 5, what: 'any' },
  { first: 9, most: 1, what: 'a worker paused in front of a write whose probe says that it is not done' },
  {
    first: 315,
    most: 1,
    what: 'a cancelled function whose step a paused worker had begun, and a person who says that it was not done',
  },
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
    expect(await worlds(2, 1)).toEqual(await worlds(2, 1))
  })

  test('of the faults of a world that goes wrong only those are left that it takes', async () => {
    const faults = Array.from({ length: 40 }, (_, nth) => ({ nth, kind: 'crash' }) as Fault)
    const needed = [3, 17, 18]
    let looks = 0
    const left = await fewest(faults, async (some) => {
      looks += 1
      return needed.every((nth) => some.some((fault) => fault.nth === nth))
    })
    expect(left.map(({ nth }) => nth)).toEqual(needed)
    expect(looks).toBeLessThan(60)
  })
})
