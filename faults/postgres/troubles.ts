import { until } from '../../test/support/until.ts'
import type { CommitFate } from '../../test/support/tcp-proxy.ts'
import { Dice } from '../simulation/seeded.ts'
import { armConflicts, prepareConflicts } from './conflicts.ts'
import type { Place } from './place.ts'
import type { Trouble, World } from './world.ts'

/** So many of its kind in a whole case, since what a case takes besides is mostly waiting; a short one has a share of them. */
const RESTARTS = 12
const TERMINATED = 120
const CUTS = 100
const RESETS = 75
const BLACK_HOLES = 3
const DELAYS = 20
const CONFLICTS = 150

type Making = (dice: Dice, most: (whole: number) => number) => Trouble

/** Acknowledged before the next thing goes wrong, so that it meets a store that had recovered from the last one. */
const COMMITS_BETWEEN = 20

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function worksAgain({ load }: World, commits = COMMITS_BETWEEN): Promise<void> {
  const before = load.done
  await until('work goes on', async () => (load.done >= before + commits ? true : undefined))
}

/** The postmaster is gone at any moment, by a kill or its own immediate shutdown, and comes back after a while. */
const restarts: Making = (_, most) => ({
  async cause(world) {
    const wanted = most(RESTARTS)
    const { dice, place } = world
    for (let times = 0; times < wanted; times++) {
      await worksAgain(world)
      await pause(dice.below(50))
      await place.server.kill(dice.pick(['SIGKILL', 'SIGKILL', 'SIGQUIT']))
      await pause(dice.pick([0, 0, 100, 500]))
      await place.server.start()
    }
    return { 'server killed': wanted }
  },
})

/** Those of some connections of this case, by a second connection. How many there were. */
async function terminate(place: Place, database: string, which: string): Promise<number> {
  const ended = await place.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = '${database}' and application_name not in ('watcher', '') and ${which}`,
    database,
  )
  return ended.length
}

/** Any backend at any moment: also those of workers, which send their statements together. */
const terminatedAnywhere: Making = (_, most) => ({
  async cause(world) {
    const { dice, place, database } = world
    let terminated = 0
    while (terminated < most(TERMINATED)) {
      const which = dice.pick([
        `state = 'active'`,
        `state like 'idle in%'`,
        `state <> 'idle'`,
        `pid % 3 = ${dice.below(3)}`,
      ])
      terminated += await terminate(place, database, `${which} and query not like 'listen %'`)
      await worksAgain(world, 1 + dice.below(5))
    }
    return { 'backend terminated': terminated }
  },
})

/** All backends of one store, at the nth point of its transactions: before and after each statement, begin and commit. */
const terminatedAtStatements: Making = (dice, most) => {
  let world: World | undefined
  let countdown = 0
  let terminated = 0
  const probe = async () => {
    if (world === undefined || --countdown !== 0) return
    const name = dice.pick(['load_0', 'load_1'])
    terminated += await terminate(world.place, world.database, `application_name = '${name}'`).catch(() => 0)
  }
  return {
    probe,
    async cause(lived) {
      world = lived
      while (terminated < most(TERMINATED)) {
        const before = terminated
        countdown = 1 + dice.below(60)
        await until('a backend was terminated', async () => (terminated > before ? true : undefined))
        await worksAgain(lived, 2)
      }
      world = undefined
      return { 'backend terminated': terminated }
    },
  }
}

const CUT: Readonly<Partial<Record<CommitFate, string>>> = {
  'cut before': 'cut before commit',
  'cut after': 'cut after commit',
  'cut while': 'cut while committing',
}

const cutCommits: Making = (_, most) => ({
  async cause({ proxy, dice }) {
    const wanted = most(CUTS)
    const cut: Record<string, number> = {}
    let cuts = 0
    proxy.atCommit = () => {
      if (cuts >= wanted || !dice.chance(0.2)) return 'pass'
      const fate = dice.pick(['cut before', 'cut after', 'cut while'] as const)
      cut[CUT[fate]!] = (cut[CUT[fate]!] ?? 0) + 1
      cuts += 1
      return fate
    }
    await until('commits were cut', async () => (cuts >= wanted ? true : undefined))
    return cut
  },
})

const resets: Making = (_, most) => ({
  async cause(world) {
    const wanted = most(RESETS)
    const { dice, proxy } = world
    for (let times = 0; times < wanted; times++) {
      const link = await until('there is a connection', async () => proxy.links().at(dice.below(proxy.links().length)))
      link.reset()
      await worksAgain(world, 1 + dice.below(5))
    }
    return { reset: wanted }
  },
})

/** Nothing arrives any more, and nobody is told. */
const blackHoles: Making = (_, most) => ({
  async cause(world) {
    const wanted = most(BLACK_HOLES)
    const { dice, proxy } = world
    for (let times = 0; times < wanted; times++) {
      const busy = await until('there is a connection', async () => proxy.links().at(dice.below(proxy.links().length)))
      busy.blackHole()
      await worksAgain(world)
    }
    return { 'black hole': wanted }
  },
})

const delays: Making = (_, most) => ({
  async cause(world) {
    const wanted = most(DELAYS)
    const { dice, proxy } = world
    for (let times = 0; times < wanted; times++) {
      proxy.delayMs = dice.pick([5, 20, 50, 150])
      await worksAgain(world, 5)
      proxy.delayMs = 0
      await worksAgain(world, 5)
    }
    return { delay: wanted }
  },
})

/** The server itself says that a transaction lost against another one. */
const conflicts: Making = (dice, most) => ({
  crossing: true,
  prepare: prepareConflicts,
  async cause({ place, database }) {
    const armed = await armConflicts(place, database, 15 + dice.below(60))
    await until('there were conflicts', async () => ((await armed.raised()) >= most(CONFLICTS) ? true : undefined))
    return armed.disarm()
  },
})

/** In turn, so that a campaign has as many of each as it should; what they do in detail is the dice's. */
const TROUBLES: readonly Making[] = [
  restarts,
  terminatedAtStatements,
  cutCommits,
  conflicts,
  restarts,
  terminatedAnywhere,
  cutCommits,
  resets,
  restarts,
  terminatedAtStatements,
  delays,
  terminatedAnywhere,
  blackHoles,
]

/** `share`: of what goes wrong in a whole case. */
export const troubleOf = (seed: number, share = 1): Trouble =>
  TROUBLES[seed % TROUBLES.length]!(new Dice(seed), (whole) => Math.ceil(whole * share))
