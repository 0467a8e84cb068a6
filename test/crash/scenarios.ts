import type { RunId, ThreadId, WorkerId } from '../../src/base/ids.ts'
import {
  newActionId,
  newAttemptId,
  newMessageId,
  newRunId,
  newThreadId,
  newWorkerId,
  systemRandomness as random,
} from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { recordStarting, renewLeases } from '../../src/runs/attempt.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import type { CapacityLimits } from '../../src/runs/capacity.ts'
import { claimRun } from '../../src/runs/claim.ts'
import type { Claimant } from '../../src/runs/claim.ts'
import { finishRun, keepLateResult } from '../../src/runs/finish.ts'
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
import { restartAction, settleAction, startAction } from '../../src/actions/perform.ts'
import type { Settlement } from '../../src/actions/perform.ts'
import { blockQuota, quotaSucceeded, waitFor } from '../../src/model/quota.ts'
import { parkRun, resumeDue, resumeRun } from '../../src/runs/park.ts'
import { sendMessage, wakeThread } from '../../src/runs/send.ts'
import type { Sending } from '../../src/runs/send.ts'
import { recordTurn } from '../../src/runs/turn.ts'
import type { Turn } from '../../src/runs/turn.ts'
import { nameStore } from '../../src/store/identity.ts'
import type { Store } from '../../src/store/store.ts'
import type { Change } from '../../src/store/transition.ts'
import { openThread } from '../../src/threads/thread.ts'
import type { HurriedClock } from '../support/clocks.ts'
import { LEASE_MS, aThread, addWorker, claim, running, someIdentity, submission, submitted } from '../support/world.ts'

export interface World {
  readonly store: Store
  readonly clock: HurriedClock
}

/** One transition in one situation: `prepare` makes the situation, what it returns is the transition to interrupt. */
export interface Scenario {
  readonly change: string
  readonly situation: string
  /** What doing the very same again answers once it was done: everything but these repeats without harm. */
  readonly again: 'harmless' | 'refused'
  prepare(world: World): Promise<(store: Store) => Promise<unknown>>
}

/** Takes `{ submitRun }`: the name that the gate looks for and the transition itself, in one word. */
function scenario<Args extends [] | readonly unknown[], T>(
  named: Readonly<Record<string, Change<Args, T>>>,
  situation: string,
  prepare: (world: World) => Promise<Args>,
  again: Scenario['again'] = 'harmless',
): Scenario {
  const [[change, transition] = []] = Object.entries(named)
  if (change === undefined || transition === undefined) throw new Error(`no transition for: ${situation}`)
  const act = async (world: World) => {
    const args = await prepare(world)
    return (store: Store) => store.apply(transition, ...args)
  }
  return { change, situation, again, prepare: act }
}

const LIMITED: CapacityLimits = { total: 2, eachAgent: 1 }
const succeeded: Outcome = {
  state: 'succeeded',
  result: { exitCode: 0 },
  usage: { inputTokens: 5, outputTokens: 7, costMicrousd: 11 },
  summary: 'done',
}
const authFailed: Outcome = { state: 'failed', code: 'auth', error: '401' }
const timedOut: Outcome = { state: 'failed', code: 'timeout', error: 'it ran longer than it may' }
const cancelled: Outcome = { state: 'cancelled' }
const byTester = { by: 'tester', reason: 'a test' }

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

const newAttempt = () => ({ id: newAttemptId(random), mark: random.hex(16) })

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

const sending = (key: string): Sending => ({
  messageId: newMessageId(random),
  runId: newRunId(random),
  threadId: 'conversation' as ThreadId,
  agent: 'clerk',
  text: 'hello',
  key,
})

/** A run of an agent, claimed, with a message in its inbox. */
async function talking({ store }: World) {
  const sent = await store.apply(sendMessage, sending('first'))
  const claimed = await store.apply(claimRun, {
    workerId: await addWorker(store),
    leaseMs: LEASE_MS,
    limits: {},
    attempt: newAttempt(),
    agents: ['clerk'],
  })
  if (claimed === undefined) throw new Error('nothing to claim')
  return {
    messageId: sent.message.id,
    ref: { id: claimed.attempt.id, runId: claimed.run.id, fence: claimed.run.fence },
  }
}

