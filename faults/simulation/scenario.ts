import { describeError } from '../../src/base/errors.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { listRuns } from '../../src/runs/run.ts'
import { LIVE_SCHEDULES, listSchedules } from '../../src/schedule/schedule.ts'
import type { Store } from '../../src/store/store.ts'
import { countMessages } from '../../src/threads/message.ts'
import type { Outcome } from '../method.ts'
import { agentsOf } from './agents.ts'
import { verdictOn } from './check.ts'
import { RandomPlan, StoppingPlan } from './faults.ts'
import type { Fault, Plan } from './faults.ts'
import { CLERK, People } from './people.ts'
import { Dice } from './seeded.ts'
import { SOON_MS, World } from './world.ts'

/** How long faults go on, and how long the world has to come to rest after the last of them; by the simulated clock. */
const TROUBLE_MS = 6_000
const REST_MS = 2 * 60_000
/** How long those who asked for something are waited for while faults go on. */
const LATE_MS = 30_000
/** Whoever is to wake what lies about does so within a heartbeat. */
const QUIET_MS = 1_200
/** How often somebody looks at what waits for him. */
const LOOK_MS = 300
const FIRINGS = 3
const CALLS = 6
const TASKS = 8

export interface Result {
  readonly faults: readonly Fault[]
  readonly runs: number
  readonly effects: number
  /** Moments at which something could have gone wrong. */
  readonly moments: number
  /** From the last fault until everything was at its end. */
  readonly recoveryMs: number
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

export function outcomeOf({ faults, runs, effects, recoveryMs, problems }: Result): Omit<Outcome, 'seed'> {
  const counts: Record<string, number> = {}
  for (const { kind } of faults) counts[kind] = (counts[kind] ?? 0) + 1
  return { runs, effects, problems, faults: counts, ...(faults.length === 0 ? {} : { recoveryMs }) }
}

/** A world as this seed has it; with `plan` instead of its own faults. */
export async function simulate(seed: number, template: string, plan?: Plan): Promise<Result> {
  const dice = new Dice(seed)
  const probes = dice.chance(0.5)
  const { troubleMs, firings, work, plan: own, jitters, soonMs = SOON_MS } = KINDS[seed % KINDS.length]!
  // From a world in which almost nothing happens to one in which little works.
  const probability = dice.pick([0.0003, 0.001, 0.002, 0.004])
  const jitterMs = dice.pick(jitters)
  const world = new World({
    seed: Math.floor(dice.fraction() * 2 ** 32),
    template,
    plan: plan ?? own(probability),
    jitterMs,
    soonMs,
    workers: 3,
    agentsOf: (around, process, store) =>
      agentsOf(around, process, store, { probes, rests: ({ dice: its }) => its.chance(0.02) }),
  })
  return inWorld(world, async () => {
    const people = new People(world)
    await trouble(world, people, work, troubleMs)
    return rest(world, people, firings)
  })
}

/** What happens in a world, which is over then. If it breaks, or cannot be closed, that is told with all that was wrong before. */
export async function inWorld(world: World, happens: () => Promise<Result>): Promise<Result> {
  const broke: unknown[] = []
  const note = (error: unknown) => void broke.push(error)
  const result = await happens().catch(note)
  await world.close().catch(note)
  if (result !== undefined && broke.length === 0) return result
  const words = [...(result?.problems ?? []), ...broke.map(describeError)]
  throw new Error(words.join('; '), { cause: broke[0] })
}

/** What there is to do in a world, and what goes wrong with it. */
interface Kind {
  readonly troubleMs: number
  /** Of the schedule. */
  readonly firings: number
  readonly jitters: readonly number[]
  readonly soonMs?: readonly number[]
  readonly work: (people: People, world: World) => Promise<void>
  readonly plan: (probability: number) => Plan
}

/**
 * One with something of everything; and small ones in which much of one thing happens, where workers are stopped again and
 * again and come back when their work has just become another's: what the first has once in thousands of worlds.
 */
const KINDS: readonly Kind[] = [
  {
    troubleMs: TROUBLE_MS,
    firings: FIRINGS,
    jitters: [0, 2, 8, 25],
    work: askForWork,
    plan: (probability) => new RandomPlan(probability),
  },
  {
    troubleMs: TROUBLE_MS / 2,
    firings: 0,
    jitters: [8, 25],
    work: (people) => callMany(people, 3 * CALLS),
    plan: (probability) => new StoppingPlan(10 * probability),
  },
  {
    troubleMs: TROUBLE_MS / 2,
    firings: 3 * FIRINGS,
    jitters: [2, 8, 25],
    // Up to when whoever took it over is at it.
    soonMs: [3, 10, 40, 80, 120, 200],
    work: goOnRounds,
    plan: (probability) => new StoppingPlan(10 * probability),
  },
]

/** Work, and everything that goes wrong with it. */
async function trouble(world: World, people: People, work: Kind['work'], ms: number): Promise<void> {
  const { dice, time } = world
  world.isTroubled = true
  world.start()
  const asked = work(people, world)
  for (let cancels = dice.below(3); cancels > 0; cancels--) time.after(dice.below(ms), () => void people.cancel())
  for (let passed = 0; passed < ms; passed += LOOK_MS) {
    people.decide()
    await world.pass(LOOK_MS)
  }
  const state = { done: false }
  void asked.finally(() => (state.done = true))
  // Who has no answer then is waited for without trouble.
  for (let passed = 0; !state.done && passed < LATE_MS; passed += LOOK_MS) await world.pass(LOOK_MS)
}

/** Twice sometimes, with the same key; and a word in between. */
async function askForWork(people: People, { dice, time }: World): Promise<void> {
  const twice = dice.chance(0.5)
  const words = dice.below(3)
  await people.send('Let 5 do it, then sum up.', 'the work')
  if (twice) await people.send('Let 5 do it, then sum up.', 'the work')
  await people.plan(FIRINGS)
  for (let nth = 0; nth < words; nth++) {
    const { promise, resolve } = Promise.withResolvers<void>()
    time.after(dice.below(2_000), resolve)
    await promise
    await people.send(`by the way ${nth}`, `word ${nth}`)
  }
  await callMany(people, CALLS)
}

async function callMany(people: People, calls: number): Promise<void> {
  await Promise.all(Array.from({ length: calls }, (_, nth) => people.call(`{"order":${nth}}`, `order ${nth}`)))
}

/** So often that the next one is due while the last is at work, and waits for its end; and others beside them. */
async function goOnRounds(people: People): Promise<void> {
  await people.plan(3 * FIRINGS, { everyMs: 120, overlap: 'queue', text: 'look first, then round' })
  const alone = (nth: number) => [`look first, then task ${nth}`, `task ${nth}`, `${CLERK} ${nth}` as ThreadId] as const
  await Promise.all(Array.from({ length: TASKS }, (_, nth) => people.send(...alone(nth), 'clerk')))
}

/** No more faults: everything comes to its end, and is looked at. */
export async function rest(world: World, people: People, firings: number): Promise<Result> {
  const { time, ledger, faults, moments, warnings } = world
  world.isTroubled = false
  const since = faults.at(-1)?.atMs ?? time.monotonicMs()
  const begun = time.monotonicMs()
  // What waits for an hour of the wall clock waits so much longer.
  const setBack =
    faults.reduce((sum, { kind, amount }) => sum + (kind === 'clock step' ? Math.max(0, -amount) : 0), 0) * 60_000
  for (const process of world.workers) process.goOn()
  const store = await world.openUntouched()
  let quietSince = time.monotonicMs()
  for (;;) {
    people.decide()
    await world.pass(LOOK_MS)
    if (people.unanswered.length > 0 || (await isBusy(store))) quietSince = time.monotonicMs()
    const at = time.monotonicMs()
    if (at - begun > REST_MS + setBack) break
    if (at - quietSince <= QUIET_MS) continue
    const nextAt = await nextFiring(store)
    if (nextAt === undefined) break
    // Nobody waits for a schedule until a clock that was set back is there again.
    if (faults.some(({ kind }) => kind === 'clock step')) time.step(Math.max(0, nextAt - time.now()))
  }
  const { acknowledged, unanswered } = people
  const problems = await verdictOn(world, store, { acknowledged, firings, unanswered })
  const runs = await store.read(listRuns, { limit: 100 })
  await store.close()
  const recoveryMs = Math.max(0, quietSince - since)
  return { faults, runs: runs.length, effects: ledger.effects.length, moments, recoveryMs, problems, warnings }
}

async function nextFiring(store: Store): Promise<number | undefined> {
  const [next] = await store.read(listSchedules, { states: LIVE_SCHEDULES, limit: 1 })
  return next?.nextFireAt ?? undefined
}

export async function isBusy(store: Store): Promise<boolean> {
  const runs = await store.read(listRuns, { states: ['queued', 'running', 'parked'], limit: 1 })
  const counts = await store.read(countMessages)
  return runs.length > 0 || counts.some(({ state }) => state === 'pending' || state === 'leased')
}
