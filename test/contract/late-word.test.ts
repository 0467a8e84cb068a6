import { describe, expect, test } from 'vitest'

import type { Action } from '../../src/actions/action.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import { settleAction, startAction } from '../../src/actions/perform.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { versionOf } from '../../src/loop/version.ts'
import { refOf } from '../../src/workers/execute.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { Stage, results } from '../support/stage.ts'

const DONE = { state: 'done', result: 'done by the first', by: 'its tool' } as const

describe.each(engines)('a write is to be done again, and who had begun it says that it is done, on $name', (engine) => {
  const open = async () => {
    const stage = new Stage(await (await engine.database()).open())
    stage.doubts = 'park'
    stage.replies = [{ calls: [['append', { entry: 'a' }]] }, { text: 'Done.' }]
    return stage
  }

  /** A person has said that it did not happen and is to be done; it is as it was in doubt. */
  async function toBeDoneAgain(stage: Stage): Promise<Action> {
    const { store } = stage
    stage.perform = () => Promise.reject(new Error('the connection was cut'))
    await stage.send('go', stage.threadId)
    expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
    const [doubt] = await store.read(openDoubts, 10)
    stage.perform = (entry) => Promise.resolve({ kind: 'done', result: `did ${entry}` })
    await store.apply(resolveDoubt, doubt!.id, { kind: 'run-again', by: 'ann' })
    return doubt!
  }

  const told = (stage: Stage) => results(stage.asked.at(-1)!)

  test('after somebody said that it did not happen: it counts when the run is over [runs/paid-work-kept]', async () => {
    const stage = await open()
    const { store } = stage
    stage.perform = () => Promise.reject(new Error('the connection was cut'))
    await stage.send('go', stage.threadId)
    expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
    const [doubt] = await store.read(openDoubts, 10)
    await store.apply(resolveDoubt, doubt!.id, { kind: 'did-not-happen', by: 'ann' })
    expect(await store.apply(settleAction, doubt!, DONE)).toMatchObject({ state: 'failed' })
    await stage.finished(await stage.claim())
    expect(await store.apply(settleAction, doubt!, DONE)).toMatchObject({ state: 'done', settledBy: 'its tool' })
    await assertInvariants(store)
  })

  test('while its probe is asked: it is not done again, and its run goes on with that [actions/once]', async () => {
    const stage = await open()
    const doubt = await toBeDoneAgain(stage)
    stage.probe = async () => {
      await stage.store.apply(settleAction, doubt, DONE)
      return { kind: 'unknown' }
    }
    await stage.finished(await stage.claim())
    expect(told(stage)).toEqual(['done by the first'])
    expect(stage.effects).toEqual([])
    await assertInvariants(stage.store)
  })

  test('while it is looked for who could still do it: the model is told what was done [actions/once]', async () => {
    const stage = await open()
    const doubt = await toBeDoneAgain(stage)
    stage.rival = async () => {
      await stage.store.apply(settleAction, doubt, DONE)
      return 'a worker could still do it'
    }
    await stage.finished(await stage.claim())
    expect(told(stage)).toEqual(['done by the first'])
    expect(stage.effects).toEqual([])
    await assertInvariants(stage.store)
  })

  test('at the very moment when it begins: one of the two counts, and its run goes on [actions/once]', async () => {
    const stage = await open()
    const { store } = stage
    for (let round = 0; round < 10; round++) {
      stage.threadId = `thread ${round}` as ThreadId
      const doubt = await toBeDoneAgain(stage)
      const claim = await stage.claim()
      const now = { agent: 'clerk', policy: stage.policy, version: versionOf(stage.tool('append')) }
      const start = () => store.apply(startAction, refOf(claim), doubt.id, now)
      const word = () => store.apply(settleAction, doubt, DONE)
      const first = round % 2 === 0 ? undefined : word()
      const [started] = await Promise.all([start(), first ?? word()])
      const [action] = await stage.actions(claim)
      const isDone = action?.state === 'done'
      expect(started).toMatchObject({
        kind: isDone ? 'settled' : 'started',
        action: isDone ? { state: 'done', tries: 1 } : { state: 'started', tries: 2 },
      })
    }
    await assertInvariants(store)
  })

  test.each(['its probe', 'its tool'] as const)(
    'after an identical call was done: both were, as %s says, and its run goes on [actions/once]',
    async (by) => {
      const stage = await open()
      const { store } = stage
      const result = 'done by the first'
      stage.replies = [{ calls: ['a', 'c', 'a'].map((entry) => ['append', { entry }]) }, { text: 'Done.' }]
      const isDoneAgain = () => stage.effects.length === 2
      let isCut = false
      stage.perform = async (entry) => {
        if (!isCut) throw new Error(`the connection was cut: ${(isCut = true)}`)
        const [doubt] = entry === 'c' ? await store.read(openDoubts, 10) : []
        if (doubt !== undefined) await store.apply(resolveDoubt, doubt.id, { kind: 'run-again', by: 'ann' })
        return { kind: 'done', result: `did ${entry}` }
      }
      stage.probe = () =>
        Promise.resolve(by === 'its probe' && isDoneAgain() ? { kind: 'done', result } : { kind: 'unknown' })
      stage.rival = async () => {
        const [first] = await stage.actions(claim)
        if (by === 'its tool') await store.apply(settleAction, first!, DONE)
        return undefined
      }
      await stage.send('go')
      const claim = await stage.claim()
      await stage.finished(claim)
      expect(told(stage)).toEqual([result, 'did c', 'did a'])
      expect(stage.effects).toEqual(['c', 'a'])
      expect(await stage.actions(claim)).toMatchObject([
        { state: 'done', settledBy: by },
        {},
        { state: 'done', again: null },
      ])
      await assertInvariants(store)
    },
  )
})
