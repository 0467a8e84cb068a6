import { expect, test } from 'vitest'

import { BATCH, Batches } from '../../faults/fuzzing/batch.ts'
import { fuzzing } from '../../faults/fuzzing/method.ts'
import { SURFACES } from '../../faults/fuzzing/surfaces.ts'
import type { Outcome } from '../../faults/method.ts'

async function batches(first: number, most: number): Promise<Outcome[]> {
  const told: Outcome[] = []
  await fuzzing.run({ first, most, isOver: () => false, tell: (outcome) => told.push(outcome) })
  return told.toSorted((a, b) => a.seed - b.seed)
}

test('hostile input on each surface: nobody crashes, hangs, or does what nobody allowed', async () => {
  const told = await batches(1, SURFACES.length)
  expect(told.flatMap(({ seed, problems }) => problems.map((problem) => `${seed}: ${problem}`))).toEqual([])
  expect(Object.assign({}, ...told.map(({ faults }) => faults))).toEqual(
    Object.fromEntries(SURFACES.map(({ name }) => [name, BATCH])),
  )
})

test('a row of seeds has every surface', () => {
  const names = SURFACES.map((_, index) => Batches.surfaceOf(index + 7).name)
  expect(new Set(names).size).toBe(SURFACES.length)
})
