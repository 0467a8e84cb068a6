import { followupTools } from '../../src/tools/schedule-followup.ts'
import { manageJobsTool } from '../../src/tools/schedule-jobs.ts'
import type { StagedReply } from '../support/stage.ts'
import { Stage, results } from '../support/stage.ts'
import type { TestEngine } from '../support/engines.ts'
import { ScheduleWorld } from './support.ts'

export interface AgentWorld {
  readonly world: ScheduleWorld
  readonly stage: Stage
}

/** An agent that has the tools for schedules, in a world whose clock a test moves. */
export async function anAgent(engine: TestEngine): Promise<AgentWorld> {
  const world = await ScheduleWorld.open(engine)
  return { world, stage: staged(world) }
}

export function staged({ store, clock, thread }: Pick<ScheduleWorld, 'store' | 'clock' | 'thread'>): Stage {
  const stage = new Stage(store)
  stage.threadId = thread
  const options = { store, clock, agent: 'clerk' }
  const place = { cwd: '/desk', env: { PATH: '/bin', SECRET: 'x' }, codeCache: '/nowhere' }
  stage.extra = [...followupTools(options), manageJobsTool({ ...options, place, agents: ['helper'], commands: true })]
  return stage
}

type Calls = NonNullable<StagedReply['calls']>

/** A run in which the model makes these calls; what each of them came to. */
export async function inARun(stage: Stage, calls: Calls, key = `${stage.asked.length}`): Promise<unknown[]> {
  // Where the script of this thread stands: a turn with the calls, and a last word.
  stage.replies = [...stage.replies, { calls }, { text: 'done' }]
  await stage.send('go', key)
  await stage.finished(await stage.claim())
  return results(stage.asked.at(-1)!).slice(-calls.length).map(asJson)
}

export function asJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
