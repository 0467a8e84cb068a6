import { expect } from 'vitest'

import type { Store } from '../../src/store/store.ts'
import { answersOf, imbalances } from '../support/load.ts'
import type { Load } from '../support/load.ts'

/** How many answers there were; fails if any of them was wrong, or anybody was refused. */
export async function expectBalanced(load: Load, store: Store): Promise<number> {
  expect(load.refusals, 'nobody was refused').toEqual([])
  expect(await imbalances(load, store)).toEqual([])
  return answersOf(load)
}
