import { availableParallelism } from 'node:os'

import { PostgresServer } from '../../test/support/postgres-server.ts'
import type { Campaign, Method } from '../method.ts'
import { inWords, leastThatFails } from '../shorter.ts'
import { play } from './case.ts'
import { Databases } from './databases.ts'
import { Hosts } from './hosts.ts'
import { planOf, shorterThan } from './plan.ts'

/** Most of a case is waiting for a lease to end. */
const CASES_A_CORE = 5

/** Real worker processes that are stopped beyond their lease, are taken over from, and come back; and clocks that are wrong. */
export const zombies: Method = {
  name: 'zombies',
  title:
    'Workers, real processes, are stopped between two transactions for longer than their lease, another takes over, and they come back; clocks are wrong by an hour, by 400 days, set back, fast or slow',
  cases: 'cases',
  async run(campaign) {
    const { first, most, isOver, tell } = campaign
    const databases = await onItsServer()
    let next = first
    const nextSeed = () => (next < first + most && !isOver() ? next++ : undefined)
    await sideBySide(nextSeed, tell, databases, Math.min(availableParallelism() * CASES_A_CORE, most))
  },
  async shrink(seed) {
    const [databases, hosts] = [await onItsServer(), new Hosts()]
    try {
      const whole = planOf(seed, databases.engines)
      const again = async (plan: typeof whole) => (await play(seed, databases, hosts, plan)).problems
      return inWords(await leastThatFails(whole, shorterThan, again), (plan) => JSON.stringify(plan))
    } finally {
      await hosts.close()
      await databases.close()
    }
  },
}

async function onItsServer(): Promise<Databases> {
  const server = await PostgresServer.create({ fsync: false })
  return Databases.create(server.url(), () => server.stop())
}

/** So many cases at once, each with workers of its own. */
export async function sideBySide(
  nextSeed: () => number | undefined,
  tell: Campaign['tell'],
  databases: Databases,
  lanes: number,
): Promise<void> {
  const hosts = new Hosts()
  const lane = async () => {
    for (let seed = nextSeed(); seed !== undefined; seed = nextSeed()) tell(await play(seed, databases, hosts))
  }
  const close = async () => {
    await hosts.close()
    await databases.close()
  }
  // A process that is stopped does not notice that nobody is there any more.
  const leave = () => void close().finally(() => process.exit(130))
  process.once('SIGINT', leave).once('SIGTERM', leave)
  try {
    await Promise.all(Array.from({ length: lanes }, lane))
  } finally {
    process.off('SIGINT', leave).off('SIGTERM', leave)
    await close()
  }
}
