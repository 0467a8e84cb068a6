import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { findAction } from '../../src/actions/action.ts'
import type { Action } from '../../src/actions/action.ts'
import type { PolicyRule } from '../../src/actions/policy.ts'
import { restartAction, settleAction, startAction } from '../../src/actions/perform.ts'
import { systemClock as clock } from '../../src/base/clock.ts'
import {
  newActionId,
  newAttemptId,
  newMessageId,
  newRunId,
  newThreadId,
  systemRandomness as random,
} from '../../src/base/ids.ts'
import type { RunId } from '../../src/base/ids.ts'
import { HoldfastError } from '../../src/base/errors.ts'
import { Stopped, settleActions } from '../../src/loop/act.ts'
import type { ActionFolders } from '../../src/loop/act.ts'
import type { Tool, ToolOutcome } from '../../src/loop/ports.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { takeOverRun } from '../../src/runs/recover.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { recordTurn } from '../../src/runs/turn.ts'
import type { Store } from '../../src/store/store.ts'
import { commandTool } from '../../src/tools/command-tool.ts'
import { foldersIn } from '../../src/workers/agents/execute-agent.ts'
import { wasElsewhere } from '../../src/workers/rivals.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LEASE_MS, addWorker } from '../support/world.ts'

const nothing = { inputTokens: 0, outputTokens: 0, costMicrousd: 0 }
const decision = { kind: 'allow', by: 'tester', via: 'default' } as const
const policy: readonly PolicyRule[] = [{ decision: 'allow' }]

const toolOf = (parts: Partial<Tool>): Tool => ({
  name: 'tool',
  description: 'tool',
  inputSchema: {},
  effect: 'write',
  repeat: 'once',
  timeoutMs: 60_000,
  idempotent: false,
  identity: (input) => input,
  validate: (input) => ({ input }),
  perform: () => Promise.resolve({ kind: 'done', result: 'done' }),
  ...parts,
})

/** A reply of a model with these inputs for one tool, recorded, and an attempt that is to see to them. */
class Reply {
  readonly store: Store
  readonly tool: Tool
  attempt: AttemptRef
  readonly actions: readonly Action[]
  stop = new AbortController()
  isSeen = true
  readonly policy = [...policy]
  prepare: () => Promise<void> = () => Promise.resolve()
  /** Instead of folders that nobody looks into. */
  folders: ActionFolders | undefined

  private constructor(store: Store, tool: Tool, attempt: AttemptRef, actions: readonly Action[]) {
    this.store = store
    this.tool = tool
    this.attempt = attempt
    this.actions = actions
  }

