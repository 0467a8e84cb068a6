import { KnownPlan, inWords } from './faults.ts'
import type { Fault } from './faults.ts'
import type { Result } from './scenario.ts'

/**
 * The fewest faults with which it still goes wrong: half of them is left out, then a quarter, down to single ones, whatever is
 * not needed. The same world each time, as far as what is left out does not change its course.
 */
export async function fewest(
  faults: readonly Fault[],
  goesWrong: (faults: readonly Fault[]) => Promise<boolean>,
): Promise<readonly Fault[]> {
  let left = faults
  for (let size = Math.ceil(left.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < left.length;) {
      const without = [...left.slice(0, from), ...left.slice(from + size)]
      if (without.length < left.length && (await goesWrong(without))) left = without
      else from += size
    }
  }
  return left
}

/** In words that somebody can follow. */
export async function shortest(seed: number, simulate: (plan?: KnownPlan) => Promise<Result>): Promise<string> {
  const whole = await simulate()
  if (whole.problems.length === 0) return `seed ${seed} shows nothing here`
  const left = await fewest(whole.faults, async (faults) => (await simulate(new KnownPlan(faults))).problems.length > 0)
  const { problems } = await simulate(new KnownPlan(left))
  return [
    `${left.length} of ${whole.faults.length} faults are enough:`,
    ...left.map((fault) => `  ${inWords(fault)}`),
    'and then:',
    ...problems.map((problem) => `  ${problem}`),
  ].join('\n')
}
