import { afterAll, beforeAll, expect, inject, test } from 'vitest'

import { play } from '../../faults/model-based/play.ts'
import { Sides } from '../../faults/model-based/sides.ts'
import { query } from '../support/engines.ts'

const SCHEMA = `model_${process.pid}`
const SEQUENCES = 8

let sides: Sides
beforeAll(async () => {
  sides = await Sides.open(inject('postgres'), SCHEMA)
})
afterAll(async () => {
  await sides.close()
  await query(inject('postgres'), `drop schema ${SCHEMA} cascade`)
})

test('random commands have the same answers and the same public JSON in a plain model, on SQLite and on PostgreSQL', async () => {
  const seeds = Array.from({ length: SEQUENCES }, (_, index) => index + 1)
  let [runs, faults] = [0, 0]
  for (const seed of seeds) {
    const outcome = await play(sides, seed)
    expect(outcome.problems, `seed ${seed}`).toEqual([])
    runs += outcome.runs
    faults += Object.values(outcome.faults).reduce((sum, times) => sum + times, 0)
  }
  expect(runs).toBeGreaterThan(SEQUENCES)
  expect(faults).toBeGreaterThan(SEQUENCES)
})
