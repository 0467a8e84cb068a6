import { listRuns } from '../../src/runs/run.ts'
import type { Store } from '../../src/store/store.ts'
import { verdictOn } from './check.ts'
import { askForWork, cancelSomething, decide } from './people.ts'
import type { StandIns } from './stand-ins.ts'
import { World } from './world.ts'
import type { Fault } from './world.ts'

/** How long faults go on, and how long the world has to come to rest after the last of them; by the simulated clock. */
const TROUBLE_MS = 9_000
const REST_MS = 15 * 60_000
const STEP_MS = 50

export interface Result {
  readonly seed: number
  readonly faults: readonly Fault[]
  readonly runs: number
  readonly effects: number
  /** From the last fault until everything was at its end. */
  readonly recoveryMs: number
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

export async function simulate(seed: number, standIns: StandIns, template: string): Promise<Result> {
  await standIns.prepare()
  const world = new World(seed, standIns, template)
  try {
    const starting = world.start()
    await pump(world, starting)
    await trouble(world)
    return await rest(world, seed)
  } finally {
    await world.close()
  }
}

/** Work, and everything that goes wrong with it. */
async function trouble(world: World): Promise<void> {
  const { dice, injector, time } = world
  const asking = askForWork(world)
  asking.catch(() => {})
  let deciding: Promise<void> | undefined
  const cancels = dice.chance(0.3) ? dice.below(TROUBLE_MS / STEP_MS) : -1
  for (let step = 0; time.monotonicMs() < TROUBLE_MS || step < TROUBLE_MS / STEP_MS; step++) {
    await pump(world, world.restartTheDead())
    const [someone] = world.workers
    if (someone !== undefined) injector.happens('clock step', 0.003, someone)
    if (step === cancels) void cancelSomething(world).catch(() => {})
    if (step % 6 === 0) deciding ??= decide(world).finally(() => (deciding = undefined))
    time.advance(STEP_MS)
    await turns()
  }
  await pump(world, asking)
}

/** No more faults: everything comes to its end, and is looked at. */
async function rest(world: World, seed: number): Promise<Result> {
  const { injector, time, ledger } = world
  injector.on = false
  const since = time.monotonicMs()
  for (const process of world.workers) process.goOn()
  const watcher = world.newProcess('watcher')
  const store = await world.open(watcher)
  let deciding: Promise<void> | undefined
  let open = await openRuns(store)
  for (let step = 0; open > 0 || step < 3_000 / STEP_MS; step++) {
    if (time.monotonicMs() - since > REST_MS) break
    await pump(world, world.restartTheDead())
    if (step % 6 === 0) deciding ??= decide(world).finally(() => (deciding = undefined))
    time.advance(STEP_MS)
    await turns()
    open = await openRuns(store)
  }
  const recoveryMs = time.monotonicMs() - since
  const problems = await verdictOn(world, store)
  const runs = await store.read(listRuns, { limit: 100 })
  return {
    seed,
    faults: world.faults,
    runs: runs.length,
    effects: ledger.effects.length,
    recoveryMs,
    problems,
    warnings: world.warnings,
  }
}

const openRuns = async (store: Store) =>
  (await store.read(listRuns, { states: ['queued', 'running', 'parked'], limit: 100 })).length

/** Turns of the event loop without anything to wait for, after which nothing happens by itself any more. */
const QUIET_TURNS = 8

/** Lets everything that can happen at this instant happen; what files take in real time is waited for. */
async function turns(): Promise<void> {
  for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
    await new Promise((resolve) => setImmediate(resolve))
    if (process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'))) quiet = 0
  }
}

/** Moves the clock until this is done. */
async function pump(world: World, work: Promise<unknown>): Promise<void> {
  const state = { done: false }
  void work.finally(() => (state.done = true))
  for (await turns(); !state.done; await turns()) world.time.advance(STEP_MS)
}
