import { agentsOf } from '../simulation/agents.ts'
import { LEASE_MS, POSSIBLE, asItIs } from '../simulation/faults.ts'
import type { FaultKind, Moment, Place, Plan, Planned } from '../simulation/faults.ts'
import { People } from '../simulation/people.ts'
import { inWorld, isBusy, rest } from '../simulation/scenario.ts'
import type { Result } from '../simulation/scenario.ts'
import { World } from '../simulation/world.ts'
import { SCENARIOS } from './scenarios.ts'
import type { Scenario } from './scenarios.ts'

/** The eight, and how much of each. A commit is reported as failed in two ways: what became of it can be looked up, or not even that. */
export const EIGHT: Readonly<Partial<Record<FaultKind, readonly number[]>>> = {
  crash: [0],
  busy: [0],
  'disk error': [0],
  'disk full': [0],
  'committed but reported as failed': [0, 1],
  'serialization failure': [0],
  // It comes back when its work was just taken over, and when that is long done.
  'stopped beyond its lease': [LEASE_MS * 1.5, LEASE_MS * 2 + 1],
  'duplicate delivery': [0],
}

export interface Case {
  readonly scenario: Scenario
  /** At which of its moments. */
  readonly nth: number
  readonly moment: Moment
  readonly planned: Planned
}

/** How long a scenario may take, by the simulated clock. */
const MOST_MS = 20_000
const LOOK_MS = 100

/** What has gone wrong already, and one thing more; and it remembers the moments that there were. */
class OneMore implements Plan {
  readonly moments: Pick<Place, 'moment' | 'process'>[] = []
  readonly #base: Scenario['base']
  readonly #case: Pick<Case, 'nth' | 'planned'> | undefined
  #isBased = false

  constructor(base: Scenario['base'], one?: Pick<Case, 'nth' | 'planned'>) {
    this.#base = base
    this.#case = one
  }

  at({ process, moment, overall }: Place): Planned | undefined {
    this.moments.push({ moment, process })
    if (overall === this.#case?.nth) return this.#case.planned
    if (this.#isBased || moment !== this.#base?.moment || !process.startsWith('worker')) return undefined
    this.#isBased = true
    return { kind: this.#base.kind, amount: LEASE_MS * 1.5 }
  }
}

async function play(scenario: Scenario, template: string, plan: Plan): Promise<Result> {
  let rests = scenario.rests ?? 0
  const options = { probes: scenario.probes === true, rests: () => rests-- > 0 }
  const world = new World({
    seed: 1,
    template,
    plan,
    jitterMs: 1,
    workers: 2,
    agentsOf: (around, process, store) => agentsOf(around, process, store, options),
  })
  return inWorld(world, async () => {
    const people = new People(world, scenario.says)
    world.isTroubled = true
    world.start()
    await untilIdle(world, people, scenario)
    return rest(world, people, scenario.firings ?? 0)
  })
}

async function untilIdle(world: World, people: People, scenario: Scenario): Promise<void> {
  const state = { done: false }
  void scenario.play(people, world).finally(() => (state.done = true))
  const store = await world.openUntouched()
  // Until the last firing there is nothing to do in between.
  const least = (scenario.firings ?? 0) * 1_300
  for (;;) {
    if (scenario.says !== undefined) people.decide()
    await world.pass(LOOK_MS)
    const at = world.time.monotonicMs()
    if ((state.done && at > least && !(await isBusy(store))) || at > MOST_MS) break
  }
  await store.close()
}

/** Every moment of every scenario with each fault that there is at such a moment. */
export async function makeTable(template: string, scenarios = SCENARIOS): Promise<readonly Case[]> {
  const table: Case[] = []
  for (const scenario of scenarios) {
    const plan = new OneMore(scenario.base)
    const { problems } = await play(scenario, template, plan)
    if (problems.length > 0) throw new Error(`${scenario.name}: ${problems.join('; ')}`)
    for (const [index, { moment, process }] of plan.moments.entries())
      for (const planned of faultsAt(moment, index))
        table.push({ scenario, nth: index + 1, moment, planned: asItIs(planned, process) })
  }
  return table
}

function faultsAt(moment: Moment, index: number): Planned[] {
  return [...new Set(POSSIBLE[moment])].flatMap((kind) =>
    (EIGHT[kind] ?? []).map((amount) => ({ kind, amount: kind === 'duplicate delivery' ? index : amount })),
  )
}

export const playCase = ({ scenario, nth, planned }: Case, template: string): Promise<Result> =>
  play(scenario, template, new OneMore(scenario.base, { nth, planned }))

export const inWords = ({ scenario, nth, moment, planned }: Case): string =>
  `${scenario.name}, ${moment} (moment ${nth}): ${planned.kind}`
