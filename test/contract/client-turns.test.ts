import { describe, expect, test } from 'vitest'

import { actionsOfRun } from '../../src/actions/action.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { newAttemptId, newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { beginAnew, takeForCommand } from '../../src/runs/command-turn.ts'
import type { ToldTurn } from '../../src/runs/command-turn.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { lateResultsOf } from '../../src/runs/run.ts'
import type { ClientRequest } from '../../src/runs/run.ts'
import { keptSession } from '../../src/sessions/kept.ts'
import type { Store } from '../../src/store/store.ts'
import { entriesOfRun } from '../../src/threads/conversation.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LEASE_MS, addWorker, reread } from '../support/world.ts'

const THREAD = 'conversation' as ThreadId
const KEPT = { threadId: THREAD, generation: 1, agent: 'coder' }

const aTurn = (more: Partial<ClientRequest>) => {
  const client = { name: 'claude', vendor: 'anthropic', ...more } as const
  return { kind: 'command', argv: ['claude'], cwd: '/', input: 'hello', client } as const
}

/** A message to the agent, taken by a turn of its client. */
async function atWork(store: Store, request: ReturnType<typeof aTurn>, text = 'hello') {
  const messageId = newMessageId(random)
  const sending = { messageId, key: messageId, runId: newRunId(random), threadId: THREAD, agent: 'coder', text }
  await store.apply(sendMessage, sending)
  const ref = await claimed(store)
  await store.apply(takeForCommand, ref, [{ messageId, text }], request)
  return ref
}

async function claimed(store: Store) {
  const claim = await store.apply(claimRun, {
    workerId: await addWorker(store),
    leaseMs: LEASE_MS,
    limits: {},
    attempt: { id: newAttemptId(random), mark: random.hex(16) },
    agents: ['coder'],
  })
  return { id: claim!.attempt.id, runId: claim!.run.id, fence: claim!.run.fence }
}

const told = (more: Partial<ToldTurn> = {}): ToldTurn => ({
  client: 'claude',
  session: { id: 'one', totals: { costUsd: 2 } },
  isOver: false,
  steps: [
    {
      text: 'a',
      calls: [
        { id: '1', tool: 'Bash', effect: 'write', input: {}, state: 'done', result: 'x\0y' },
        { id: '2', tool: 'Read', effect: 'read', input: {}, state: 'open' },
        { id: '3', tool: 'Bash', effect: 'write', input: {}, state: 'open' },
        { id: '4', tool: 'Write', effect: 'write', input: 'w'.repeat(100_000), state: 'refused', error: 'no' },
      ],
    },
  ],
  ...more,
})

