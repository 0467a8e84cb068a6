import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import { newMessageId, newRunId, newScheduleId } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { sleep } from '../../src/base/clock.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { addSchedule } from '../../src/schedule/edit.ts'
import { DEFAULT_OPTIONS } from '../../src/schedule/schedule.ts'
import type { Store } from '../../src/store/store.ts'
import type { SimProcess } from './sim-process.ts'
import type { World } from './world.ts'

export const LEAD = 'lead' as ThreadId
export const FIRINGS = 3

/** Does it until the answer came, in as many processes as it takes: the same request each time. */
async function untilAnswered<T>(world: World, name: string, work: (store: Store) => Promise<T>): Promise<T> {
  for (;;) {
    const process = world.newProcess(name)
    const answer = await tryOnce(world, process, work)
    world.kill(process)
    if (answer !== undefined) return answer.value
    await sleep(world.time, 50)
  }
}

async function tryOnce<T>(
  world: World,
  process: SimProcess,
  work: (store: Store) => Promise<T>,
): Promise<{ value: T } | undefined> {
  const died = sleep(world.time, 5_000).then(() => undefined)
  const done = world
    .open(process)
    .then((store) => work(store))
    .then(
      (value) => ({ value }),
      () => undefined,
    )
  return Promise.race([done, died])
}

/** Whoever asks for the work: twice sometimes, with the same key. */
export async function askForWork(world: World): Promise<void> {
  const { random, dice } = world
  const sending = {
    threadId: LEAD,
    agent: 'lead',
    text: 'Let five do it, then sum up.',
    key: 'the work',
    messageId: newMessageId(random),
    runId: newRunId(random),
  }
  const schedule = {
    id: newScheduleId(random),
    name: 'rounds',
    kind: 'job',
    rule: { kind: 'every', everyMs: 2_000 },
    target: { kind: 'agent', agent: 'clerk', text: 'round' },
    options: { ...DEFAULT_OPTIONS, maxFirings: FIRINGS },
    madeBy: 'somebody',
  } as const
  await untilAnswered(world, 'sender', (store) => store.apply(sendMessage, sending))
  if (dice.chance(0.5)) {
    const again = { ...sending, messageId: newMessageId(random), runId: newRunId(random) }
    await untilAnswered(world, 'second sender', (store) => store.apply(sendMessage, again))
  }
  await untilAnswered(world, 'planner', (store) => store.apply(addSchedule, schedule))
}

/** A person who looks at what waits, and settles doubts by what the ledger says. */
export async function decide(world: World): Promise<void> {
  await untilAnswered(world, 'person', async (store) => {
    for (const { id, digest } of await store.read(pendingApprovals, 100)) {
      const kind = decisionFor(id)
      await store.apply(decideApproval, id, { kind, by: 'a person', via: 'simulation', digest })
    }
    for (const { id } of await store.read(openDoubts, 100)) {
      const happened = world.ledger.timesOf(id) > 0
      const kind = happened ? 'happened' : decisionFor(id) === 'approve' ? 'run-again' : 'did-not-happen'
      await store.apply(resolveDoubt, id, { kind, by: 'a person', why: 'the ledger says so' })
    }
  })
}

/** The same each time it is asked for: a person who was cut off does not change his mind. */
function decisionFor(id: string): 'approve' | 'deny' {
  return Number.parseInt(id.slice(-2), 16) % 4 === 0 ? 'deny' : 'approve'
}

/** One of the runs under way, if there is one. */
export async function cancelSomething(world: World): Promise<void> {
  await untilAnswered(world, 'impatient', async (store) => {
    const runs = await store.read(listRuns, { states: ['queued', 'running', 'parked'], limit: 20 })
    const child = runs.find(({ parentRunId }) => parentRunId !== null)
    if (child !== undefined) await store.apply(cancelRun, child.id, { by: 'somebody', reason: 'enough' })
  })
}
