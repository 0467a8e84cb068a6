import { describe, expect, test } from 'vitest'

import { approvalsOfRun } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import { startAction } from '../../src/actions/perform.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { versionOf } from '../../src/loop/version.ts'
import { refOf } from '../../src/workers/execute.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { results } from '../support/stage.ts'
import type { Stage } from '../support/stage.ts'
import { answer, strict, waitingIn } from '../decisions/waiting.ts'

const EVIDENCE = [
  {
    title: 'was never started',
    set: (stage: Stage) => (stage.recover = () => Promise.resolve({ kind: 'never-started' })),
    told: 'failed: the tool that was approved was replaced before it was done',
  },
  {
    title: 'did not happen, as its probe says',
    set: (stage: Stage) => (stage.probe = () => Promise.resolve({ kind: 'failed', error: 'it is not there' })),
    told: 'failed: the tool that was approved was replaced before it was done',
  },
  {
    title: 'was cut off, and honours its key',
    set: (stage: Stage) => {
      stage.idempotent = true
      stage.recover = () => Promise.resolve({ kind: 'in-doubt', error: 'cut off' })
    },
    told: 'cut off; it was not tried again: the tool that was approved was replaced',
  },
]

describe.each(engines)('a write that was approved and begun, on $name', (engine) => {
  describe.each(EVIDENCE)('and $title', ({ set, told }) => {
    /** Its worker died after the start was recorded, with which the approval was used up. */
    async function begun() {
      const world = await strict(engine)
      const { stage, store } = world
      set(stage)
      const { runId, approvals } = await waitingIn(world, ['a'])
      const [approval] = approvals
      await store.apply(decideApproval, approval!.id, answer('approve', approval!.digest))
      const claim = await stage.claim()
      const now = { agent: 'clerk', policy: [], version: versionOf(stage.tool('append')) }
      const start = await store.apply(startAction, refOf(claim), approval!.actionId, now)
      expect(start).toMatchObject({ kind: 'started' })
      expect(await store.read(approvalsOfRun, runId)).toMatchObject([{ state: 'consumed' }])
      return { ...world, claim }
    }

    test('is not done by another tool [approvals/bound]', async () => {
      const { stage, store, claim } = await begun()
      stage.extra = [{ ...stage.tool('append'), definition: { command: ['another'] } }]
      await stage.finished(await stage.takeOver(claim))
      expect(stage.effects).toEqual([])
      expect(results(stage.asked.at(-1)!)).toEqual([expect.stringContaining(told)])
      await assertInvariants(store)
    })

    test('is done by the same one, however late', async () => {
      const { stage, store, clock, claim } = await begun()
      clock.step(LIMITS.approvalMs)
      await stage.finished(await stage.takeOver(claim))
      expect(stage.effects).toEqual(['a'])
      await assertInvariants(store)
    })
  })

  describe('and is to be run again, as a person says', () => {
    async function doubted() {
      const world = await strict(engine)
      const { stage, store } = world
      stage.doubts = 'park'
      stage.perform = () => Promise.reject(new Error('the connection was cut'))
      const { approvals } = await waitingIn(world, ['a'])
      await store.apply(decideApproval, approvals[0]!.id, answer('approve', approvals[0]!.digest))
      expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
      stage.perform = () => Promise.resolve({ kind: 'done', result: 'done' })
      const [doubt] = await store.read(openDoubts, 10)
      await store.apply(resolveDoubt, doubt!.id, { kind: 'run-again', by: 'ann' })
      return world
    }

    test('is not done by another tool [approvals/bound]', async () => {
      const { stage, store } = await doubted()
      stage.extra = [{ ...stage.tool('append'), definition: { command: ['another'] } }]
      await stage.finished(await stage.claim())
      expect(stage.effects).toEqual([])
      expect(results(stage.asked.at(-1)!)).toEqual(['denied: its tool is not the one any more that was approved'])
      await assertInvariants(store)
    })

    test('is done by the same one, however late', async () => {
      const { stage, store, clock } = await doubted()
      clock.step(LIMITS.approvalMs)
      await stage.finished(await stage.claim())
      expect(stage.effects).toEqual(['a'])
      await assertInvariants(store)
    })
  })
})
