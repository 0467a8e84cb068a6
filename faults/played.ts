import { describeError } from '../src/base/errors.ts'
import type { Outcome } from './method.ts'

/** A case that could not be judged is a failing one: whatever broke it may be what is looked for. */
export async function played(seed: number, play: () => Promise<Omit<Outcome, 'seed'>>): Promise<Outcome> {
  try {
    return { seed, ...(await play()) }
  } catch (error) {
    return broken(seed, describeError(error))
  }
}

/** Of whom nothing is known but that. */
export const broken = (seed: number, why: string): Outcome => ({
  seed,
  faults: {},
  runs: 0,
  effects: 0,
  problems: [`it broke: ${why}`],
})