const aTurn = (messageId: string, entries: readonly string[]): Turn => ({
  generation: 1,
  shown: [{ messageId, text: 'hello' }],
  reply: { text: 'I will', toolCalls: [] },
  usage: { inputTokens: 1, outputTokens: 2, costMicrousd: 3 },
  actions: entries.map((entry) => ({
    id: newActionId(random),
    mark: random.hex(15),
    callId: entry,
    tool: 'append',
    effect: 'write',
    repeats: 'once',
    input: { entry },
    signature: entry,
    decision: { kind: 'allow', by: 'a rule', via: 'configuration' },
  })),
})

async function proposed(world: World, entries: readonly string[] = ['a']) {
  const { ref, messageId } = await talking(world)
  const recorded = await world.store.apply(recordTurn, ref, aTurn(messageId, entries))
  if (recorded.kind !== 'recorded') throw new Error(recorded.kind)
  return { ref, actions: recorded.actions }
}

async function started(world: World) {
  const { ref, actions } = await proposed(world, ['a', 'a'])
  const start = await world.store.apply(startAction, ref, actions[0]!.id)
  if (start.kind !== 'started') throw new Error(start.kind)
  return { ref, action: start.action, twin: actions[1]! }
}

const doneByTool: Settlement = { state: 'done', result: { ok: true }, by: 'its tool' }
const cutOff: Settlement = { state: 'in_doubt', error: 'cut off', by: 'nobody' }

const acting: readonly Scenario[] = [
  scenario({ sendMessage }, 'to an idle thread', async () => [sending('first')]),
  scenario({ sendMessage }, 'to a busy thread', async (world) => {
    await talking(world)
    return [sending('second')]
  }),
  scenario({ wakeThread }, 'a thread with messages and nobody at work', async ({ store }) => {
    const sent = await store.apply(sendMessage, sending('first'))
    await store.apply(cancelRun, sent.runId!, byTester)
    return ['conversation' as ThreadId, 'clerk', newRunId(random)]
  }),
  scenario(
    { recordTurn },
    'a reply with two actions',
    async (world) => {
      const { ref, messageId } = await talking(world)
      return [ref, aTurn(messageId, ['a', 'b'])]
    },
    'refused',
  ),
  scenario({ startAction }, 'an action that was allowed', async (world) => {
    const { ref, actions } = await proposed(world)
    return [ref, actions[0]!.id]
  }),
  scenario({ startAction }, 'a repeat of one that is done', async (world) => {
    const { ref, action, twin } = await started(world)
    await world.store.apply(settleAction, action, { state: 'done', result: 1, by: 'its tool' })
    return [ref, twin.id]
  }),
  scenario({ restartAction }, 'one that is proven not to have begun', async (world) => {
    const { ref, action } = await started(world)
    return [ref, action]
  }),
  scenario({ settleAction }, 'done', async (world) => [(await started(world)).action, doneByTool]),
  scenario({ settleAction }, 'in doubt', async (world) => [(await started(world)).action, cutOff]),
  scenario({ finishRun }, 'a run with an action that had not begun', async (world) => [
    (await proposed(world)).ref,
    timedOut,
  ]),
  scenario({ resumeDue }, 'a run whose instant has come', async (world) => {
    const { ref } = await running(world.store)
    await world.store.apply(parkRun, ref, 'a rate limit', world.clock.now() + 1_000)
    world.clock.step(2_000)
    return [10]
  }),
]

const asking: readonly Scenario[] = [
  scenario({ blockQuota }, 'a provider that asks to wait', async () => ['anthropic', 30_000, 'rate limited']),
  scenario({ waitFor }, 'a quota that is blocked', async ({ store }) => {
    await store.apply(blockQuota, 'anthropic', 30_000, 'rate limited')
    return ['anthropic']
  }),
  scenario({ quotaSucceeded }, 'the probe of a quota', async ({ store, clock }) => {
    const { blockedUntil } = await store.apply(blockQuota, 'anthropic', 30_000, 'rate limited')
    clock.step(600_000)
    return ['anthropic', { at: blockedUntil, blockedUntil }]
  }),
]

export const SCENARIOS: readonly Scenario[] = [
  ...asking,
  ...acting,
  ...submitting,
  ...claiming,
  ...finishing,
  ...cancelling,
  ...recovering,
  ...working,
]
