import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import type { Outcome } from '../../src/runs/finish.ts'
import type { Store } from '../../src/store/store.ts'
import type { Change } from '../../src/store/transition.ts'
import type { HurriedClock } from '../support/clocks.ts'

export interface World {
  readonly store: Store
  readonly clock: HurriedClock
}

/** One transition in one situation: `prepare` makes the situation, what it returns is the transition to interrupt. */
export interface Scenario {
  readonly change: string
  readonly situation: string
  /** What doing the very same again answers once it was done: everything but these repeats without harm. */
  readonly again: 'harmless' | 'refused'
  prepare(world: World): Promise<(store: Store) => Promise<unknown>>
}

/** Takes `{ submitRun }`: the name that the gate looks for and the transition itself, in one word. */
export function scenario<Args extends [] | readonly unknown[], T>(
  named: Readonly<Record<string, Change<Args, T>>>,
  situation: string,
  prepare: (world: World) => Promise<Args>,
  again: Scenario['again'] = 'harmless',
): Scenario {
  const [[change, transition] = []] = Object.entries(named)
  if (change === undefined || transition === undefined) throw new Error(`no transition for: ${situation}`)
  const act = async (world: World) => {
    const args = await prepare(world)
    return (store: Store) => store.apply(transition, ...args)
  }
  return { change, situation, again, prepare: act }
}

/** Endings and requests that many situations need. */
export const succeeded: Outcome = {
  state: 'succeeded',
  result: { exitCode: 0 },
  usage: { inputTokens: 5, outputTokens: 7, costMicrousd: 11 },
  summary: 'done',
}
export const timedOut: Outcome = { state: 'failed', code: 'timeout', error: 'it ran longer than it may' }
export const byTester = { by: 'tester', reason: 'a test' }
export const newAttempt = () => ({ id: newAttemptId(random), mark: random.hex(16) })
