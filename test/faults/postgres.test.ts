import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { play } from '../../faults/postgres/method.ts'
import { Place } from '../../faults/postgres/place.ts'

/** Of what goes wrong in a case of a campaign. */
const SHARE = 0.05

const SEEDS = [
  { seed: 13, kinds: ['server killed'] },
  { seed: 14, kinds: ['backend terminated at a statement', 'backend terminated at any moment'] },
  { seed: 15, kinds: ['cut after commit', 'cut before commit', 'cut while committing'] },
  { seed: 16, kinds: ['40001', '40P01', '55P03'] },
]

describe('a real PostgreSQL under callers, workers, agents and functions', () => {
  let place: Place
  beforeAll(async () => {
    place = await Place.open()
  })
  afterAll(() => place.close())

  test.each(SEEDS)(
    'seed $seed: with $kinds everything that was acknowledged happened once [durable/acknowledged]',
    async ({ seed, kinds }) => {
      const { problems, faults, runs, effects } = await play(place, seed, SHARE)
      expect(problems).toEqual([])
      expect(kinds).toEqual(expect.arrayContaining(Object.keys(faults)))
      expect(Object.values(faults).reduce((sum, times) => sum + times, 0)).toBeGreaterThan(0)
      expect(runs).toBeGreaterThan(0)
      expect(effects).toBeGreaterThan(0)
    },
  )
})
