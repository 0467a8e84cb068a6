import * as fc from 'fast-check'

import type { Outcome } from '../method.ts'
import { someCommands } from './commands.ts'
import type { Command } from './commands.ts'
import { live } from './live.ts'
import type { Lived } from './live.ts'
import type { Sides } from './sides.ts'

/** The variable that names the server of a campaign to its processes. */
export const SERVER = 'HOLDFAST_FAULTS_POSTGRES'

/** Commands that are somebody's misfortune. */
const FAULTS: Readonly<Partial<Record<Command['kind'], string>>> = {
  takeOver: 'worker lost',
  handOver: 'worker shut down',
  cancel: 'cancelled',
  resolve: 'settled by a person',
  expire: 'looked for what nobody answered',
  giveBack: 'delivery given back',
  remove: 'thread removed',
}

/** Fast-check makes the sequence, so that it can shorten it. */
export async function play(sides: Sides, seed: number): Promise<Omit<Outcome, 'seed'>> {
  let lived: Lived | undefined
  const property = fc.asyncProperty(someCommands, async (commands) => {
    lived = await live(sides, commands)
  })
  const { failed, errorInstance } = await fc.check(property, { seed, numRuns: 1, endOnFailure: true })
  if (failed) throw errorInstance
  const { done = [], runs = 0, problem } = lived ?? {}
  const faults: Record<string, number> = {}
  for (const fault of done.flatMap((kind) => FAULTS[kind] ?? [])) faults[fault] = (faults[fault] ?? 0) + 1
  const peaks = { 'commands in a sequence': done.length }
  return { faults, runs, effects: 0, peaks, problems: problem === undefined ? [] : [problem] }
}
