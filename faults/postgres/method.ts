import type { Campaign, Method, Outcome } from '../method.ts'
import { inWords, leastThatFails } from '../shorter.ts'
import { verdictOn } from './check.ts'
import { Place } from './place.ts'
import { troubleOf } from './troubles.ts'
import { World } from './world.ts'
import type { Trouble } from './world.ts'

/** A real server and a network that fails, under callers, workers, agents and functions. */
export const postgres: Method = {
  name: 'postgres',
  title:
    'A real PostgreSQL that is killed and started again, backends terminated, commits cut off, connections that reset, swallow and delay, conflicts',
  cases: 'databases under load',
  async run(campaign) {
    let next = campaign.first
    const nextSeed = () => (next < campaign.first + campaign.most && !campaign.isOver() ? next++ : undefined)
    const lanes = Math.min(SERVERS, campaign.most)
    await Promise.all(Array.from({ length: lanes }, (_, at) => lane(at === 0, nextSeed, campaign.tell)))
  },
  async shrink(seed) {
    const again = async (share: number) => {
      const place = await Place.open({ fsync: false })
      const { problems } = await play(place, seed, share)
      await place.close()
      return problems
    }
    const smaller = (share: number) => [share / 8, share / 2].filter((less) => less >= LEAST_SHARE)
    return inWords(await leastThatFails(1, smaller, again), (share) => `with ${share} of what goes wrong in it:`)
  },
}

/** Of the rarest trouble that is once or twice. */
const LEAST_SHARE = 1 / 64

/** Side by side, since a case mostly waits: for a server that starts, for a wait that has to be over. */
const SERVERS = 4

/** A killed server loses nothing that it had written, synced or not: so only one of them syncs, as all do in life. */
async function lane(fsync: boolean, nextSeed: () => number | undefined, tell: Campaign['tell']): Promise<void> {
  let place = await Place.open({ fsync })
  try {
    for (let seed = nextSeed(); seed !== undefined; seed = nextSeed()) {
      const outcome = await play(place, seed)
      tell({ seed, ...outcome })
      if (outcome.problems.length === 0) continue
      // Whatever is wrong with this server is not to be told of the next ones too.
      await place.close()
      place = await Place.open({ fsync })
    }
  } finally {
    await place.close()
  }
}

/** One case, or a short one with a share of what goes wrong in it. */
export async function play(place: Place, seed: number, share?: number): Promise<Omit<Outcome, 'seed'>> {
  const trouble = troubleOf(seed, share)
  try {
    const world = await World.open(place, seed, trouble)
    const outcome = await lived(world, trouble).catch((error: unknown) => broken(error, world.faults))
    return { ...outcome, problems: [...outcome.problems, ...(await world.close())] }
  } catch (error) {
    return broken(error)
  }
}

async function lived(world: World, trouble: Trouble): Promise<Omit<Outcome, 'seed'>> {
  const { recoveryMs, problems } = await world.live(trouble)
  const { runs, effects, problems: found } = await verdictOn(world)
  const acknowledged = { 'acknowledged commits in a case': world.load.done }
  return { faults: world.faults, runs, effects, recoveryMs, peaks: acknowledged, problems: [...problems, ...found] }
}

const broken = (error: unknown, faults: Outcome['faults'] = {}) => ({
  faults,
  runs: 0,
  effects: 0,
  problems: [`broke: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`],
})
