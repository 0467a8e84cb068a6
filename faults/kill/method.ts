import { availableParallelism } from 'node:os'

import { builtProgram } from '../../test/support/built-program.ts'
import useMemoryDisk from '../../test/support/memory-disk.ts'
import { until } from '../../test/support/until.ts'
import type { Campaign, Method, Outcome } from '../method.ts'
import { Dice } from '../simulation/seeded.ts'
import { killCommand } from './command-line.ts'
import { killDaemon } from './daemon.ts'
import { killHook } from './hook.ts'
import { Scene } from './scene.ts'
import { killSupervisor } from './supervisor.ts'
import { Yard } from './yard.ts'

/** A home with more than that has so many rows that looking at all of them takes the time of killing. */
const CASES_A_YARD = 60

/** The built program, its processes killed with SIGKILL. */
export const kill: Method = {
  name: 'kill',
  title:
    'The built program with real processes: daemon, supervisor, command line and hook, killed with SIGKILL at named points and at any moment',
  cases: 'scenes',
  async run(campaign) {
    const leave = useMemoryDisk()
    try {
      const program = await builtProgram()
      const seeds = seedsOf(campaign)
      // One more than there are cores: each waits for a while until it kills.
      const jobs = Math.min(availableParallelism() + 1, campaign.most)
      await Promise.all(Array.from({ length: jobs }, () => oneJob(program, seeds, campaign.tell)))
    } finally {
      leave?.()
    }
  },
}

/** One after the other, whoever takes them. */
function* seedsOf({ first, most, isOver }: Campaign): Generator<number> {
  for (let seed = first; seed < first + most && !isOver(); seed++) yield seed
}

async function oneJob(program: string, seeds: Iterator<number>, tell: Campaign['tell']): Promise<void> {
  for (let seed = seeds.next(); seed.done !== true;) {
    const yard = new Yard(program)
    for (let [played, isLast] = [1, false]; !isLast && seed.done !== true; played++) {
      const outcome = await play(yard, seed.value)
      seed = seeds.next()
      // What is wrong with this one is not to be told of the next ones too.
      isLast = played === CASES_A_YARD || seed.done === true || outcome.problems.length > 0
      tell(isLast ? { ...outcome, problems: [...outcome.problems, ...(await endOf(yard))] } : outcome)
    }
  }
}

type Victim = (scene: Scene) => Promise<void>

function victim(seed: number): Victim {
  const fraction = new Dice(~seed).fraction()
  if (fraction < 0.4) return killDaemon
  if (fraction < 0.55) return killSupervisor
  return fraction < 0.8 ? killCommand : killHook
}

async function play(yard: Yard, seed: number): Promise<Outcome> {
  const scene = new Scene(yard, seed)
  await victim(seed)(scene).catch((error: unknown) =>
    scene.complain(error instanceof Error ? error.message : String(error)),
  )
  return { seed, ...scene.outcome() }
}

/** Nobody is left when all have come to their end but the daemon. */
async function endOf(yard: Yard): Promise<string[]> {
  const gone = async () => (yard.supervisors() === 0 ? true : undefined)
  const left = await until('the last supervisor is gone', gone, 10_000).then(
    () => [],
    () => [`${yard.supervisors()} supervisors are left`],
  )
  return yard.close().then(
    () => left,
    (error: unknown) => [...left, `its end: ${String(error)}`],
  )
}
