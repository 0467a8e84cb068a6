import type { RunId, ScheduleId, ThreadId } from '../../src/base/ids.ts'
import { AGENT_FOLLOWUPS, addFollowup, cancelFollowupOf } from '../../src/schedule/followup.ts'
import { addJob } from '../../src/schedule/job.ts'
import type { NewJob } from '../../src/schedule/job.ts'
import { openThread } from '../../src/threads/thread.ts'
import { scenario } from './scenario.ts'
import type { Scenario, World } from './scenario.ts'

const THREAD = 'clerks-own' as ThreadId
const ID = 'sch_own' as ScheduleId
const owner = { threadId: THREAD, runId: 'run_own' as RunId, agent: 'clerk' }
const madeBy = 'agent clerk'

const withThread = ({ store }: World) => store.apply(openThread, THREAD, 'clerk', null)

const aJob = (target: NewJob['target']): NewJob => ({
  id: ID,
  name: 'rounds',
  rule: { kind: 'every', everyMs: 600_000 },
  target,
  options: {},
  owner,
  madeBy,
  limits: { jobs: 20, depth: 4 },
})

/** What agents ask of schedules with their tools. */
export const AGENT_SCHEDULE_SCENARIOS: readonly Scenario[] = [
  scenario({ addJob }, 'a message to the thread that asks', async (world) => {
    await withThread(world)
    return [aJob({ kind: 'self', text: 'look around' })]
  }),
  scenario({ addJob }, 'another agent', async (world) => {
    await withThread(world)
    return [aJob({ kind: 'agent', agent: 'helper', text: 'look around' })]
  }),
  scenario({ cancelFollowupOf }, 'one that has not come', async (world) => {
    await withThread(world)
    const when = { delayMs: 60_000 }
    const followup = { id: ID, threadId: THREAD, when, prompt: 'look', owner, madeBy, limits: AGENT_FOLLOWUPS }
    await world.store.apply(addFollowup, followup)
    return [THREAD, ID, { by: madeBy, reason: 'cancelled by agent clerk (act_1)' }]
  }),
]
