import { describe, expect, test } from 'vitest'

import { HoldfastError } from '../../src/base/errors.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { parkRun, resumeRun } from '../../src/runs/park.ts'
import { recordTurn } from '../../src/runs/turn.ts'
import type { Store } from '../../src/store/store.ts'
import { entriesOfRun } from '../../src/threads/conversation.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { Stage, results, usage } from '../support/stage.ts'
import type { StagedReply } from '../support/stage.ts'
import { reread } from '../support/world.ts'

const look = (entry: string): StagedReply => ({ calls: [['look', { entry }]] })
const append = (entry: string): StagedReply => ({ calls: [['append', { entry }]] })
const many = (count: number, reply: (index: number) => StagedReply) =>
  Array.from({ length: count }, (_, index) => reply(index))

describe.each(engines)('limits of a run on $name', (engine) => {
  const open = async () => new Stage(await (await engine.database()).open())

  const begun = async (stage: Stage) => {
    await stage.send('go')
    return stage.claim()
  }

  test('tokens: the reply that crosses is recorded with its cost, and not acted on [T8]', async () => {
    const stage = await open()
    stage.limits = { tokens: 40 }
    stage.replies = many(9, (index) => append(`entry ${index}`))
    const claim = await begun(stage)
    const outcome = await stage.finished(claim)
    expect(outcome).toMatchObject({
      state: 'failed',
      code: 'budget',
      error: 'it may spend 40 tokens and has spent 45; spent: 3 model calls, 30 tokens in, 15 out, 0.0003 USD',
    })
    expect(stage.effects).toEqual(['entry 0', 'entry 1'])
    expect((await stage.actions(claim)).map(({ state }) => state)).toEqual(['done', 'done', 'withdrawn'])
    expect(await reread(stage.store, claim.run.id)).toMatchObject({
      inputTokens: 30,
      outputTokens: 15,
      costMicrousd: 300,
    })
    expect(
      (await stage.store.read(entriesOfRun, claim.run.id)).filter(({ kind }) => kind === 'assistant'),
    ).toHaveLength(3)
    await assertInvariants(stage.store)
  })

  test('money: likewise, to the millionth', async () => {
    const stage = await open()
    stage.limits = { costMicrousd: 200 }
    stage.replies = many(9, (index) => append(`entry ${index}`))
    expect(await stage.finished(await begun(stage))).toMatchObject({
      code: 'budget',
      error: expect.stringContaining('it may cost 0.0002 USD and has cost 0.0002 USD; spent: 2 model calls'),
    })
    expect(stage.effects).toEqual(['entry 0'])
  })

  test('an answer that crosses a limit is an answer all the same', async () => {
    const stage = await open()
    stage.limits = { tokens: 1, costMicrousd: 1, turns: 1 }
    stage.replies = [{ text: 'Here it is.' }]
    expect(await stage.finished(await begun(stage))).toMatchObject({
      state: 'succeeded',
      result: { text: 'Here it is.' },
    })
  })

  test('the next run on the thread begins anew, with the conversation intact', async () => {
    const stage = await open()
    stage.limits = { turns: 1 }
    stage.replies = [append('never'), { text: 'As you wish.' }]
    await stage.finished(await begun(stage))
    await stage.send('again')
    expect(await stage.finished(await stage.claim())).toMatchObject({ state: 'succeeded' })
    expect(results(stage.asked[1]!)).toEqual(['withdrawn: the run ended'])
    expect(stage.effects).toEqual([])
  })

  test('what was spent before a crash and before parking counts, turns as well', async () => {
    const stage = await open()
    stage.limits = { turns: 4 }
    stage.replies = many(9, (index) => look(`${index}`))
    let claim = await begun(stage)
    // Killed in its second turn, then parked in its third.
    stage.perform = async (entry) => (entry === '1' ? new Promise<never>(() => {}) : { kind: 'done', result: entry })
    const killed = new Promise<void>((resolve) => {
      const { perform } = stage
      stage.perform = (entry) => {
        if (entry === '1') resolve()
        return perform(entry)
      }
    })
    void stage.run(claim)
    await killed
    stage.perform = (entry) => Promise.resolve({ kind: 'done', result: entry })
    claim = await stage.takeOver(claim)
    const until = Date.now() + 1_000
    stage.answer = ({ replies }) =>
      replies === 3 ? Promise.resolve({ kind: 'park', until, reason: 'a rate limit', spent: usage }) : undefined
    const parked = await stage.run(claim)
    if (parked.kind !== 'parked') throw new Error(parked.kind)
    const ref = { id: claim.attempt.id, runId: claim.run.id, fence: claim.run.fence }
    await stage.store.apply(parkRun, ref, parked.reason, parked.until, parked.spent)
    await stage.store.apply(resumeRun, claim.run.id)
    stage.answer = () => undefined
    const outcome = await stage.finished(await stage.claim())
    // Five calls were paid for, four of them brought a reply.
    expect(outcome).toMatchObject({
      code: 'budget',
      error: 'it has had the 4 model calls that it may have; spent: 4 model calls, 50 tokens in, 25 out, 0.0005 USD',
    })
    expect(await reread(stage.store, claim.run.id)).toMatchObject({ inputTokens: 50, costMicrousd: 500 })
    expect(stage.asked.map(({ replies }) => replies)).toEqual([0, 1, 2, 3, 3])
  })

  test('killed after the reply that crossed and before its end was written: still not acted on, and no more is asked', async () => {
    const stage = await open()
    stage.limits = { tokens: 15 }
    stage.replies = many(9, (index) => append(`entry ${index}`))
    const claim = await begun(stage)
    expect(await stage.run(claim)).toMatchObject({ kind: 'finished', outcome: { code: 'budget' } })
    expect(await stage.finished(await stage.takeOver(claim))).toMatchObject({ code: 'budget' })
    expect({ effects: stage.effects, asked: stage.asked.length }).toEqual({ effects: [], asked: 1 })
    await assertInvariants(stage.store)
  })

  test('a reply that cannot be recorded for a while is kept, not asked for again [T8]', async () => {
    const store = await (await engine.database()).open()
    let full = 2
    const sick: Store = {
      engine: store.engine,
      onChange: (listener) => store.onChange(listener),
      read: (question, ...args) => store.read(question, ...args),
      apply: (change, ...args) => {
        if ((change as unknown) !== recordTurn || full-- <= 0) return store.apply(change, ...args)
        return Promise.reject(new HoldfastError('store/full', 'no space'))
      },
      check: () => store.check(),
      warmUp: () => store.warmUp(),
      copyTo: (path) => store.copyTo(path),
      close: () => store.close(),
    }
    const stage = new Stage(sick)
    stage.replies = [append('a'), { text: 'done' }]
    expect(await stage.finished(await begun(stage))).toMatchObject({ state: 'succeeded' })
    expect({ asked: stage.asked.length, effects: stage.effects, full }).toEqual({ asked: 2, effects: ['a'], full: -2 })
  })

  test('a message that came too late for a run at its limit waits for the next one', async () => {
    const stage = await open()
    stage.limits = { turns: 1 }
    stage.replies = [look('x'), { text: 'the other run' }]
    const claim = await begun(stage)
    await stage.run(claim)
    await stage.send('late')
    await stage.finished(claim)
    expect((await stage.store.read(messagesOf, stage.threadId)).map(({ state }) => state)).toEqual([
      'consumed',
      'pending',
    ])
  })

  test('a call that failed as often as it may is answered so; made once more, it ends the run', async () => {
    const stage = await open()
    let tries = 0
    stage.perform = () => Promise.resolve({ kind: 'failed', error: `try ${++tries}` })
    stage.replies = many(9, () => append('a'))
    const claim = await begun(stage)
    expect(await stage.finished(claim)).toMatchObject({
      code: 'budget',
      error: expect.stringContaining(
        'it has made the same call of append 5 times, which failed each time; spent: 5 model',
      ),
    })
    expect(tries).toBe(LIMITS.sameFailures)
    expect(results(stage.asked[4]!).at(-1)).toContain('do something else')
  })

  test('a call that is wrong each time ends the run too, and different ones do not', async () => {
    const stage = await open()
    stage.replies = [...many(6, (index) => ({ calls: [['nonsense', { index }]] as const })), { text: 'enough' }]
    expect(await stage.finished(await begun(stage))).toMatchObject({ state: 'succeeded' })
    const other = await open()
    other.replies = many(9, () => ({ calls: [['nonsense', {}]] as const }))
    expect(await other.finished(await begun(other))).toMatchObject({ code: 'budget' })
    expect(other.asked).toHaveLength(5)
  })

  test('a text that is cut off goes on, and its parts are one answer', async () => {
    const stage = await open()
    stage.replies = [{ text: 'Once upon ', finish: 'length' }, { text: 'a time.' }]
    const claim = await begun(stage)
    expect(await stage.finished(claim)).toMatchObject({ state: 'succeeded', result: { text: 'Once upon a time.' } })
    expect(stage.asked[1]?.messages.slice(-2)).toEqual([
      { role: 'assistant', text: 'Once upon ', toolCalls: [] },
      { role: 'user', text: expect.stringContaining('Go on exactly where it stopped') },
    ])
    expect((await stage.store.read(entriesOfRun, claim.run.id)).map(({ kind }) => kind)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
    ])
  })

  test('cut off again and again it ends, also when it is taken over in between', async () => {
    const stage = await open()
    stage.limits = { truncatedReplies: 3 }
    stage.replies = many(9, () => ({ text: 'and ', finish: 'length' as const }))
    const claim = await begun(stage)
    let calls = 0
    stage.answer = () => (++calls === 3 ? new Promise(() => {}) : undefined)
    void stage.run(claim)
    await expect.poll(() => calls).toBe(3)
    expect(await stage.finished(await stage.takeOver(claim))).toMatchObject({
      code: 'budget',
      error: expect.stringContaining(
        "3 replies in a row were cut off by the model's own length limit; spent: 3 model calls",
      ),
      summary: 'and and and ',
    })
    expect(calls).toBe(4)
  })

  test('calls that were cut off are not carried out, the model is told, and the conversation stays whole', async () => {
    const stage = await open()
    stage.replies = [{ ...append('half'), finish: 'length' }, append('whole'), { text: 'done' }]
    const claim = await begun(stage)
    expect(await stage.finished(claim)).toMatchObject({ state: 'succeeded', result: { text: 'done' } })
    expect(stage.effects).toEqual(['whole'])
    expect(results(stage.asked[1]!)).toEqual([expect.stringContaining('none of its calls was carried out')])
  })

  test('an empty answer is asked for once more, then the run fails', async () => {
    const stage = await open()
    stage.replies = [{ text: '' }, { text: 'Sorry: yes.' }]
    expect(await stage.finished(await begun(stage))).toMatchObject({
      state: 'succeeded',
      result: { text: 'Sorry: yes.' },
    })
    const other = await open()
    other.replies = many(9, () => ({ text: ' \n' }))
    expect(await other.finished(await begun(other))).toMatchObject({ state: 'failed', code: 'model' })
    expect(other.asked).toHaveLength(2)
    await assertInvariants(other.store)
  })

  test('arguments that are gigantic, no object or half a character are refused and not carried along', async () => {
    const stage = await open()
    const huge = { entry: 'x'.repeat(LIMITS.argumentCharacters) }
    const calls = [
      ['append', huge],
      ['append', '{"entry": "not closed'],
      ['append', { entry: '\ud800' }],
      ['no\0name', { entry: 'x' }],
      // Cut to the longest name, it ends in half a character.
      [`${'x'.repeat(LIMITS.nameLength - 1)}👍`, { entry: 'x' }],
      ['append', { entry: 'good' }],
    ] as const
    stage.replies = [{ calls }, { text: 'done' }]
    const claim = await begun(stage)
    expect(await stage.finished(claim)).toMatchObject({ state: 'succeeded' })
    expect(stage.effects).toEqual(['good'])
    expect(results(stage.asked[1]!)).toEqual([
      expect.stringContaining('its arguments have 1000012 characters, 1000000 at most'),
      'failed: entry: is required',
      expect.stringContaining('cannot be written as JSON'),
      expect.stringContaining('there is no tool'),
      expect.stringContaining('there is no tool'),
      'did good',
    ])
    const [entry] = (await stage.store.read(entriesOfRun, claim.run.id)).filter(({ kind }) => kind === 'assistant')
    expect(JSON.stringify(entry?.body).length).toBeLessThan(3_000)
    for (const { toolCalls } of [entry?.body as { toolCalls: { input: unknown }[] }])
      for (const { input } of toolCalls) expect(input).toBeTypeOf('object')
    expect(JSON.stringify(stage.asked[1]).length).toBeLessThan(10_000)
  })
})
