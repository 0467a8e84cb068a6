import { describe, expect, test } from 'vitest'

import { openDoubts } from '../../src/actions/doubt.ts'
import { findAction } from '../../src/actions/action.ts'
import { pendingApprovals } from '../../src/actions/approval.ts'
import { askedMatters } from '../../src/actions/desk.ts'
import { settleAction, startAction } from '../../src/actions/perform.ts'
import { proposeOwn } from '../../src/actions/propose-own.ts'
import type { NewAction } from '../../src/actions/propose.ts'
import { actionIdOf } from '../../src/actions/step-doubt.ts'
import { newAttemptId, newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { callOne, claimCalls, openCalls, refOfCall } from '../../src/runs/call.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { finishCall, parkCall } from '../../src/runs/finish-call.ts'
import { recordReply } from '../../src/runs/reply.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { advanceRun, stepsOf } from '../../src/runs/step.ts'
import { readWholeThread, viewWholeThread } from '../../src/runs/thread-view.ts'
import { readWholeRun, viewWholeRun } from '../../src/runs/view.ts'
import type { Store } from '../../src/store/store.ts'
import { acknowledgeDelivery, leaseMessages } from '../../src/threads/delivery.ts'
import { findMessage } from '../../src/threads/message.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LEASE_MS, addWorker, reread } from '../support/world.ts'

const THREAD = 'diary' as ThreadId

async function claimed(store: Store) {
  await store.apply(openCalls, 'adder', THREAD)
  await store.apply(callOne, { id: newRunId(random), agent: 'adder', input: '1', threadId: THREAD })
  const attempts = [newAttemptId(random)]
  const claimant = { workerId: await addWorker(store), leaseMs: LEASE_MS, agents: ['adder'], attempts }
  const [call] = await store.apply(claimCalls, claimant)
  return { call: call!, ref: refOfCall(call!) }
}

async function sent(store: Store): Promise<string> {
  const ids = { messageId: newMessageId(random), runId: newRunId(random) }
  const { message } = await store.apply(sendMessage, {
    ...ids,
    threadId: THREAD,
    agent: 'adder',
    key: 'm',
    text: 'Hm.',
  })
  return message.id
}

const reply = (...taken: readonly string[]) => ({
  step: 'model 1',
  result: '"hello"',
  asked: 'Say hello.',
  shown: taken.map((messageId) => ({ messageId, text: 'Hm.' })),
  said: { text: 'Hello.', toolCalls: [] },
  usage: { inputTokens: 3, outputTokens: 2, costMicrousd: 1 },
})

const wanted = (runId: RunId, kind: 'allow' | 'ask' | 'deny', name = 'model 1/one'): NewAction => ({
  id: actionIdOf(runId, name),
  mark: random.hex(15),
  callId: name,
  tool: 'add',
  effect: 'write',
  repeats: 'once',
  input: { name },
  signature: name,
  version: '1',
  verdict: { kind, by: 'a test', via: 'program' },
})

const NOW = { agent: 'adder', policy: [], version: '1' }

describe.each(engines)('a loop inside of a function, on $name', (engine) => {
  const open = async () => (await engine.database()).open()

  test('an answer is recorded with its price and the messages that it was shown, once [inbox/effect-once]', async () => {
    const store = await open()
    const { ref } = await claimed(store)
    const message = await sent(store)
    for (let time = 0; time < 2; time += 1)
      expect(await store.apply(recordReply, ref, reply(message))).toMatchObject({ kind: 'recorded' })
    expect(await store.read(stepsOf, ref.runId)).toMatchObject([{ name: 'model 1', state: 'done', result: 'hello' }])
    expect(await store.read(findMessage, message)).toMatchObject({ state: 'consumed', consumedByRun: ref.runId })
    expect(await reread(store, ref.runId)).toMatchObject({ inputTokens: 3, outputTokens: 2, costMicrousd: 1 })
    await assertInvariants(store)
  })

  test('what was asked and said stands in the thread, once, and a call knows the words beside it', async () => {
    const store = await open()
    const { ref } = await claimed(store)
    const message = await sent(store)
    const recorded = await store.apply(recordReply, ref, reply(message))
    const whole = (await store.read(readWholeThread, THREAD, 9))!
    expect(whole.entries).toMatchObject([
      { kind: 'user', body: { text: 'Say hello.', from: 'its program' } },
      { kind: 'user', body: { text: 'Hm.', messageId: message } },
      { kind: 'assistant', body: { text: 'Hello.', step: 'model 1' }, inputTokens: 3 },
    ])
    const { entrySeq: entry } = recorded as { entrySeq: number }
    expect(await store.apply(recordReply, ref, reply(message))).toEqual(recorded)
    await store.apply(proposeOwn, ref, wanted(ref.runId, 'ask'), entry)
    expect(await store.read(askedMatters, 9)).toMatchObject([{ said: 'Hello.', action: { entrySeq: entry } }])
    // The step that keeps the whole answer is not shown beside it.
    const shown = viewWholeRun((await store.read(readWholeRun, ref.runId))!)
    expect([shown.steps?.length, shown.actions?.map(({ step }) => step)]).toEqual([3, [entry]])
    await assertInvariants(store)
  })

  test('an answer that a worker of an older version recorded, without its words in the thread, counts all the same', async () => {
    const store = await open()
    const { ref } = await claimed(store)
    const older = {
      name: 'model 1',
      effect: 'read',
      tries: 1,
      state: 'done',
      result: '"hello"',
      error: null,
      by: null,
    } as const
    await store.apply(advanceRun, ref, [older])
    expect(await store.apply(recordReply, ref, reply())).toEqual({ kind: 'recorded' })
    expect((await store.read(readWholeThread, THREAD, 9))!.entries).toEqual([])
  })

  test('among others in a thread a long result of a call is its beginning, and says how long the whole is', async () => {
    const store = await open()
    const { ref } = await claimed(store)
    const { entrySeq } = (await store.apply(recordReply, ref, reply())) as { entrySeq: number }
    const action = wanted(ref.runId, 'allow')
    await store.apply(proposeOwn, ref, action, entrySeq)
    await store.apply(startAction, ref, action.id, NOW)
    const result = { pages: 'x'.repeat(LIMITS.resultShownBytes) }
    await store.apply(settleAction, (await store.read(findAction, action.id))!, {
      state: 'done',
      by: 'observed',
      result,
    })
    const whole = viewWholeThread((await store.read(readWholeThread, THREAD, 9))!)
    const bytes = JSON.stringify(result).length
    expect(whole.actions).toMatchObject([{ id: action.id, resultBytes: bytes }])
    expect(whole.actions[0]!.result).toBe(JSON.stringify(result).slice(0, LIMITS.resultShownBytes))
    const shown = viewWholeRun((await store.read(readWholeRun, ref.runId))!)
    expect(shown.actions).toMatchObject([{ id: action.id, result }])
    expect(shown.actions?.[0]).not.toHaveProperty('resultBytes')
  })

  test('one that was shown what somebody else took meanwhile is not recorded, and is paid for', async () => {
    const store = await open()
    const { ref } = await claimed(store)
    const message = await sent(store)
    const delivery = { id: 'dlv_1', threadId: THREAD, by: { kind: 'hand' } as const, limit: 9, bytes: 999 }
    await store.apply(leaseMessages, delivery)
    await store.apply(acknowledgeDelivery, delivery.id)
    expect(await store.apply(recordReply, ref, reply(message))).toEqual({ kind: 'changed' })
    expect(await store.read(stepsOf, ref.runId)).toEqual([])
    expect(await reread(store, ref.runId)).toMatchObject({ inputTokens: 3 })
    expect(await store.apply(recordReply, { ...ref, fence: 0 }, reply())).toEqual({ kind: 'superseded' })
  })

  test('a call is proposed once, however often the loop comes to it, and not after a cancel', async () => {
    const store = await open()
    const { ref } = await claimed(store)
    const first = await store.apply(proposeOwn, ref, wanted(ref.runId, 'allow'))
    expect(await store.apply(proposeOwn, ref, { ...wanted(ref.runId, 'deny'), mark: 'other' })).toEqual(first)
    await store.apply(proposeOwn, ref, wanted(ref.runId, 'deny', 'model 1/two'))
    expect(await store.read(findAction, actionIdOf(ref.runId, 'model 1/two'))).toMatchObject({ state: 'denied' })
    expect(await store.apply(proposeOwn, { ...ref, fence: 0 }, wanted(ref.runId, 'allow', 'x'))).toMatchObject({
      why: 'superseded',
    })
    await store.apply(cancelRun, ref.runId, { by: 'tester' })
    expect(await store.apply(proposeOwn, ref, wanted(ref.runId, 'allow', 'x'))).toMatchObject({
      kind: 'refused',
      why: 'cancel-requested',
    })
    await assertInvariants(store)
  })

  test('its run waits as long as a person is asked, and its end withdraws the question', async () => {
    const store = await open()
    const { ref, call } = await claimed(store)
    await store.apply(proposeOwn, ref, wanted(ref.runId, 'ask'))
    expect(await store.read(pendingApprovals, 9)).toHaveLength(1)
    await store.apply(parkCall, ref, [])
    expect(await reread(store, ref.runId)).toMatchObject({ state: 'parked', parkedFor: 'a decision' })
    await store.apply(cancelRun, ref.runId, { by: 'tester' })
    expect(await store.read(pendingApprovals, 9)).toEqual([])
    expect((await reread(store, ref.runId)).state).toBe('cancelled')
    expect(call.threadId).toBe(THREAD)
    await assertInvariants(store)
  })

  test('what had begun and is not come back to when the run ends is in doubt, and listed [actions/no-blind-retry]', async () => {
    const store = await open()
    const { ref, call } = await claimed(store)
    const { id } = wanted(ref.runId, 'allow')
    await store.apply(proposeOwn, ref, wanted(ref.runId, 'allow'))
    await store.apply(startAction, ref, id, NOW)
    await store.apply(finishCall, ref, { ...call, hasActions: true }, { state: 'succeeded' }, [])
    expect(await store.read(openDoubts, 9)).toMatchObject([{ id, error: 'its run ended while it was under way' }])
    expect(viewWholeRun((await store.read(readWholeRun, ref.runId))!).actions).toMatchObject([{ id, tool: 'add' }])
    await assertInvariants(store)
  })
})
