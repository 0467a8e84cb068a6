import type { RunId, WorkerId } from '../../src/base/ids.ts'
import { newAttemptId, newRunId, newThreadId, newWorkerId, systemRandomness as random } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { recordStarting, renewLeases } from '../../src/runs/attempt.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import type { CapacityLimits } from '../../src/runs/capacity.ts'
import { claimRun } from '../../src/runs/claim.ts'
import type { Claimant } from '../../src/runs/claim.ts'
import { finishRun, keepLateReply, keepLateResult } from '../../src/runs/finish.ts'
import type { Outcome } from '../../src/runs/finish.ts'
import {
  abandonReserved,
  disownRun,
  expireQueued,
  handOverRun,
  heldAttempts,
  requeueRun,
  takeOverRun,
} from '../../src/runs/recover.ts'
import type { TakeoverGround } from '../../src/runs/recover.ts'
import { registerWorker, stopWorker } from '../../src/runs/worker.ts'
import { submitRun } from '../../src/runs/submit.ts'
import type { Submission } from '../../src/runs/submit.ts'
import { parkRun, resumeRun } from '../../src/runs/park.ts'
import { noteTrace } from '../../src/runs/trace.ts'
import { nameStore } from '../../src/store/identity.ts'
import { openThread } from '../../src/threads/thread.ts'
import { acceptTool, pinTools, seen } from '../../src/tools/mcp/pins.ts'
import { LEASE_MS, aThread, addWorker, claim, running, someIdentity, submission, submitted } from '../support/world.ts'
import { AGENT_SCENARIOS } from './agent-scenarios.ts'
import { AGENT_SCHEDULE_SCENARIOS } from './agent-schedule-scenarios.ts'
import { CALL_SCENARIOS } from './call-scenarios.ts'
import { CONTROL_SCENARIOS } from './control-scenarios.ts'
import { DECISION_SCENARIOS } from './decision-scenarios.ts'
import { INBOX_SCENARIOS } from './inbox-scenarios.ts'
import { NOTICE_SCENARIOS } from './notice-scenarios.ts'
import { PERMISSION_SCENARIOS } from './permission-scenarios.ts'
import { RETENTION_SCENARIOS } from './retention-scenarios.ts'
import { SCHEDULE_SCENARIOS } from './schedule-scenarios.ts'
import { WORKSPACE_SCENARIOS } from './workspace-scenarios.ts'
import { byTester, newAttempt, scenario, succeeded, timedOut } from './scenario.ts'
import type { Scenario, World } from './scenario.ts'

export type { Scenario } from './scenario.ts'

const LIMITED: CapacityLimits = { total: 2, eachAgent: 1 }
const authFailed: Outcome = { state: 'failed', code: 'auth', error: '401' }
const cancelled: Outcome = { state: 'cancelled' }

async function parented({ store }: World): Promise<Partial<Submission>> {
  const parentThreadId = aThread()
  await store.apply(openThread, parentThreadId, 'conductor', null)
  return { parentThreadId, agent: 'helper' }
}

/** A run with everything that its end touches: a parent, slots, a breaker that has counted. */
async function entangled(world: World) {
  for (let i = 0; i < LIMITS.breakerFailures - 1; i++) {
    await world.store.apply(finishRun, (await running(world.store, { agent: 'helper' })).ref, authFailed)
  }
  return await running(world.store, await parented(world), LIMITED)
}

async function openedBreaker(world: World): Promise<void> {
  for (let i = 0; i < LIMITS.breakerFailures; i++) {
    await world.store.apply(finishRun, (await running(world.store, { agent: 'helper' })).ref, authFailed)
  }
}

async function claimant({ store }: World, more: Partial<Claimant> = {}): Promise<[Claimant]> {
  const workerId = await addWorker(store)
  return [{ workerId, leaseMs: LEASE_MS, limits: LIMITED, attempt: newAttempt(), ...more }]
}

