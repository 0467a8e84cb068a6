import { oneByOne } from '../method.ts'
import type { Method, Outcome } from '../method.ts'
import { verdictOn } from './check.ts'
import { Place } from './place.ts'
import { troubleOf } from './troubles.ts'
import { World } from './world.ts'

/** A real server and a network that fails, under callers, workers, agents and functions. */
export const postgres: Method = {
  name: 'postgres',
  title:
    'A real PostgreSQL that is killed and started again, backends terminated, commits cut off, connections that reset, swallow and delay, conflicts',
  cases: 'databases under load',
  async run(campaign) {
    const place = await Place.open()
    try {
      await oneByOne(campaign, (seed) => play(place, seed))
    } finally {
      await place.close()
    }
  },
}

/** One case, or a short one with a share of what goes wrong in it. */
export async function play(place: Place, seed: number, share?: number): Promise<Omit<Outcome, 'seed'>> {
  const trouble = troubleOf(seed, share)
  const world = await World.open(place, seed, trouble)
  try {
    const { faults, recoveryMs, problems } = await world.live(trouble)
    const { runs, effects, problems: found } = await verdictOn(world)
    const acknowledged = { 'acknowledged commits in a case': world.load.done }
    return { faults, runs, effects, recoveryMs, peaks: acknowledged, problems: [...problems, ...found] }
  } finally {
    await world.close()
  }
}
