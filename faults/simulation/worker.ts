/**
 * Simulates one world after the other and prints what came of each, a line of JSON.
 *
 *   node worker.ts FIRST_SEED STEP HOW_MANY
 */
import { isMainThread } from 'node:worker_threads'

import type { Outcome } from '../method.ts'
import { answerAtOnce } from './files.ts'
import { simulate } from './scenario.ts'
import type { Result } from './scenario.ts'
import { StandIns } from './stand-ins.ts'
import { makeTemplate } from './world.ts'

/** The first world loads modules, which takes real time in the middle of simulated time. */
const WARM_UP_SEED = 0

const [, , first = '1', step = '1', howMany = '1'] = process.argv
if (!isMainThread) throw new Error('a world needs a process of its own')
answerAtOnce()
const standIns = new StandIns()
process.on('exit', () => standIns.stop())
process.stdin.resume().on('end', () => process.exit(0))
const template = await makeTemplate()
await simulate(WARM_UP_SEED, standIns, template)
for (let index = 0, seed = Number(first); index < Number(howMany); index++, seed += Number(step)) {
  process.stdout.write(`${JSON.stringify(outcomeOf(await simulate(seed, standIns, template)))}\n`)
}
process.exit(0)

function outcomeOf({ seed, faults, runs, effects, recoveryMs, problems }: Result): Outcome {
  const counts: Record<string, number> = {}
  for (const { kind } of faults) counts[kind] = (counts[kind] ?? 0) + 1
  return { seed, runs, effects, problems, faults: counts, ...(faults.length === 0 ? {} : { recoveryMs }) }
}