const submitting: readonly Scenario[] = [
  scenario({ submitRun }, 'a new run on a new thread', async (world) => [submission(await parented(world))]),
  scenario({ submitRun }, 'a new run with a key', async () => [submission({ key: 'k', expiresInMs: 60_000 })]),
  scenario({ submitRun }, 'a key that is known', async ({ store }) => {
    const known = submission({ key: 'k' })
    await store.apply(submitRun, known)
    return [{ ...known, id: newRunId(random), threadId: newThreadId(random) }]
  }),
  scenario({ submitRun }, 'a key that belongs to another request', async ({ store }) => {
    await submitted(store, { key: 'k' })
    return [submission({ key: 'k', priority: 9 })]
  }),
  scenario({ submitRun }, 'a full backlog', async ({ store }) => {
    await submitted(store)
    return [submission({ backlogLimit: 1 })]
  }),
  scenario({ submitRun }, 'a thread that was busy before', async ({ store }) => {
    const { run } = await running(store)
    return [submission({ threadId: run.threadId, key: 'k' })]
  }),
  scenario({ openThread }, 'a new thread', async () => [newThreadId(random), 'helper', null]),
  scenario({ openThread }, 'a thread that is there', async ({ store }) => {
    const id = newThreadId(random)
    await store.apply(openThread, id, 'helper', null)
    return [id, 'helper', null]
  }),
]

const claiming: readonly Scenario[] = [
  scenario({ claimRun }, 'a queued run, with slots to take', async (world) => {
    await submitted(world.store, await parented(world))
    return claimant(world)
  }),
  scenario({ claimRun }, 'an agent without a slot, and one with', async (world) => {
    await running(world.store, { agent: 'helper' }, LIMITED)
    await submitted(world.store, { agent: 'helper', priority: 1 })
    await submitted(world.store, { agent: 'other' })
    return claimant(world)
  }),
  scenario({ claimRun }, 'a run that an open breaker refuses', async (world) => {
    await openedBreaker(world)
    const run = await submitted(world.store, await parented(world))
    return claimant(world, { only: run.id })
  }),
  scenario({ claimRun }, 'the probe of a breaker whose time is over', async (world) => {
    await openedBreaker(world)
    await submitted(world.store, { agent: 'helper' })
    world.clock.step(LIMITS.breakerFirstMs + 1)
    return claimant(world)
  }),
  scenario({ claimRun }, 'nothing to do', async (world) => claimant(world)),
  scenario({ recordStarting }, 'a command about to start', async ({ store }) => [(await running(store)).ref]),
  scenario({ recordStarting }, 'cancel came first', async ({ store }) => {
    const { run, ref } = await running(store)
    await store.apply(cancelRun, run.id, byTester)
    return [ref]
  }),
  scenario({ noteTrace }, 'of an attempt that was just claimed', async ({ store }) => {
    const trace = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
    return [(await running(store)).ref, 1, trace]
  }),
  scenario({ renewLeases }, 'a worker with two attempts', async ({ store, clock }) => {
    const workerId = await addWorker(store)
    for (let i = 0; i < 2; i++) await claim(store, workerId, {}, (await submitted(store)).id)
    clock.step(5_000)
    return [workerId, LEASE_MS]
  }),
]

const finishing: readonly Scenario[] = [
  scenario({ finishRun }, 'success, with a parent, slots and a breaker', async (world) => [
    (await entangled(world)).ref,
    succeeded,
  ]),
  scenario({ finishRun }, 'an authentication failure that opens the breaker', async (world) => [
    (await entangled(world)).ref,
    authFailed,
  ]),
  scenario({ finishRun }, 'a timeout', async (world) => [(await entangled(world)).ref, timedOut]),
  scenario({ finishRun }, 'cancelled as requested', async (world) => {
    const { run, ref } = await entangled(world)
    await world.store.apply(cancelRun, run.id, byTester)
    return [ref, cancelled]
  }),
  scenario({ finishRun }, 'a success after cancel was requested', async (world) => {
    const { run, ref } = await entangled(world)
    await world.store.apply(cancelRun, run.id, byTester)
    return [ref, succeeded]
  }),
  scenario({ finishRun }, 'a success of a worker that was fenced', async (world) => {
    const { ref, attempt } = await entangled(world)
    await takeOver(world, { ...ref, mark: attempt.mark })
    return [ref, succeeded]
  }),
  scenario({ finishRun }, 'a failure after success', async (world) => {
    const { ref } = await entangled(world)
    await world.store.apply(finishRun, ref, succeeded)
    return [ref, authFailed]
  }),
  scenario({ keepLateResult }, 'a result that came after the end', async (world) => {
    const { ref } = await entangled(world)
    await world.store.apply(finishRun, ref, timedOut)
    return [ref, succeeded]
  }),
  scenario({ keepLateReply }, 'to a worker that has lost the run', async (world) => {
    const { ref } = await entangled(world)
    await world.store.apply(handOverRun, ref)
    return [ref, { text: 'too late', usage: { inputTokens: 5, outputTokens: 7, costMicrousd: 11 } }]
  }),
  scenario({ parkRun }, 'a run that must wait', async (world) => [(await entangled(world)).ref, 'a person']),
  scenario({ parkRun }, 'cancel came first', async (world) => {
    const { run, ref } = await entangled(world)
    await world.store.apply(cancelRun, run.id, byTester)
    return [ref, 'a person']
  }),
  scenario({ resumeRun }, 'what it waited for has come', async (world) => {
    const { run, ref } = await entangled(world)
    await world.store.apply(parkRun, ref, 'a person')
    world.clock.step(60_000)
    return [run.id]
  }),
]

