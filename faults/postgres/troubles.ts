import { until } from '../../test/support/until.ts'
import type { CommitFate } from '../../test/support/tcp-proxy.ts'
import { Dice } from '../simulation/seeded.ts'
import { armConflicts, prepareConflicts } from './conflicts.ts'
import { ANY_MOMENT, AT_STATEMENT, withExecutioner } from './executioner.ts'
import type { Trouble, World } from './world.ts'

/** So many of its kind in a whole case, since what a case takes besides is mostly waiting; a short one has a share of them. */
const RESTARTS = 20
const TERMINATED = 180
const CUTS = 150
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

/** However busy the machine: only when nothing more comes, nothing will. */
async function reaches(wanted: number, what: string, count: () => Promise<number>): Promise<void> {
  for (let seen = await count(); seen < wanted; seen = await count())
    await until(what, async () => ((await count()) > seen ? true : undefined))
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
      world.struck('server killed')
      await pause(dice.pick([0, 0, 100, 500]))
      await place.server.start()
    }
  },
})

/** Any backend at any moment: also those of workers, which send their statements together. */
const terminatedAnywhere: Making = (_, most) => ({
  async cause(world) {
    const { dice, faults } = world
    await withExecutioner(world, async (executioner) => {
      while ((faults[ANY_MOMENT] ?? 0) < most(TERMINATED)) {
        const which = dice.pick([
          `state = 'active'`,
          `state like 'idle in%'`,
          `state <> 'idle'`,
          `pid % 3 = ${dice.below(3)}`,
        ])
        for (const ended of await executioner.end(`${which} and query not like 'listen %'`))
          if (ended.isGone) world.struck(ANY_MOMENT)
        await worksAgain(world, 1 + dice.below(5))
      }
    })
  },
})

/**
 * The very backend that a statement is on its way to, be it a begin or a commit: before it arrives, or once it has. The load
 * sends each by itself, the workers send theirs together.
 */
const terminatedAtStatements: Making = (dice, most) => ({
  probe: () => {},
  async cause(world) {
    const { proxy, faults } = world
    await withExecutioner(world, async (executioner) => {
      while ((faults[AT_STATEMENT] ?? 0) < most(TERMINATED)) {
        await executioner.atRequest(proxy, { nth: 1 + dice.below(40), isHeld: dice.chance(0.6) })
        await worksAgain(world, 1 + dice.below(3))
      }
    })
  },
})

const CUT: Readonly<Partial<Record<CommitFate, string>>> = {
  'cut before': 'cut before commit',
  'cut after': 'cut after commit',
  'cut while': 'cut while committing',
}

const cutCommits: Making = (_, most) => ({
  async cause(world) {
    const { proxy, dice } = world
    const wanted = most(CUTS)
    let cuts = 0
    proxy.onCut = (fate) => {
      cuts += 1
      world.struck(CUT[fate]!)
    }
    proxy.atCommit = () => {
      if (cuts >= wanted || !dice.chance(0.2)) return 'pass'
      return dice.pick(['cut before', 'cut after', 'cut while'] as const)
    }
    await reaches(wanted, 'another commit was cut', async () => cuts)
  },
})

const resets: Making = (_, most) => ({
  async cause(world) {
    const wanted = most(RESETS)
    const { dice, proxy } = world
    for (let times = 0; times < wanted; times++) {
      const link = await until('there is a connection', async () => proxy.links().at(dice.below(proxy.links().length)))
      link.reset()
      world.struck('reset')
      await worksAgain(world, 1 + dice.below(5))
    }
  },
})

/** Nothing arrives any more where somebody waits for an answer, and nobody is told. */
const blackHoles: Making = (_, most) => ({
  async cause(world) {
    const wanted = most(BLACK_HOLES)
    const { dice, proxy } = world
    for (let times = 0; times < wanted; times++) {
      const link = await until('somebody waits', async () => {
        const busy = proxy.links().filter(({ isBusy }) => isBusy)
        return busy.at(dice.below(busy.length))
      })
      link.blackHole()
      world.struck('black hole')
      await worksAgain(world)
    }
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
      world.struck('delay')
      await worksAgain(world, 5)
    }
  },
})

/** The server itself says that a transaction lost against another one. */
const conflicts: Making = (dice, most) => ({
  crossing: true,
  prepare: prepareConflicts,
  async cause(world) {
    const { place, database } = world
    const armed = await armConflicts(place, database, 15 + dice.below(60))
    await reaches(most(CONFLICTS), 'there was another conflict', () => armed.raised())
    for (const [state, times] of Object.entries(await armed.disarm())) world.struck(state, times)
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
