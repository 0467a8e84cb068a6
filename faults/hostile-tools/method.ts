import { availableParallelism } from 'node:os'

import type { Campaign, Method } from '../method.ts'
import { played } from '../played.ts'
import { inWords, leastThatFails } from '../shorter.ts'
import { play } from './case.ts'
import { STRENGTHS, planOf, shorterThan } from './plan.ts'
import type { Kept, Strength } from './plan.ts'
import { Yard } from './yard.ts'

/** Most of a case is waiting, and killing has to be quick while others are killed too. */
const CASES_A_CORE = 2

/** Commands that do not want to end, cancelled at any moment. */
export const hostileTools: Method = {
  name: 'hostile-tools',
  title:
    'Commands that ignore signals, fork again when one is killed, leave their session, drop their environment, hold the pipe and print a gigabyte are cancelled, time out, or lose their daemon or supervisor, in each containment',
  cases: 'commands',
  run: (campaign) => {
    const { first, most, isOver, tell } = campaign
    let next = first
    const nextSeed = () => (next < first + most && !isOver() ? next++ : undefined)
    return sideBySide(nextSeed, tell, Math.min(availableParallelism() * CASES_A_CORE, most))
  },
  async shrink(seed) {
    const yards = new Yards()
    try {
      const whole = planOf(seed, await yards.possible())
      const again = async (plan: typeof whole) =>
        (await yards.inside(plan.strength, true, (yard) => play(seed, plan, yard))).problems
      return inWords(await leastThatFails(whole, shorterThan, again), (plan) => JSON.stringify(plan))
    } finally {
      await yards.close()
    }
  },
}

export async function sideBySide(
  nextSeed: () => number | undefined,
  tell: Campaign['tell'],
  lanes: number,
): Promise<void> {
  const yards = new Yards()
  const lane = async (kept: readonly Kept[]) => {
    for (let seed = nextSeed(); seed !== undefined; seed = nextSeed()) {
      const plan = planOf(seed, kept)
      const turn = seed
      const isAlone = plan.ending === 'daemon killed'
      // Perhaps not even its yard can be opened.
      tell(await played(turn, () => yards.inside(plan.strength, isAlone, (yard) => play(turn, plan, yard))))
    }
  }
  const leave = () => void yards.close().then(() => process.exit(130))
  process.once('SIGINT', leave).once('SIGTERM', leave)
  try {
    const kept = await yards.possible()
    await Promise.all(Array.from({ length: lanes }, () => lane(kept)))
  } finally {
    process.off('SIGINT', leave).off('SIGTERM', leave)
    await yards.close()
  }
}

/** A yard for each containment, and another one for those who kill its daemon, one after the other. */
class Yards {
  readonly #open = new Map<string, Promise<Yard>>()
  readonly #turns = new Map<string, Promise<unknown>>()

  /** The containments that can be had here, each once: to take one away from a daemon needs a machine that lets us. */
  async possible(): Promise<readonly Kept[]> {
    const tried = await Promise.allSettled(STRENGTHS.map((strength) => this.#yard(strength, strength)))
    const yards = tried.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const [best] = tried
    if (best?.status === 'rejected') throw best.reason
    return yards
      .filter(({ containment }, index) => yards.findIndex((each) => each.containment === containment) === index)
      .map(({ strength, containment }) => [strength, containment])
  }

  async inside<T>(strength: Strength, alone: boolean, work: (yard: Yard) => Promise<T>): Promise<T> {
    if (!alone) return work(await this.#yard(strength, strength))
    const key = `${strength}, alone`
    const turn = (this.#turns.get(key) ?? Promise.resolve()).then(async () => work(await this.#yard(key, strength)))
    this.#turns.set(
      key,
      turn.catch(() => {}),
    )
    return turn
  }

  #yard(key: string, strength: Strength): Promise<Yard> {
    const known = this.#open.get(key) ?? Yard.open(strength)
    this.#open.set(key, known)
    return known
  }

  async close(): Promise<void> {
    for (const opening of this.#open.values()) await (await opening.catch(() => undefined))?.close()
  }
}
