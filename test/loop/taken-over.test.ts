import { describe, expect, test } from 'vitest'

import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { startAction } from '../../src/actions/perform.ts'
import { HoldfastError } from '../../src/base/errors.ts'
import { versionOf } from '../../src/loop/version.ts'
import type { Claim } from '../../src/runs/claim.ts'
import { keepLateReply } from '../../src/runs/finish.ts'
import { findRun, lateResultsOf } from '../../src/runs/run.ts'
import { recordTurn } from '../../src/runs/turn.ts'
import type { Store } from '../../src/store/store.ts'
import { refOf } from '../../src/workers/execute.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { Stage, replied } from '../support/stage.ts'

describe.each(engines)('a loop that was taken over, on $name', (engine) => {
  const open = async () => new Stage(await (await engine.database()).open())

  test('a reply of which nobody knows whether it is stored is not stored again: whoever goes on looks [inbox/effect-once]', async () => {
    const { store } = await open()
    let isLost = true
    const apply: Store['apply'] = async (change, ...args) => {
      const answer = await store.apply(change, ...args)
      if ((change as unknown) !== recordTurn || !isLost) return answer
      isLost = false
      throw new HoldfastError('store/unknown-commit', 'nobody knows')
    }
    const stage = new Stage(Object.assign(Object.create(store) as Store, { apply, read: store.read.bind(store) }))
    stage.replies = [{ calls: [['shout', { entry: 'a' }]] }, { text: 'done' }]
    await stage.send('go')
    const claim = await stage.claim()
    await expect(stage.run(claim)).rejects.toMatchObject({ code: 'store/unknown-commit' })
    await stage.run(await stage.takeOver(claim))
    expect(stage.effects).toEqual(['a'])
    expect(await stage.actions(claim)).toHaveLength(1)
    await assertInvariants(store)
  })

  test('what the model was asked when its worker died is asked again by the taker [inbox/never-lost]', async () => {
    const stage = await open()
    stage.answer = () => Promise.reject(new Error('its worker died'))
    await stage.send('count the beans')
    const claim = await stage.claim()
    await expect(stage.run(claim)).rejects.toThrow('its worker died')
    stage.answer = () => undefined
    stage.replies = [{ text: '12 beans.' }]
    expect(await stage.finished(await stage.takeOver(claim))).toMatchObject({ result: { text: '12 beans.' } })
    expect(stage.asked.at(-1)?.messages).toEqual([{ role: 'user', text: 'count the beans' }])
    await assertInvariants(stage.store)
  })

  test.each([
    { title: 'a reply', long: false },
    { title: 'a summary', long: true },
  ])(
    '$title that comes after its worker was superseded is kept beside the run, with its cost [runs/paid-work-kept] [runs/fenced]',
    async ({ long }) => {
      const stage = await open()
      if (long) stage.contextTokens = 50
      stage.replies = [{ calls: [['look', { entry: 'x'.repeat(long ? 400 : 1) }]] }, { text: 'done' }]
      await stage.send('go')
      const claim = await stage.claim()
      let taken: Claim | undefined
      const late = async () => {
        taken ??= await stage.takeOver(claim)
        return replied('too late', { inputTokens: 7, outputTokens: 5, costMicrousd: 3 })
      }
      if (long) stage.aside = late
      else stage.answer = late
      expect(await stage.run(claim)).toEqual({ kind: 'stopped', why: 'superseded' })
      const { id } = claim.run
      const [before, ...more] = await stage.store.read(lateResultsOf, id)
      const usage = { inputTokens: 7, outputTokens: 5, costMicrousd: 3 }
      expect([before?.outcome, more]).toEqual([{ state: 'superseded', result: { text: 'too late' }, usage }, []])
      // The same once more, whose answer was lost.
      await stage.store.apply(keepLateReply, refOf(claim), { text: 'too late', usage })
      expect(await stage.store.read(lateResultsOf, id)).toHaveLength(1)
      expect((await stage.store.read(findRun, id))?.costMicrousd).toBe(long ? 100 : 0)
      stage.answer = () => undefined
      await stage.finished(taken!)
      await assertInvariants(stage.store)
    },
  )

  test('a worker that was superseded before it acted on a reply leaves that to its taker [runs/fenced] [actions/once]', async () => {
    const stage = await open()
    stage.replies = [{ text: 'done' }]
    await stage.send('go')
    const claim = await stage.claim()
    await stage.propose(claim, 'a')
    const taken = await stage.takeOver(claim)
    expect(await stage.run(claim)).toEqual({ kind: 'stopped', why: 'superseded' })
    expect(stage.effects).toEqual([])
    expect(await stage.actions(claim)).toMatchObject([{ state: 'approved', tries: 0 }])
    await stage.run(taken)
    expect(stage.effects).toEqual(['a'])
    await assertInvariants(stage.store)
  })

  test('a worker that was superseded does not try again what it had begun: its taker does [runs/fenced] [actions/once]', async () => {
    const stage = await open()
    stage.replies = [{ text: 'done' }]
    stage.recover = () => Promise.resolve({ kind: 'never-started' })
    await stage.send('go')
    const claim = await stage.claim()
    const id = await stage.propose(claim, 'a')
    const now = { agent: 'clerk', policy: stage.policy, version: versionOf(stage.tool('append')) }
    await stage.store.apply(startAction, refOf(claim), id, now)
    const taken = await stage.takeOver(claim)
    expect(await stage.run(claim)).toEqual({ kind: 'stopped', why: 'superseded' })
    expect(stage.effects).toEqual([])
    await stage.run(taken)
    expect(stage.effects).toEqual(['a'])
    expect(await stage.actions(claim)).toMatchObject([{ state: 'done', tries: 2 }])
  })

  /** Two writes, of which the first waited for a person; its worker died in the second, and then the first was approved. */
  async function begunBehind(stage: Stage): Promise<Claim> {
    stage.policy = [{ tool: 'append', decision: 'ask' }, { decision: 'allow' }]
    const calls = [
      ['append', { entry: 'asked' }],
      ['shout', { entry: 'begun' }],
    ] as const
    stage.replies = [{ calls }, { text: 'done' }]
    const begun = Promise.withResolvers<void>()
    stage.perform = () => {
      begun.resolve()
      return new Promise(() => {})
    }
    await stage.send('go')
    const claim = await stage.claim()
    void stage.run(claim)
    await begun.promise
    const [approval] = await stage.store.read(pendingApprovals, 1)
    const approve = { kind: 'approve', digest: approval!.digest, by: 'ann', via: 'test' } as const
    await stage.store.apply(decideApproval, approval!.id, approve)
    return stage.takeOver(claim)
  }

  test('what its worker had begun is ended with a cancel, whatever stands before it in its reply [control/stop-means-stopped]', async () => {
    const stage = await open()
    const taken = await begunBehind(stage)
    stage.recover = () => Promise.resolve({ kind: 'in-doubt', error: 'cut off', over: true })
    expect(await stage.run(taken, AbortSignal.abort('cancelled'))).toEqual({ kind: 'stopped', why: 'cancel-requested' })
    expect((await stage.actions(taken)).map(({ state }) => state)).toEqual(['approved', 'in_doubt'])
    await assertInvariants(stage.store)
  })

  test('a worker that has lost its lease looks up nothing that was begun: its taker does [runs/fenced]', async () => {
    const stage = await open()
    const taken = await begunBehind(stage)
    let looks = 0
    stage.recover = () => {
      looks += 1
      return Promise.resolve({ kind: 'in-doubt', error: 'cut off' })
    }
    expect(await stage.run(taken, AbortSignal.abort('lease-lost'))).toEqual({
      kind: 'stopped',
      why: 'cancel-requested',
    })
    expect(looks).toBe(0)
    expect((await stage.actions(taken)).map(({ state }) => state)).toEqual(['approved', 'started'])
    await assertInvariants(stage.store)
  })
})
