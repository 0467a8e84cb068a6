import { newAttemptId, newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { becomeKeeper, forgetEvents, looseEvents } from '../../src/events/retention.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { BEGINNING, forgetRuns, oldRuns } from '../../src/runs/retention.ts'
import type { Cut } from '../../src/runs/retention.ts'
import { forgetThreads } from '../../src/threads/retention.ts'
import { openThread } from '../../src/threads/thread.ts'
import { audited, forgetActs } from '../../src/tokens/act.ts'
import { submitRun } from '../../src/runs/submit.ts'
import { forgetWorkers, stopWorker } from '../../src/runs/worker.ts'
import { addWorker, running, submission } from '../support/world.ts'
import { started } from './agent-scenarios.ts'
import { scenario, succeeded } from './scenario.ts'
import type { Scenario, World } from './scenario.ts'

/** What is over is forgotten: all of a run or nothing of it, whenever somebody dies. */

const CUT: Cut = { runsMs: LIMITS.runsKeptMs }

/** One that ended long ago, one that did and has a write under way or in doubt, one that waits. */
async function aHistory(world: World) {
  const { store, clock } = world
  await started(world)
  for (let i = 0; i < 2; i++) await store.apply(finishRun, (await running(store)).ref, succeeded)
  await store.apply(submitRun, submission({ id: newRunId(random), threadId: newThreadId(random) }))
  clock.step(CUT.runsMs + 1)
  return store.read(oldRuns, CUT, BEGINNING, 10)
}

export const RETENTION_SCENARIOS: readonly Scenario[] = [
  scenario({ forgetRuns }, 'two that ended long ago, among others', async (world) => {
    const seen = await aHistory(world)
    return [seen.filter(({ mayGo }) => mayGo), CUT]
  }),
  scenario({ forgetRuns }, 'one that something was recorded of since it was looked at', async (world) => {
    const seen = await aHistory(world)
    return [seen.map((each) => ({ ...each, lastEvent: each.lastEvent - 1 })), CUT]
  }),
  scenario({ forgetEvents }, 'those of threads and of messages', async (world) => {
    await aHistory(world)
    return [(await world.store.read(looseEvents, CUT.runsMs, 100))!, CUT.runsMs]
  }),
  scenario({ forgetThreads }, 'one with nothing in it, and one with a run', async (world) => {
    const [empty] = [newThreadId(random)]
    await world.store.apply(openThread, empty, 'command', null)
    const { run } = await running(world.store)
    world.clock.step(CUT.runsMs + 1)
    return [[empty, run.threadId], CUT.runsMs]
  }),
  scenario({ forgetActs }, 'one of long ago', async ({ store, clock }) => {
    const act = { id: 'act_1', call: 'threads.open', by: 'ann', via: 'test' }
    await store.apply(audited, act, openThread as never, [newThreadId(random), 'command', null])
    clock.step(LIMITS.actsKeptMs + 1)
    return [10, LIMITS.actsKeptMs]
  }),
  scenario(
    { forgetWorkers },
    'one that stopped long ago, and one whose run is still there',
    async ({ store, clock }) => {
      const gone = await addWorker(store)
      const { attempt } = await running(store)
      for (const worker of [gone, attempt.workerId]) await store.apply(stopWorker, worker)
      clock.step(CUT.runsMs + 1)
      return [10, CUT.runsMs]
    },
  ),
  scenario({ becomeKeeper }, 'when nobody is it', () => Promise.resolve([newAttemptId(random), LIMITS.keeperMs])),
]