const cancelling: readonly Scenario[] = [
  scenario({ cancelRun }, 'a queued run', async (world) => {
    const run = await submitted(world.store, await parented(world))
    return [run.id, byTester]
  }),
  scenario({ cancelRun }, 'a parked run', async (world) => {
    const { run, ref } = await entangled(world)
    await world.store.apply(parkRun, ref, 'a person')
    return [run.id, byTester]
  }),
  scenario({ cancelRun }, 'a running run', async (world) => [(await entangled(world)).run.id, byTester]),
  scenario({ cancelRun }, 'a run that has ended', async (world) => {
    const { run, ref } = await entangled(world)
    await world.store.apply(finishRun, ref, succeeded)
    return [run.id, byTester]
  }),
  scenario({ cancelRun }, 'a run that does not exist', async () => ['run_unknown' as RunId, byTester]),
]

async function takeOver({ store }: World, held: Parameters<typeof takeOverRun>[0]) {
  const workerId = await addWorker(store)
  const taker = { workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
  const claimed = await store.apply(takeOverRun, held, 'owner-dead', taker)
  if (claimed === undefined) throw new Error('not taken over')
  return { id: claimed.attempt.id, runId: claimed.run.id, fence: claimed.run.fence }
}

async function takeover(world: World, ground: TakeoverGround): Promise<Parameters<typeof takeOverRun>> {
  const { ref, attempt } = await entangled(world)
  await world.store.apply(recordStarting, ref)
  if (ground === 'released') await world.store.apply(handOverRun, ref)
  if (ground === 'lease-over') world.clock.step(LEASE_MS + 1)
  const workerId = await addWorker(world.store)
  return [{ ...ref, mark: attempt.mark }, ground, { workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }]
}

async function disowning(world: World): Promise<Parameters<typeof disownRun>> {
  const { ref } = await entangled(world)
  const held = (await world.store.read(heldAttempts)).find(({ id }) => id === ref.id)
  if (held === undefined) throw new Error('not held')
  const workerId = await addWorker(world.store)
  const taker = { workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random), mark: random.hex(16) }
  return [held, taker, 'the operator']
}