describe.each(engines)('turns of clients on $name', (engine) => {
  const open = async () => (await engine.database()).open()

  test('the session that we name is kept before its client begins, whatever becomes of the run', async () => {
    const store = await open()
    const ref = await atWork(store, aTurn({ session: 'one', isNew: true }))
    expect(await store.read(keptSession, KEPT)).toEqual({ client: 'claude', sessionId: 'one', totals: {} })
    await store.apply(finishRun, ref, { state: 'failed', code: 'lost', error: 'disowned' })
    expect(await store.read(keptSession, KEPT)).toMatchObject({ sessionId: 'one' })
    await assertInvariants(store)
  })

  test('a session whose client could not be started is not there to go on with', async () => {
    const store = await open()
    const ref = await atWork(store, aTurn({ session: 'one', isNew: true }))
    const nothing = { client: 'claude', steps: [], isOver: false, neverBegun: 'one' } as const
    await store.apply(finishRun, ref, { state: 'failed', code: 'spawn', error: 'not found', told: nothing })
    expect(await store.read(keptSession, KEPT)).toBeUndefined()
  })

  test('the end of a turn records what was told: the session with its totals, steps, and each call as what its client says', async () => {
    const store = await open()
    const ref = await atWork(store, aTurn({ session: 'one', isNew: true }))
    const usage = { inputTokens: 1, outputTokens: 2, costMicrousd: 3 }
    await store.apply(finishRun, ref, { state: 'succeeded', reply: 'b', usage, told: told() })
    expect(await store.read(keptSession, KEPT)).toMatchObject({ sessionId: 'one', totals: { costUsd: 2 } })
    const actions = await store.read(actionsOfRun, ref.runId)
    expect(actions.map(({ tool, state }) => `${tool} ${state}`)).toEqual([
      'Bash done',
      'Read failed',
      'Bash in_doubt',
      'Write denied',
    ])
    expect(JSON.stringify(actions[3]?.input).length).toBeLessThan(10_000)
    const entries = await store.read(entriesOfRun, ref.runId)
    expect(entries.map(({ kind, inputTokens }) => [kind, inputTokens])).toEqual([
      ['user', 0],
      ['assistant', 0],
      ['assistant', 1],
    ])
    await assertInvariants(store)
  })

  test('of a client that came to its end, what it did not carry out did not happen', async () => {
    const store = await open()
    const ref = await atWork(store, aTurn({ session: 'one', isNew: true }))
    await store.apply(finishRun, ref, { state: 'succeeded', reply: 'b', told: told({ isOver: true }) })
    const actions = await store.read(actionsOfRun, ref.runId)
    expect(actions.map(({ state }) => state)).toEqual(['done', 'failed', 'failed', 'denied'])
  })

  test('a turn that was cancelled keeps its session and its steps, and says nothing', async () => {
    const store = await open()
    const ref = await atWork(store, aTurn({ session: 'one', isNew: true }))
    await store.apply(cancelRun, ref.runId, { by: 'tester', reason: 'a test' })
    await store.apply(finishRun, ref, { state: 'succeeded', reply: 'b', told: told() })
    expect(await reread(store, ref.runId)).toMatchObject({ state: 'cancelled' })
    expect(await store.read(keptSession, KEPT)).toMatchObject({ totals: { costUsd: 2 } })
    expect((await store.read(entriesOfRun, ref.runId)).map(({ body }) => body['text'])).toEqual(['hello', 'a'])
    expect((await store.read(lateResultsOf, ref.runId))[0]?.outcome).not.toHaveProperty('told')
    await assertInvariants(store)
  })

  test('a session that is gone is begun anew once, by the same run, with what was said before', async () => {
    const store = await open()
    const before = await atWork(store, aTurn({ session: 'old' }), 'first')
    await store.apply(finishRun, before, { state: 'succeeded', reply: 'yes', told: told({ steps: [] }) })
    const request = aTurn({ session: 'old', orElse: { argv: ['claude', 'anew'], session: 'new' } })
    const ref = await atWork(store, request)
    expect(await store.apply(beginAnew, ref)).toBe(true)
    // Its answer was lost, and it is asked again.
    expect(await store.apply(beginAnew, ref)).toBe(true)
    expect(await store.read(keptSession, KEPT)).toMatchObject({ sessionId: 'new', totals: {} })
    const { state, request: anew } = await reread(store, ref.runId)
    expect(state).toBe('queued')
    expect(anew).toMatchObject({
      argv: ['claude', 'anew'],
      isTurn: true,
      client: { session: 'new', insteadOf: 'old', isNew: true },
    })
    expect(anew).not.toHaveProperty('client.orElse')
    expect((anew as { input: string }).input).toMatch(/> first\n\nYou said:\n> yes\n\nWhat you are told now:\n\nhello$/)
    expect(await store.apply(beginAnew, await claimed(store))).toBe(false)
    await assertInvariants(store)
  })

  test('a cancelled turn begins nothing anew', async () => {
    const store = await open()
    const request = aTurn({ session: 'old', orElse: { argv: ['claude', 'anew'], session: 'new' } })
    const ref = await atWork(store, request)
    await store.apply(cancelRun, ref.runId, { by: 'tester', reason: 'a test' })
    expect(await store.apply(beginAnew, ref)).toBe(false)
    expect(await reread(store, ref.runId)).toMatchObject({ state: 'running' })
    await assertInvariants(store)
  })
})