  static async with(store: Store, tool: Tool, inputs: readonly string[] = ['a']): Promise<Reply> {
    const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId: newThreadId(random) }
    await store.apply(sendMessage, { ...ids, agent: 'clerk', text: 'go', key: 'go' })
    const [workerId, mark] = [await addWorker(store), random.hex(16)]
    const claimant = { workerId, leaseMs: LEASE_MS, limits: {}, agents: ['clerk'] }
    const claim = await store.apply(claimRun, { ...claimant, attempt: { id: newAttemptId(random), mark } })
    const attempt = { id: claim!.attempt.id, runId: claim!.run.id, fence: claim!.run.fence }
    const actions = inputs.map((input, index) => ({
      id: newActionId(random),
      mark: random.hex(15),
      callId: `call_${index}`,
      tool: tool.name,
      effect: tool.effect,
      repeats: tool.repeat,
      input,
      signature: `signature of ${input}`,
      verdict: decision,
    }))
    const turn = { generation: 1, shown: [], reply: { text: '', toolCalls: [] }, actions, usage: nothing }
    const recorded = await store.apply(recordTurn, attempt, turn)
    if (recorded.kind !== 'recorded') throw new Error('it was not recorded')
    return new Reply(store, tool, attempt, recorded.actions)
  }

  /** As a worker left it that died after the intent. */
  async begun(): Promise<this> {
    for (const { id } of this.actions)
      await this.store.apply(startAction, this.attempt, id, { agent: 'clerk', policy, version: '' })
    return this
  }

  /** By a worker that cannot look at the machine of the one before. */
  async takenOver(mark: string): Promise<this> {
    const taker = { workerId: await addWorker(this.store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    const { run, attempt } = (await this.store.apply(takeOverRun, { ...this.attempt, mark }, 'owner-dead', taker))!
    this.attempt = { id: attempt.id, runId: run.id, fence: run.fence }
    return this
  }

  async settle(store = this.store): Promise<readonly Action[]> {
    const ports = {
      store,
      clock,
      tools: new Map([[this.tool.name, this.tool]]),
      folders: this.folders ?? { path: () => '/nowhere', prepare: this.prepare, isThere: () => this.isSeen },
      wasElsewhere: (runId: RunId) => wasElsewhere(store, runId),
      onAction: () => {},
      agent: 'clerk',
      policy: this.policy,
    }
    const now = await Promise.all(this.actions.map(({ id }) => this.store.read(findAction, id)))
    const settled = await settleActions(ports, this.attempt, now as Action[], this.stop.signal)
    await assertInvariants(this.store)
    return settled
  }
}

describe.each(engines)('acting on $name', (engine) => {
  const open = async () => (await engine.database()).open()

  test('a read that may not begin any more does not leave one behind that is still being stopped [control/stop-means-stopped]', async () => {
    const store = await open()
    let over = false
    const cancelled = Promise.withResolvers<void>()
    const tool = toolOf({
      effect: 'read',
      repeat: 'each',
      perform: async () => {
        await store.apply(cancelRun, reply.attempt.runId, { by: 'tester' })
        cancelled.resolve()
        await new Promise((resolve) => setTimeout(resolve, 100))
        over = true
        return { kind: 'in-doubt', error: 'cancelled' }
      },
    })
    const reply: Reply = await Reply.with(store, tool, ['first', 'second'])
    let prepared = 0
    reply.prepare = () => (++prepared === 1 ? Promise.resolve() : cancelled.promise)
    await expect(reply.settle()).rejects.toThrow(Stopped)
    expect({ prepared, over }).toEqual({ prepared: 2, over: true })
  })

  test('a read that was cut off has failed; there is nothing to doubt', async () => {
    const perform: Tool['perform'] = () => Promise.resolve({ kind: 'in-doubt', error: 'timed out after 1s' })
    const reply = await Reply.with(await open(), toolOf({ effect: 'read', repeat: 'each', perform }))
    expect(await reply.settle()).toMatchObject([{ state: 'failed', error: 'timed out after 1s' }])
  })

  test('a read whose worker lost its lease is left to the taker, which performs it again', async () => {
    let tries = 0
    const tool = toolOf({
      effect: 'read',
      repeat: 'each',
      perform: () => {
        if (++tries > 1) return Promise.resolve({ kind: 'done', result: 'seen' })
        reply.stop.abort('lease-lost')
        return Promise.resolve({ kind: 'in-doubt', error: 'stopped' })
      },
    })
    const reply: Reply = await Reply.with(await open(), tool)
    await expect(reply.settle()).rejects.toThrow(Stopped)
    reply.stop = new AbortController()
    expect(await reply.settle()).toMatchObject([{ state: 'done', tries: 2 }])
  })

  test.each([
    { answer: { kind: 'done', result: 'there' }, left: { state: 'done', settledBy: 'its probe' } },
    { answer: { kind: 'failed', error: 'not there' }, left: { state: 'failed', settledBy: 'its probe' } },
    {
      answer: { kind: 'unknown' },
      left: { state: 'in_doubt', error: 'timed out after 1s; its probe does not know' },
    },
    { answer: undefined, left: { state: 'in_doubt', error: 'timed out after 1s; its probe failed: broken' } },
  ] as const)(
    'a write that ran out of time is $left.state when its probe says $answer.kind [actions/no-blind-retry]',
    async ({ answer, left }) => {
      const tool = toolOf({
        perform: () => Promise.resolve({ kind: 'in-doubt', error: 'timed out after 1s' }),
        probe: () => (answer === undefined ? Promise.reject(new Error('broken')) : Promise.resolve(answer)),
      })
      expect(await (await Reply.with(await open(), tool)).settle()).toMatchObject([left])
    },
  )

  test('a probe that breaks after a crash leaves the doubt, and the turn goes on [actions/no-blind-retry]', async () => {
    const tool = toolOf({
      recover: () => Promise.resolve({ kind: 'in-doubt', error: 'cut off' }),
      probe: () => Promise.reject(new Error('broken')),
    })
    const reply = await (await Reply.with(await open(), tool)).begun()
    expect(await reply.settle()).toMatchObject([{ state: 'in_doubt', error: 'cut off; its probe failed: broken' }])
  })

  test('what cannot be seen may be under way elsewhere: a probe that says "not done" settles nothing [actions/no-blind-retry]', async () => {
    const tool = toolOf({
      recover: () => Promise.reject(new Error('there is nothing to look at')),
      probe: () => Promise.resolve({ kind: 'failed', error: 'not done' }),
      perform: () => Promise.reject(new Error('it must not be performed')),
    })
    const reply = await (await Reply.with(await open(), tool)).begun()
    reply.isSeen = false
    expect(await reply.settle()).toMatchObject([{ state: 'in_doubt', tries: 1 }])
  })

  describe('a write was begun on another machine, with a home folder at the same path', () => {
    /** What is done twice leaves a proof. */
    async function begunElsewhere() {
      const place = temporaryFolder()
      const [here, proof] = [foldersIn(join(place, 'home')), join(place, 'performed')]
      const folders: ActionFolders = {
        path: (mark) => here.path(mark, null),
        prepare: (mark) => here.prepare(mark),
        isThere: (mark) => here.isThere(mark, null),
      }
      const definition = {
        effect: 'write',
        description: 'tool',
        input: {},
        repeat: 'once',
        command: ['touch', proof],
        probe: ['echo', '{"outcome":"not_done"}'],
        idempotent: false,
        timeoutMs: 60_000,
      } as const
      const tool = commandTool('tool', definition, { cwd: '/', env: process.env })
      const reply = await (await Reply.with(await open(), tool)).begun()
      reply.folders = folders
      return { reply, folders, isDoneTwice: () => existsSync(proof) }
    }

    test('a worker that dies after it asked the probe leaves no proof here that it never started [actions/no-blind-retry]', async () => {
      const { reply, isDoneTwice } = await begunElsewhere()
      const { store } = reply
      const apply: Store['apply'] = (change, ...args) =>
        (change as unknown) === settleAction ? Promise.reject(new Error('killed')) : store.apply(change, ...args)
      const dying = Object.assign(Object.create(store) as Store, { apply, read: store.read.bind(store) })
      await expect(reply.settle(dying)).rejects.toThrow('killed')
      expect(await reply.settle()).toMatchObject([{ state: 'in_doubt', tries: 1 }])
      expect(isDoneTwice()).toBe(false)
    })

    test('a folder that was made here for it, before the run went there, is no proof that it never started [actions/no-blind-retry]', async () => {
      const { reply, folders, isDoneTwice } = await begunElsewhere()
      await folders.prepare(`${reply.actions[0]!.mark}01`)
      await reply.takenOver(random.hex(16))
      expect(await reply.settle()).toMatchObject([{ state: 'in_doubt', tries: 1 }])
      expect(isDoneTwice()).toBe(false)
    })
  })

  test('a second try has the key of the first, by which its receiver knows it [actions/once]', async () => {
    const keys: string[] = []
    const tool = toolOf({
      idempotent: true,
      recover: () => Promise.resolve({ kind: 'in-doubt', error: 'cut off' }),
      perform: (_, { key }) => {
        keys.push(key)
        return Promise.resolve({ kind: 'done', result: 'done' })
      },
    })
    const reply = await (await Reply.with(await open(), tool, ['a', 'b'])).begun()
    expect(await reply.settle()).toMatchObject([
      { state: 'done', tries: 2 },
      { state: 'done', tries: 2 },
    ])
    expect(keys).toEqual(reply.actions.map(({ id }) => id))
  })

  test('a second try that did not begin does not settle what the first may have done [actions/no-blind-retry]', async () => {
    const tool = toolOf({
      idempotent: true,
      recover: () => Promise.resolve({ kind: 'in-doubt', error: 'cut off' }),
      perform: () => Promise.resolve({ kind: 'failed', error: 'no such program', unbegun: true }),
    })
    const reply = await (await Reply.with(await open(), tool)).begun()
    expect(await reply.settle()).toMatchObject([
      { state: 'in_doubt', error: 'cut off; another try: no such program', tries: 2 },
    ])
  })

  test('a try that another one has followed can settle nothing: the last one says what became of it [runs/fenced]', async () => {
    const reply = await (await Reply.with(await open(), toolOf({}))).begun()
    const { store, attempt } = reply
    const first = (await store.read(findAction, reply.actions[0]!.id))!
    const second = (await store.apply(restartAction, attempt, first, { agent: 'clerk', policy, version: '' }))!
    expect(await store.apply(settleAction, first, { state: 'failed', error: 'cut off', by: 'its tool' })).toMatchObject(
      {
        state: 'started',
        tries: 2,
      },
    )
    expect(await store.apply(settleAction, second, { state: 'done', result: 'done', by: 'its tool' })).toMatchObject({
      state: 'done',
    })
    await assertInvariants(store)
  })

  test.each([
    { left: { kind: 'never-started' }, idempotent: false, state: 'failed' },
    { left: { kind: 'in-doubt', error: 'cut off' }, idempotent: true, state: 'in_doubt' },
  ] as const)(
    'cancelled before it could be tried again, $left.kind: it is $state, and not left open [actions/no-blind-retry]',
    async ({ left, idempotent, state }) => {
      const perform = () => Promise.reject(new Error('it must not be performed'))
      const store = await open()
      const tool = toolOf({ idempotent, perform, recover: () => Promise.resolve(left) })
      const reply = await (await Reply.with(store, tool)).begun()
      await store.apply(cancelRun, reply.attempt.runId, { by: 'tester' })
      expect(await reply.settle()).toMatchObject([{ state, tries: 1 }])
    },
  )

  test('what a tool has done is kept while the disk is full, and recorded once there is room [runs/paid-work-kept]', async () => {
    let [performed, refused] = [0, 0]
    const perform = () => Promise.resolve({ kind: 'done', result: ++performed } as const)
    const reply = await Reply.with(await open(), toolOf({ perform }))
    const { store } = reply
    const full: Store['apply'] = (change, ...args) =>
      (change as unknown) === settleAction && ++refused <= 2
        ? Promise.reject(new HoldfastError('store/full', 'the disk is full'))
        : store.apply(change, ...args)
    const troubled = Object.assign(Object.create(store) as Store, { apply: full, read: store.read.bind(store) })
    expect(await reply.settle(troubled)).toMatchObject([{ state: 'done', result: 1, tries: 1 }])
    expect({ performed, refused }).toEqual({ performed: 1, refused: 3 })
  })

  test('what has not begun when the time of the turn is over is not begun [R3]', async () => {
    const tool = toolOf({
      perform: () => {
        reply.stop.abort('timed out after 1s')
        return Promise.resolve({ kind: 'in-doubt', error: 'timed out after 1s' })
      },
    })
    const reply: Reply = await Reply.with(await open(), tool, ['a', 'b'])
    await expect(reply.settle()).rejects.toThrow(Stopped)
    const [first, second] = await Promise.all(reply.actions.map(({ id }) => reply.store.read(findAction, id)))
    expect([first?.state, second?.state, second?.tries]).toEqual(['in_doubt', 'approved', 0])
  })

  const cutOff = { kind: 'in-doubt', error: 'cut off', over: true } as const

  /** It honours its key. Its first try ends like this, and every other one is done. */
  async function keyed(first: ToolOutcome, more: Partial<Tool> = {}) {
    const seen = { performed: 0 }
    const perform = (): Promise<ToolOutcome> => {
      if (++seen.performed > 1) return Promise.resolve({ kind: 'done', result: 'done' })
      reply.afterFirst()
      return Promise.resolve(first)
    }
    const reply = Object.assign(await Reply.with(await open(), toolOf({ idempotent: true, perform, ...more })), {
      afterFirst: () => {},
    })
    return { reply, seen }
  }

  test.each([
    { over: true, performed: 2, state: 'done' },
    { over: false, performed: 1, state: 'in_doubt' },
    { over: undefined, performed: 1, state: 'in_doubt' },
  ])(
    'a write that honours its key and was cut off, proven over: $over, is $state after $performed tries [actions/once] [actions/no-blind-retry]',
    async ({ over, performed, state }) => {
      const { reply, seen } = await keyed({
        kind: 'in-doubt',
        error: 'cut off',
        ...(over === undefined ? {} : { over }),
      })
      expect(await reply.settle()).toMatchObject([{ state, tries: performed }])
      expect(seen).toEqual({ performed })
    },
  )

  test('one that throws has said nothing of what it started: it is not done again by its key [actions/once]', async () => {
    const perform = () => Promise.reject(new Error('too many open files'))
    const reply = await Reply.with(await open(), toolOf({ idempotent: true, perform }))
    expect(await reply.settle()).toMatchObject([{ state: 'in_doubt', tries: 1, error: 'too many open files' }])
  })

  test.each([
    { what: 'that cannot be looked for', more: { recover: () => Promise.reject(new Error('too many open files')) } },
    { what: 'that goes on in this process', more: { goesOn: () => Promise.resolve(true) } },
  ])(
    'a write that was cut off by a crash, and $what, is not done again by its key [actions/once]',
    async ({ more }) => {
      const probe: Tool['probe'] = () => Promise.resolve({ kind: 'failed', error: 'not done' })
      const { reply, seen } = await keyed(cutOff, { ...more, probe })
      expect(await (await reply.begun()).settle()).toMatchObject([{ state: 'in_doubt', tries: 1 }])
      expect(seen).toEqual({ performed: 0 })
    },
  )

  test('before it is done again by its key its probe is asked [actions/once]', async () => {
    const { reply, seen } = await keyed(cutOff, { probe: () => Promise.resolve({ kind: 'done', result: 'there' }) })
    expect(await reply.settle()).toMatchObject([{ state: 'done', result: 'there', settledBy: 'its probe' }])
    expect(seen).toEqual({ performed: 1 })
  })

  test('a deny that has come meanwhile wins over a second try: the first stays in doubt', async () => {
    const { reply, seen } = await keyed(cutOff)
    reply.afterFirst = () => reply.policy.push({ tool: 'tool', decision: 'deny' })
    expect(await reply.settle()).toMatchObject([
      { state: 'in_doubt', tries: 1, error: expect.stringContaining('it was not tried again: denied by') as string },
    ])
    expect(seen).toEqual({ performed: 1 })
  })

  test('where there is no room for a second try the doubt of the first is kept [runs/paid-work-kept]', async () => {
    const { reply } = await keyed(cutOff)
    let prepared = 0
    reply.prepare = () => (++prepared === 1 ? Promise.resolve() : Promise.reject(new Error('the disk is full')))
    const error = 'cut off; it could not be tried again: the disk is full'
    expect(await reply.settle()).toMatchObject([{ state: 'in_doubt', tries: 1, error }])
  })

  test.each(['store/full', 'store/unknown-commit'])(
    'a second try whose intent meets %s is made once, when that has passed [actions/once]',
    async (code) => {
      const { reply, seen } = await keyed(cutOff)
      const { store } = reply
      let troubles = 0
      const apply: Store['apply'] = async (change, ...args) => {
        if ((change as unknown) !== restartAction || ++troubles > 1) return store.apply(change, ...args)
        if (code === 'store/unknown-commit') await store.apply(change, ...args)
        throw new HoldfastError(code, 'a trouble that passes')
      }
      const troubled = Object.assign(Object.create(store) as Store, { apply, read: store.read.bind(store) })
      expect(await reply.settle(troubled)).toMatchObject([{ state: 'done', tries: 2 }])
      expect(seen).toEqual({ performed: 2 })
    },
  )

  test('one whose worker lost its lease is left to the taker, and that is the same worker perhaps [actions/once]', async () => {
    const { reply, seen } = await keyed(cutOff)
    reply.afterFirst = () => reply.stop.abort('lease-lost')
    await expect(reply.settle()).rejects.toThrow(Stopped)
    reply.stop = new AbortController()
    expect(await reply.settle()).toMatchObject([{ state: 'done', tries: 2 }])
    expect(seen).toEqual({ performed: 2 })
  })
})