const recovering: readonly Scenario[] = [
  scenario({ takeOverRun }, 'from an owner that is dead', (world) => takeover(world, 'owner-dead')),
  scenario({ takeOverRun }, 'of a lease that is over', (world) => takeover(world, 'lease-over')),
  scenario({ takeOverRun }, 'of what was handed over', (world) => takeover(world, 'released')),
  scenario({ takeOverRun }, 'of a lease that was renewed', async (world) => {
    const args = await takeover(world, 'owner-dead')
    return [args[0], 'lease-over', args[2]] as Parameters<typeof takeOverRun>
  }),
  scenario({ disownRun }, 'a person says that its owner is dead', (world) => disowning(world)),
  scenario({ disownRun }, 'cancel came first', async (world) => {
    const args = await disowning(world)
    await world.store.apply(cancelRun, args[0].runId, byTester)
    return args
  }),
  scenario({ requeueRun }, 'a command that never started', async (world) => [(await entangled(world)).ref]),
  scenario({ requeueRun }, 'cancel came first', async (world) => {
    const { run, ref } = await entangled(world)
    await world.store.apply(cancelRun, run.id, byTester)
    return [ref]
  }),
  scenario({ requeueRun }, 'the last attempt that it may have', async (world) => {
    let { ref } = await entangled(world)
    for (let i = 1; i < LIMITS.attempts; i++) {
      ref = await takeOver(world, { ...ref, mark: 'mark' })
    }
    return [ref]
  }),
  scenario({ handOverRun }, 'a worker that shuts down', async (world) => [(await entangled(world)).ref]),
  scenario({ expireQueued }, 'two of three waited too long', async (world) => {
    const parent = await parented(world)
    for (const expiresInMs of [10, 20, 60_000]) await submitted(world.store, { ...parent, expiresInMs })
    world.clock.step(1_000)
    return [LIMITS.page]
  }),
  scenario({ abandonReserved }, 'its process went away', async (world) => {
    const forWorker = await addWorker(world.store)
    const run = await submitted(world.store, { ...(await parented(world)), forWorker })
    return [run.id, forWorker]
  }),
  scenario({ abandonReserved }, 'it had started after all', async (world) => {
    const forWorker = await addWorker(world.store)
    const run = await submitted(world.store, { forWorker })
    await claim(world.store, forWorker, {}, run.id)
    return [run.id, forWorker]
  }),
]

const newDaemon = (home: string) => ({
  id: newWorkerId(random),
  kind: 'daemon' as const,
  home,
  identity: someIdentity(),
})

async function daemonAt({ store }: World, home: string): Promise<WorkerId> {
  const daemon = newDaemon(home)
  await store.apply(registerWorker, daemon)
  return daemon.id
}

const working: readonly Scenario[] = [
  scenario({ registerWorker }, 'a new daemon', async () => [newDaemon('here')]),
  scenario({ registerWorker }, 'a daemon whose predecessor is dead', async (world) => {
    const dead = await daemonAt(world, 'here')
    return [newDaemon('here'), dead]
  }),
  scenario({ registerWorker }, 'a home that another daemon has', async (world) => {
    await daemonAt(world, 'here')
    return [newDaemon('here')]
  }),
  scenario({ registerWorker }, 'a command', async () => [{ ...newDaemon('here'), kind: 'command' as const }]),
  scenario({ nameStore }, 'a new database', async () => ['first']),
  scenario({ nameStore }, 'a database that has its name', async ({ store }) => {
    await store.apply(nameStore, 'first')
    return ['second']
  }),
  scenario({ stopWorker }, 'a daemon that says goodbye', async (world) => [await daemonAt(world, 'here')]),
]

const aTool = (description: string) => seen({ name: 'do', description, inputSchema: { type: 'object' } })
const anotherTool = seen({ name: 'other', inputSchema: { type: 'object' } })

const pinning: readonly Scenario[] = [
  scenario({ pinTools }, 'a server that nobody has used', async () => ['files', [aTool('Before.'), anotherTool]]),
  scenario({ pinTools }, 'a tool that changed, and a new one', async ({ store }) => {
    await store.apply(pinTools, 'files', [aTool('Before.')])
    return ['files', [aTool('After.'), anotherTool]]
  }),
  scenario({ acceptTool }, 'a tool that changed', async ({ store }) => {
    await store.apply(pinTools, 'files', [aTool('Before.')])
    await store.apply(pinTools, 'files', [aTool('After.')])
    return [{ server: 'files', tool: 'do', digest: aTool('After.').digest, by: 'ann' }]
  }),
]

export const SCENARIOS: readonly Scenario[] = [
  ...pinning,
  ...AGENT_SCENARIOS,
  ...CALL_SCENARIOS,
  ...INBOX_SCENARIOS,
  ...DECISION_SCENARIOS,
  ...NOTICE_SCENARIOS,
  ...PERMISSION_SCENARIOS,
  ...AGENT_SCHEDULE_SCENARIOS,
  ...SCHEDULE_SCENARIOS,
  ...WORKSPACE_SCENARIOS,
  ...RETENTION_SCENARIOS,
  ...CONTROL_SCENARIOS,
  ...submitting,
  ...claiming,
  ...finishing,
  ...cancelling,
  ...recovering,
  ...working,
]
