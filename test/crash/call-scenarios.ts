import { newAttemptId, newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { callAll, callHere, callOne, claimCalls, giveBackCall, openCalls, refOfCall } from '../../src/runs/call.ts'
import type { NewCall } from '../../src/runs/call.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import type { Resolution } from '../../src/actions/doubt.ts'
import { startAction } from '../../src/actions/perform.ts'
import { proposeOwn } from '../../src/actions/propose-own.ts'
import type { NewAction } from '../../src/actions/propose.ts'
import { actionIdOf, startAgain } from '../../src/actions/step-doubt.ts'
import { finishCall, parkCall } from '../../src/runs/finish-call.ts'
import { heldAttempts, takeOverRun } from '../../src/runs/recover.ts'
import { recordReply } from '../../src/runs/reply.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { advanceRun, restartStep } from '../../src/runs/step.ts'
import type { StepOutcome } from '../../src/runs/step.ts'
import { LEASE_MS, addWorker } from '../support/world.ts'
import { byTester, scenario, succeeded } from './scenario.ts'
import type { Scenario, World } from './scenario.ts'

/** Calls of functions, and their steps. */

const aCall = (more: Partial<NewCall> = {}): NewCall => ({
  id: newRunId(random),
  agent: 'adder',
  input: '[1,2]',
  ...more,
})

async function opened({ store }: World): Promise<void> {
  await store.apply(openCalls, 'adder')
}

async function claimed(world: World, calls = 1) {
  const { store } = world
  await opened(world)
  await store.apply(
    callAll,
    Array.from({ length: calls }, () => aCall()),
  )
  const workerId = await addWorker(store)
  const attempts = Array.from({ length: calls }, () => newAttemptId(random))
  const [call] = await store.apply(claimCalls, { workerId, leaseMs: LEASE_MS, agents: ['adder'], attempts })
  return { call: call!, ref: refOfCall(call!) }
}

const outcome = (name: string, more: Partial<StepOutcome> = {}): StepOutcome => ({
  name,
  effect: 'write',
  tries: 1,
  state: 'done',
  result: '3',
  error: null,
  by: 'its function',
  ...more,
})

async function begun(world: World) {
  const { ref, call } = await claimed(world)
  await world.store.apply(advanceRun, ref, [], 'add')
  return { ref, call }
}

const doubtful = (name: string, more: Partial<StepOutcome> = {}) =>
  outcome(name, { state: 'in_doubt', result: null, error: 'it was cut off', by: 'nobody', ...more })

/** Parked because of a write that nobody knows about, which is an action in doubt now. */
async function parkedInDoubt(world: World) {
  const { ref, call } = await begun(world)
  await world.store.apply(parkCall, ref, [doubtful('add')])
  const [action] = await world.store.read(openDoubts, 1)
  return { ref, call, action: action! }
}

/** The next attempt at it, after a person has said something. */
async function resolved(world: World, resolution: Resolution) {
  const { action } = await parkedInDoubt(world)
  await world.store.apply(resolveDoubt, action.id, resolution)
  const workerId = await addWorker(world.store)
  const claimant = { workerId, leaseMs: LEASE_MS, agents: ['adder'], attempts: [newAttemptId(random)] }
  const [call] = await world.store.apply(claimCalls, claimant)
  return { ref: refOfCall(call!), call: call!, action: { ...action, state: 'approved' as const } }
}

const HAPPENED: Resolution = { kind: 'happened', by: 'tester', result: 3 }
const RUN_AGAIN: Resolution = { kind: 'run-again', by: 'tester' }

/** A call on a thread of its own, into whose inbox something was put. */
async function withMessage(world: World) {
  const { store } = world
  const threadId = 'diary' as ThreadId
  await store.apply(openCalls, 'adder', threadId)
  await store.apply(callOne, aCall({ threadId }))
  const workerId = await addWorker(store)
  const claimant = { workerId, leaseMs: LEASE_MS, agents: ['adder'], attempts: [newAttemptId(random)] }
  const [call] = await store.apply(claimCalls, claimant)
  const sending = { messageId: newMessageId(random), runId: newRunId(random), threadId, agent: 'adder', key: 'm' }
  const { message } = await store.apply(sendMessage, { ...sending, text: 'Be quick.' })
  return { ref: refOfCall(call!), call: call!, messageId: message.id }
}

const aReply = (taken: readonly string[]) => ({
  step: 'model 1',
  result: '{"reply":1}',
  asked: 'One and one?',
  shown: taken.map((messageId) => ({ messageId, text: 'Hm.' })),
  said: { text: 'Let me see.', toolCalls: [] },
  usage: { inputTokens: 3, outputTokens: 2, costMicrousd: 1 },
})

/** What a loop inside of the function wants done. */
const wanted = (runId: RunId, kind: 'allow' | 'ask', name = 'model 1/call-1'): NewAction => ({
  id: actionIdOf(runId, name),
  mark: random.hex(15),
  callId: name,
  tool: 'add',
  effect: 'write',
  repeats: 'once',
  input: { one: 1 },
  signature: name,
  version: '1',
  verdict: { kind, by: 'a test', via: 'program' },
})

export const CALL_SCENARIOS: readonly Scenario[] = [
  scenario({ recordReply }, 'to a loop inside of a function, which was shown a message', async (world) => {
    const { ref, messageId } = await withMessage(world)
    return [ref, aReply([messageId])] as const
  }),
  scenario({ proposeOwn }, 'that is allowed', async (world) => {
    const { ref } = await begun(world)
    return [ref, wanted(ref.runId, 'allow')] as const
  }),
  scenario({ proposeOwn }, 'that a person is asked about, beside another', async (world) => {
    const { ref } = await begun(world)
    await world.store.apply(proposeOwn, ref, wanted(ref.runId, 'ask', 'model 1/call-0'))
    return [ref, wanted(ref.runId, 'ask')] as const
  }),
  scenario({ proposeOwn }, 'after a cancel', async (world) => {
    const { ref } = await begun(world)
    await world.store.apply(cancelRun, ref.runId, byTester)
    return [ref, wanted(ref.runId, 'allow')] as const
  }),
  scenario({ parkCall }, 'with a call that a person is asked about', async (world) => {
    const { ref } = await claimed(world)
    await world.store.apply(proposeOwn, ref, wanted(ref.runId, 'ask'))
    return [ref, []] as const
  }),
  scenario({ parkCall }, 'until a rate limit is over', async (world) => {
    const { ref } = await claimed(world)
    const usage = { inputTokens: 3, outputTokens: 0, costMicrousd: 1 }
    return [ref, [], { until: world.clock.now() + 60_000, reason: 'rate limit of the provider', usage }] as const
  }),
  scenario({ finishCall }, 'with a call that was never begun', async (world) => {
    const { ref, call } = await claimed(world)
    await world.store.apply(proposeOwn, ref, wanted(ref.runId, 'ask'))
    return [ref, { ...call, hasActions: true }, { state: 'succeeded', result: 3 }, []] as const
  }),
  scenario({ finishCall }, 'with a call that was begun and left behind', async (world) => {
    const { ref, call } = await claimed(world)
    const { id } = wanted(ref.runId, 'allow')
    await world.store.apply(proposeOwn, ref, wanted(ref.runId, 'allow'))
    await world.store.apply(startAction, ref, id, { agent: 'adder', policy: [], version: '1' })
    return [ref, { ...call, hasActions: true }, { state: 'failed', code: 'timeout', error: 'timed out' }, []] as const
  }),
  scenario({ openCalls }, 'of a function that nobody has called yet', () => Promise.resolve(['adder'] as const)),
  scenario({ callOne }, 'with a key', async (world) => {
    await opened(world)
    return [aCall({ key: 'one' })] as const
  }),
  scenario({ callHere }, 'with a place that is free', async (world) => {
    await opened(world)
    const workerId = await addWorker(world.store)
    return [aCall({ key: 'one' }), { workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }] as const
  }),
  scenario({ callHere }, 'with the steps that it begins with', async (world) => {
    await opened(world)
    const workerId = await addWorker(world.store)
    return [aCall(), { workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }, ['add', 'multiply']] as const
  }),
  scenario({ giveBackCall }, 'with steps that have not begun', async (world) => {
    await opened(world)
    const workerId = await addWorker(world.store)
    const place = { workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    const called = await world.store.apply(callHere, aCall(), place, ['add', 'multiply'])
    if (called.kind !== 'claimed') throw new Error(`it is ${called.kind}`)
    return [refOfCall(called.call), ['add', 'multiply']] as const
  }),
  scenario({ callAll }, 'several, one of which is known by its key', async (world) => {
    await opened(world)
    await world.store.apply(callOne, aCall({ key: 'known' }))
    return [[aCall(), aCall({ key: 'known' }), aCall({ key: 'other', priority: 5 })]] as const
  }),
  scenario({ claimCalls }, 'two at once', async (world) => {
    await opened(world)
    await world.store.apply(callAll, [aCall(), aCall()])
    const workerId = await addWorker(world.store)
    const attempts = [newAttemptId(random), newAttemptId(random)]
    return [{ workerId, leaseMs: LEASE_MS, agents: ['adder'], attempts }] as const
  }),
  scenario({ advanceRun }, 'the first step', async (world) => [(await claimed(world)).ref, [], 'add'] as const),
  scenario({ advanceRun }, 'from one step to the next', async (world) => {
    return [(await begun(world)).ref, [outcome('add')], 'multiply'] as const
  }),
  scenario({ advanceRun }, 'a read and a write that failed', async (world) => {
    const steps = [outcome('look', { effect: 'read' }), outcome('add', { state: 'failed', result: null, error: 'no' })]
    return [(await begun(world)).ref, steps, 'multiply'] as const
  }),
  scenario({ advanceRun }, 'after a cancel', async (world) => {
    const { ref } = await begun(world)
    await world.store.apply(cancelRun, ref.runId, byTester)
    return [ref, [outcome('add')], 'multiply'] as const
  }),
  scenario({ restartStep }, 'that was cut off', async (world) => {
    return [(await begun(world)).ref, { name: 'add', tries: 1 }] as const
  }),
  scenario({ parkCall }, 'with a write that nobody knows about', async (world) => {
    return [(await begun(world)).ref, [doubtful('add')]] as const
  }),
  scenario({ parkCall }, 'after a cancel', async (world) => {
    const { ref } = await begun(world)
    await world.store.apply(cancelRun, ref.runId, byTester)
    return [ref, [doubtful('add')]] as const
  }),
  scenario({ parkCall }, 'whose doubt its own worker has settled meanwhile', async (world) => {
    const { ref } = await begun(world)
    await world.store.apply(advanceRun, ref, [doubtful('add')])
    await world.store.apply(advanceRun, ref, [outcome('add')])
    return [ref, []] as const
  }),
  scenario({ advanceRun }, 'of a step that was given up, by the one who had begun it', async (world) => {
    return [(await parkedInDoubt(world)).ref, [outcome('add')]] as const
  }),
  scenario({ resolveDoubt }, 'of a step, which happened', async (world) => {
    const { action } = await parkedInDoubt(world)
    return [action.id, HAPPENED] as const
  }),
  scenario({ startAgain }, 'as a person wants it', async (world) => {
    const { ref, action } = await resolved(world, RUN_AGAIN)
    return [ref, action] as const
  }),
  scenario({ advanceRun }, 'of a step that was done again', async (world) => {
    const { ref, action } = await resolved(world, RUN_AGAIN)
    await world.store.apply(startAgain, ref, action)
    return [ref, [outcome('add', { tries: 2, listed: true })], 'multiply'] as const
  }),
  scenario({ restartStep }, 'that was cut off while it was done again', async (world) => {
    const { ref, action } = await resolved(world, RUN_AGAIN)
    await world.store.apply(startAgain, ref, action)
    const held = (await world.store.read(heldAttempts)).find(({ runId }) => runId === ref.runId)!
    const taker = { workerId: await addWorker(world.store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    const claim = await world.store.apply(takeOverRun, held, 'owner-dead', taker)
    return [
      { ...ref, id: taker.attemptId, fence: claim!.run.fence },
      { name: 'add', tries: 2 },
    ] as const
  }),
  scenario({ finishCall }, 'with a write that was left behind', async (world) => {
    const { ref, call } = await begun(world)
    return [ref, call, { state: 'failed', code: 'timeout', error: 'timed out' }, []] as const
  }),
  scenario({ finishCall }, 'with its last step', async (world) => {
    const { ref, call } = await begun(world)
    return [ref, call, { state: 'succeeded', result: 3 }, [outcome('add')]] as const
  }),
  scenario({ finishCall }, 'after a cancel', async (world) => {
    const { ref, call } = await begun(world)
    await world.store.apply(cancelRun, ref.runId, byTester)
    return [ref, call, succeeded, [outcome('add')]] as const
  }),
]
