import {
  newAttemptId,
  newMessageId,
  newRunId,
  newThreadId,
  newWorkerId,
  systemRandomness as random,
} from '../../src/base/ids.ts'
import type { OccurrenceId, RunId, ScheduleId, ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { refOfCall } from '../../src/runs/call.ts'
import type { CallPlace } from '../../src/runs/call.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { finishCall } from '../../src/runs/finish-call.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { Outcome } from '../../src/runs/finish.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import { addSchedule, editSchedule, pauseSchedule, removeSchedule, resumeSchedule } from '../../src/schedule/edit.ts'
import type { NewSchedule } from '../../src/schedule/edit.ts'
import { againBroken, fireAgain, fireBroken, fireSchedule, runNow } from '../../src/schedule/fire.ts'
import { addFollowup } from '../../src/schedule/followup.ts'
import type { NewFollowup } from '../../src/schedule/followup.ts'
import { findOccurrence } from '../../src/schedule/occurrence.ts'
import { forgetOccurrences } from '../../src/schedule/retention.ts'
import { settleLeft } from '../../src/schedule/run-ended.ts'
import { DEFAULT_OPTIONS, findSchedule } from '../../src/schedule/schedule.ts'
import type { ScheduleOptions, Target } from '../../src/schedule/schedule.ts'
import { consumeMessages } from '../../src/threads/consume.ts'
import { pendingMessages } from '../../src/threads/message.ts'
import { removeThread, reopenThread, stopThread } from '../../src/threads/remove.ts'
import { openThread } from '../../src/threads/thread.ts'
import { LEASE_MS, someIdentity } from '../support/world.ts'
import { byTester, scenario } from './scenario.ts'
import type { Scenario, World } from './scenario.ts'

const TARGET = 'clerks-thread' as ThreadId
const OWNER = 'owner' as ThreadId
const ID = 'sch_1' as ScheduleId
const MINUTE = 60_000
const START = Date.UTC(2026, 0, 1)
const FIRST = START + MINUTE

const toThread: Target = { kind: 'message', threadId: TARGET, generation: 1, text: 'look again' }
const toCommand: Target = { kind: 'command', argv: ['true'], cwd: '/' }
const toFunction: Target = { kind: 'call', function: 'adder', input: { n: 1 } }
const done: Outcome = { state: 'succeeded' }
const away: Outcome = { state: 'failed', code: 'model', error: 'away' }
const someIds = () => ({ threadId: newThreadId(random), runId: newRunId(random), messageId: newMessageId(random) })

type Given = Partial<Omit<NewSchedule, 'options'>> & { readonly options?: Partial<ScheduleOptions> }

const aSchedule = (given: Given = {}): NewSchedule => ({
  id: ID,
  name: 'job',
  kind: 'job',
  rule: { kind: 'every', everyMs: MINUTE, anchor: FIRST },
  target: toThread,
  owner: { threadId: OWNER },
  madeBy: 'ada',
  ...given,
  options: { ...DEFAULT_OPTIONS, ...given.options },
})

/** A daemon with an agent, that agent's thread, and one that asks for things. */
async function withDaemon({ store }: World): Promise<void> {
  const id = newWorkerId(random)
  const agents = ['clerk', 'adder']
  await store.apply(registerWorker, { id, kind: 'daemon', home: '/daemon', identity: someIdentity(), agents })
  await store.apply(openThread, OWNER, 'clerk', null)
  await store.apply(openThread, TARGET, 'clerk', null)
}

async function withSchedule(world: World, given: Given = {}): Promise<ScheduleId> {
  await withDaemon(world)
  await world.store.apply(addSchedule, aSchedule(given))
  return ID
}

async function dueAt({ store }: World): Promise<number> {
  return (await store.read(findSchedule, ID))?.nextAt ?? Number.NaN
}

/** Lets its next instant come and fires it. */
async function fired(world: World, given: Given = {}): Promise<OccurrenceId> {
  await withSchedule(world, given)
  return fireNext(world)
}

async function fireNext(world: World): Promise<OccurrenceId> {
  world.clock.step(MINUTE)
  const at = await dueAt(world)
  await world.store.apply(fireSchedule, ID, at, someIds())
  return `${ID}.${at}` as OccurrenceId
}

/** Somebody takes the run, and what is in its inbox. */
async function taken(world: World, given: Given = {}) {
  const occurrence = await fired(world, given)
  const workerId = newWorkerId(random)
  await world.store.apply(registerWorker, { id: workerId, kind: 'command', home: '/x', identity: someIdentity() })
  const attempt = { id: newAttemptId(random), mark: random.hex(16) }
  const claim = await world.store.apply(claimRun, {
    workerId,
    leaseMs: LEASE_MS,
    limits: {},
    attempt,
    agents: ['clerk'],
  })
  if (claim === undefined) throw new Error('not claimed')
  const pending = await world.store.read(pendingMessages, claim.run.threadId, 10)
  const ids = pending.map(({ id }) => id)
  await world.store.apply(consumeMessages, ids, claim.run.id, claim.run.threadId)
  return { occurrence, run: claim.run.id, ref: { id: attempt.id, runId: claim.run.id, fence: claim.run.fence } }
}

async function firing(world: World, given: Given = {}, minutes = 1): Promise<Parameters<typeof fireSchedule>> {
  await withSchedule(world, given)
  world.clock.step(minutes * MINUTE)
  return [ID, await dueAt(world), someIds()]
}

async function placeFor({ store }: World): Promise<CallPlace> {
  const workerId = newWorkerId(random)
  await store.apply(registerWorker, { id: workerId, kind: 'command', home: '/x', identity: someIdentity() })
  return { workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
}

const firingOnTime: readonly Scenario[] = [
  scenario({ fireSchedule }, 'a message to an idle thread', (world) => firing(world)),
  scenario({ fireSchedule }, 'a command', (world) => firing(world, { target: toCommand })),
  scenario({ fireSchedule }, 'a function', (world) => firing(world, { target: toFunction })),
  scenario({ fireSchedule }, 'a function, and whoever fires has a place for it', async (world) => {
    const [id, at, ids] = await firing(world, { target: toFunction, rule: { kind: 'once', at: FIRST } })
    return [id, at, { ...ids, place: await placeFor(world) }]
  }),
  scenario({ finishCall }, 'of a schedule, which is over by it', async (world) => {
    const [id, at, ids] = await firing(world, { target: toFunction, rule: { kind: 'once', at: FIRST } })
    const begun = await world.store.apply(fireSchedule, id, at, { ...ids, place: await placeFor(world) })
    if (begun.kind !== 'fired' || begun.call === undefined) throw new Error('not begun')
    return [refOfCall(begun.call), begun.call, { state: 'succeeded', result: 1 }, []] as const
  }),
  scenario({ fireSchedule }, 'one that comes once, and whose thread is stopped', async (world) => {
    const args = await firing(world, { rule: { kind: 'once', at: FIRST } })
    await world.store.apply(stopThread, TARGET)
    return args
  }),
  scenario({ fireSchedule }, 'for an agent that nobody has: dropped, and its owner told', (world) =>
    firing(world, {
      rule: { kind: 'once', at: FIRST },
      target: { kind: 'agent', agent: 'nobody', text: '' },
      options: { deleteAfterRun: true },
    }),
  ),
  scenario({ fireSchedule }, 'three that are caught up, and more that are not', (world) =>
    firing(world, { options: { misfire: { policy: 'each', limit: 3 } } }, 9),
  ),
  scenario({ fireSchedule }, 'the one before it waits in the inbox, and gives way', async (world) => {
    await fired(world, { options: { overlap: 'cancel' } })
    world.clock.step(MINUTE)
    return [ID, await dueAt(world), someIds()]
  }),
  scenario({ fireSchedule }, 'the one before it is at work, and gives way', async (world) => {
    await taken(world, { options: { overlap: 'cancel' } })
    world.clock.step(MINUTE)
    return [ID, await dueAt(world), someIds()]
  }),
  scenario({ fireBroken }, 'something in it threw', async (world) => {
    const [id, at] = await firing(world)
    return [id, at, 'no such thing']
  }),
]

const firingAgain: readonly Scenario[] = [
  scenario({ fireAgain }, 'its retry', async (world) => {
    const { occurrence, ref } = await taken(world)
    await world.store.apply(finishRun, ref, away)
    world.clock.step(LIMITS.scheduleRetryMs)
    return [occurrence, someIds()]
  }),
  scenario({ fireAgain }, 'its thread goes on', async (world) => {
    await withSchedule(world)
    await world.store.apply(stopThread, TARGET)
    const occurrence = await fireNext(world)
    await world.store.apply(reopenThread, TARGET)
    return [occurrence, someIds()]
  }),
  scenario({ fireAgain }, 'the one before it has ended', async (world) => {
    const { ref } = await taken(world, { options: { overlap: 'queue' } })
    const occurrence = await fireNext(world)
    await world.store.apply(finishRun, ref, done)
    return [occurrence, someIds()]
  }),
  scenario({ againBroken }, 'something in its retry threw', async (world) => {
    const { occurrence, ref } = await taken(world)
    await world.store.apply(finishRun, ref, away)
    return [occurrence, 'no such thing']
  }),
  scenario({ runNow }, 'while the regular one lies ahead', async (world) => {
    await withSchedule(world)
    return [ID, 'key', 'ada', someIds()]
  }),
  scenario({ fireNow: runNow }, 'of one whose last firing waits for its thread', async (world) => {
    await withSchedule(world, { options: { overlap: 'cancel' } })
    await world.store.apply(stopThread, TARGET)
    await fireNext(world)
    return [ID, 'key', 'ada', someIds()]
  }),
  scenario({ runNow }, 'of a paused one, while another is at work', async (world) => {
    await taken(world)
    await world.store.apply(pauseSchedule, ID, 'ada')
    return [ID, 'key', 'ada', someIds()]
  }),
]

const settling: readonly Scenario[] = [
  scenario({ finishRun }, 'a success that is the end of what comes once', async (world) => {
    const { ref } = await taken(world, { rule: { kind: 'once', at: FIRST } })
    return [ref, done]
  }),
  scenario({ finishRun }, 'a failure of a firing that is tried again', async (world) => {
    const { ref } = await taken(world)
    return [ref, away]
  }),
  scenario({ finishRun }, 'the last failure of a firing: its owner is told, it pauses', async (world) => {
    const { ref } = await taken(world, {
      options: { pauseAfter: 1, retry: { ...DEFAULT_OPTIONS.retry, tries: 0 } },
    })
    return [ref, away]
  }),
  scenario(
    { finishRun },
    'a success after which the schedule is deleted, with one that waits for it',
    async (world) => {
      const { ref } = await taken(world, { options: { overlap: 'queue', deleteAfterRun: true } })
      await fireNext(world)
      return [ref, done]
    },
  ),
  scenario({ cancelRun }, 'the run of a firing, in the queue', async (world) => {
    const occurrence = await fired(world, { target: toCommand })
    const runId = (await world.store.read(findOccurrence, occurrence))?.runId
    return [runId ?? ('none' as RunId), byTester]
  }),
  scenario({ removeThread }, 'with a schedule that is due, and one whose message waits', async (world) => {
    await withSchedule(world)
    await world.store.apply(addSchedule, aSchedule({ id: 'sch_2' as ScheduleId, name: 'two' }))
    await world.store.apply(stopThread, TARGET)
    await fireNext(world)
    return [TARGET]
  }),
]

const followup = (more: Partial<NewFollowup> = {}): NewFollowup => ({
  id: 'sch_f' as ScheduleId,
  threadId: TARGET,
  when: { delayMs: MINUTE },
  prompt: 'look again',
  owner: { threadId: TARGET, runId: 'run_1' as RunId, agent: 'clerk' },
  madeBy: 'clerk',
  ...more,
})

const changing: readonly Scenario[] = [
  scenario({ addSchedule }, 'a new one', async (world) => {
    await withDaemon(world)
    return [aSchedule()]
  }),
  scenario({ addSchedule }, 'a name that is taken', async (world) => {
    await withSchedule(world)
    return [aSchedule({ id: 'sch_2' as ScheduleId })]
  }),
  scenario({ editSchedule }, 'another rule, when one was due already', async (world) => {
    await withSchedule(world)
    world.clock.step(MINUTE)
    return [ID, { rule: { kind: 'every', everyMs: 2 * MINUTE, anchor: FIRST } }, 'ada'] as const
  }),
  scenario({ pauseSchedule }, 'an active one', async (world) => [await withSchedule(world), 'ada']),
  scenario({ resumeSchedule }, 'one that was paused over three instants', async (world) => {
    await withSchedule(world)
    await world.store.apply(pauseSchedule, ID, 'ada')
    world.clock.step(3 * MINUTE)
    return [ID, 'ada']
  }),
  scenario({ removeSchedule }, 'with one at work, one that waits, and one that is due', async (world) => {
    await taken(world, { options: { overlap: 'queue' } })
    await fireNext(world)
    world.clock.step(MINUTE)
    return [ID, 'ada', true]
  }),
  scenario({ addFollowup }, 'a new one', async (world) => {
    await withDaemon(world)
    return [followup()]
  }),
  scenario({ addFollowup }, 'a second one of the same run', async (world) => {
    await withDaemon(world)
    await world.store.apply(addFollowup, followup({ id: 'sch_e' as ScheduleId }))
    return [followup()]
  }),
  scenario({ settleLeft }, 'what is at work has nothing left behind', async (world) => {
    await taken(world, { rule: { kind: 'once', at: FIRST } })
    return [10]
  }),
  scenario({ forgetOccurrences }, 'what was settled long ago', async (world) => {
    const { ref } = await taken(world, { rule: { kind: 'once', at: FIRST } })
    await world.store.apply(finishRun, ref, done)
    world.clock.step(LIMITS.occurrencesKeptMs)
    return [10]
  }),
]

export const SCHEDULE_SCENARIOS: readonly Scenario[] = [...firingOnTime, ...firingAgain, ...settling, ...changing]
