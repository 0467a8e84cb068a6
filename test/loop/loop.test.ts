import { describe, expect, test } from 'vitest'

import { newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { wakeThread } from '../../src/runs/send.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { Stage, results, usage } from '../support/stage.ts'
import { reread } from '../support/world.ts'

describe.each(engines)('the loop on $name', (engine) => {
  const open = async () => new Stage(await (await engine.database()).open())

  test('a message is answered: shown, replied to, consumed, billed', async () => {
    const stage = await open()
    stage.replies = [{ text: 'Good evening.' }]
    const { message, runId } = await stage.send('Hello')
    const claim = await stage.claim()
    expect(claim.run.id).toBe(runId)
    expect(await stage.finished(claim)).toMatchObject({ state: 'succeeded', result: { text: 'Good evening.' } })
    expect(await stage.store.read(messagesOf, stage.threadId)).toMatchObject([
      { id: message.id, state: 'consumed', consumedByRun: runId },
    ])
    expect(await reread(stage.store, claim.run.id)).toMatchObject({
      state: 'succeeded',
      inputTokens: 10,
      costMicrousd: 100,
    })
    await assertInvariants(stage.store)
  })

  test('what a failed turn was asked stays in the conversation, with what became of it', async () => {
    const stage = await open()
    stage.replies = []
    await stage.send('count the beans')
    expect(await stage.finished(await stage.claim())).toMatchObject({ state: 'failed', code: 'model' })
    stage.replies = [{ text: '12 beans.' }]
    await stage.send('try again')
    await stage.finished(await stage.claim())
    expect(stage.asked.at(-1)?.messages).toEqual([
      { role: 'user', text: 'count the beans' },
      { role: 'user', text: '[This turn failed before it was answered: beyond the script.]' },
      { role: 'user', text: 'try again' },
    ])
    await assertInvariants(stage.store)
  })

  test('what a call cost is on the bill of its run, also when it failed [T8]', async () => {
    const stage = await open()
    stage.answer = () => Promise.resolve({ kind: 'failed', code: 'model', error: 'broken off', spent: usage })
    await stage.send('go')
    const claim = await stage.claim()
    await stage.finished(claim)
    expect(await reread(stage.store, claim.run.id)).toMatchObject({ state: 'failed', code: 'model', ...usage })
  })

  test('the news of a child that no model was shown is shown later', async () => {
    const stage = await open()
    const { store, threadId } = stage
    await store.apply(openThread, threadId, 'clerk', null)
    await store.apply(acceptMessage, {
      id: newMessageId(random),
      threadId,
      from: 'child' as ThreadId,
      kind: 'completion',
      key: 'run:1',
      body: { state: 'succeeded', summary: '12 beans' },
    })
    await store.apply(wakeThread, threadId, 'clerk', newRunId(random))
    expect(await stage.finished(await stage.claim())).toMatchObject({ state: 'failed', code: 'model' })
    stage.replies = [{ text: 'It found 12.' }]
    await stage.send('what did your child find?')
    await stage.finished(await stage.claim())
    expect(
      stage.asked
        .at(-1)
        ?.messages.map(({ text }) => text)
        .join('\n'),
    ).toContain('12 beans')
  })

  test('one that saw the thread idle before it was answered does not give that answer again', async () => {
    const stage = await open()
    const { store, threadId } = stage
    const parent = 'parent' as ThreadId
    await store.apply(openThread, parent, 'clerk', null)
    await store.apply(openThread, threadId, 'clerk', parent)
    stage.replies = [{ text: '42 beans' }]
    await stage.send('count')
    await stage.finished(await stage.claim())
    await store.apply(wakeThread, threadId, 'clerk', newRunId(random))
    await expect(stage.claim()).rejects.toThrow('nothing to claim')
    expect(await store.read(messagesOf, parent)).toMatchObject([{ body: { summary: '42 beans' } }])
  })

  test('a long message is shown whole, however little of it is kept in its row', async () => {
    const stage = await open()
    stage.replies = [{ text: 'I have read it.' }]
    const long = `${'word '.repeat(20_000)}end`
    await stage.send(long, 'long')
    await stage.finished(await stage.claim())
    expect(stage.asked[0]?.messages).toEqual([{ role: 'user', text: long }])
  })

  test('the same message sent twice is one message and one run', async () => {
    const stage = await open()
    const [first, second] = [await stage.send('Hello'), await stage.send('Hello')]
    expect(second).toEqual(first)
  })

  test('a message to a busy thread is taken at its next turn, by the same run', async () => {
    const stage = await open()
    stage.replies = [{ calls: [['append', { entry: 'a' }]] }, { text: 'done' }]
    await stage.send('first')
    const claim = await stage.claim()
    stage.perform = async (entry) => {
      expect((await stage.send('second')).runId).toBe(claim.run.id)
      return { kind: 'done', result: entry }
    }
    await stage.finished(claim)
    expect(stage.asked[1]?.messages.at(-1)).toEqual({ role: 'user', text: 'second' })
    expect((await stage.store.read(messagesOf, stage.threadId)).map(({ state }) => state)).toEqual([
      'consumed',
      'consumed',
    ])
  })

  test('two different writes of one reply both happen, each with its own decision [W1] [W5]', async () => {
    const stage = await open()
    stage.replies = [
      {
        calls: [
          ['append', { entry: 'a' }],
          ['append', { entry: 'b' }],
        ],
      },
      { text: 'done' },
    ]
    await stage.send('go')
    const claim = await stage.claim()
    await stage.finished(claim)
    expect(stage.effects).toEqual(['a', 'b'])
    const actions = await stage.actions(claim)
    expect(actions.map(({ decision, state }) => [decision?.kind, state])).toEqual([
      ['allow', 'done'],
      ['allow', 'done'],
    ])
    expect(new Set(actions.map(({ signature }) => signature)).size).toBe(2)
  })

  test('an identical repeat is not performed again, gets the first result and says so; with repeat each it is [W2] [actions/once]', async () => {
    const stage = await open()
    const [append, shout] = [{ entry: 'a', note: 'x' }, { entry: 's' }]
    stage.replies = [
      {
        calls: [
          ['append', append],
          ['append', { note: 'other words', entry: 'a' }],
          ['shout', shout],
        ],
      },
      {
        calls: [
          ['append', append],
          ['shout', shout],
        ],
      },
      { text: 'done' },
    ]
    await stage.send('go')
    const claim = await stage.claim()
    await stage.finished(claim)
    expect(stage.effects).toEqual(['a', 's', 's'])
    const actions = await stage.actions(claim)
    expect(actions.map(({ repeatOf }) => repeatOf)).toEqual([null, actions[0]?.id, null, actions[0]?.id, null])
    expect(results(stage.asked[2]!)[1]).toContain('not performed again')
  })

  test('what differs deep in the arguments is another write; the order of names makes none [W1] [actions/once]', async () => {
    const stage = await open()
    const performed: unknown[] = []
    const perform = (input: unknown) => {
      performed.push(input)
      return Promise.resolve({ kind: 'done', result: 'sent' } as const)
    }
    const letter = { name: 'letter', identity: (input: unknown) => input, validate: (input: unknown) => ({ input }) }
    stage.extra = [{ ...stage.tool('append'), ...letter, perform }]
    const [ann, bob] = [{ to: { name: 'ann', at: 1 } }, { to: { name: 'bob', at: 1 } }]
    const calls = [ann, bob, { to: { at: 1, name: 'ann' } }]
    stage.replies = [{ calls: calls.map((input) => ['letter', input]) }, { text: 'done' }]
    await stage.send('go')
    await stage.finished(await stage.claim())
    expect(performed).toEqual([ann, bob])
  })

  test('an identical call after one that nobody knows about is not performed [W2] [actions/once]', async () => {
    const stage = await open()
    let performed = 0
    stage.perform = () => Promise.resolve({ kind: 'in-doubt', error: `cut off, try ${++performed}` })
    const call = { calls: [['append', { entry: 'a' }]] } as const
    stage.replies = [call, call, { text: 'done' }]
    await stage.send('go')
    const claim = await stage.claim()
    await stage.finished(claim)
    expect(performed).toBe(1)
    expect(await stage.actions(claim)).toMatchObject([{ state: 'in_doubt' }, { state: 'failed', tries: 0 }])
    expect(results(stage.asked[2]!)[1]).toContain('may or may not have happened')
  })

  test('a write that fails, is denied or is wrong touches no other [W3] [actions/independent]', async () => {
    const stage = await open()
    stage.policy = [{ decision: 'allow' }, { tool: 'shout', decision: 'deny' }]
    stage.perform = (entry) =>
      Promise.resolve(entry === 'bad' ? { kind: 'failed', error: 'no paper' } : { kind: 'done', result: 'ok' })
    const calls: [string, unknown][] = [
      ['append', { entry: 'bad' }],
      ['shout', { entry: 's' }],
      ['append', {}],
      ['nonsense', {}],
      ['append', { entry: 'good' }],
    ]
    stage.replies = [{ calls }, { text: 'done' }]
    await stage.send('go')
    const claim = await stage.claim()
    expect(await stage.finished(claim)).toMatchObject({ state: 'succeeded' })
    expect(stage.effects).toEqual(['good'])
    expect((await stage.actions(claim)).map(({ state }) => state)).toEqual([
      'failed',
      'denied',
      'failed',
      'failed',
      'done',
    ])
    expect(results(stage.asked[1]!)).toEqual([
      'failed: no paper',
      'denied: denied by policy rule 2',
      'failed: entry: is required',
      'failed: there is no tool "nonsense"; there are: append, look, shout',
      'ok',
    ])
  })

  test('the same failing call is performed three times at most', async () => {
    const stage = await open()
    let tries = 0
    stage.perform = () => Promise.resolve({ kind: 'failed', error: `try ${++tries}` })
    stage.replies = [
      ...Array.from({ length: 5 }, () => ({ calls: [['append', { entry: 'a' }]] as [string, unknown][] })),
      { text: 'given up' },
    ]
    await stage.send('go')
    await stage.finished(await stage.claim())
    expect(tries).toBe(3)
  })

  test('a worker that dies in the middle of a write: what it left behind settles it, nothing is asked or done again [W7] [actions/no-blind-retry]', async () => {
    const stage = await open()
    stage.replies = [
      {
        calls: [
          ['append', { entry: 'a' }],
          ['append', { entry: 'b' }],
        ],
      },
      { text: 'done' },
    ]
    await stage.send('go')
    const claim = await stage.claim()
    stage.perform = async (entry) => {
      if (entry === 'b') throw new Error('the process is killed here')
      return { kind: 'done', result: 'first' }
    }
    const died = stage.run(claim)
    await died
    stage.perform = () => Promise.reject(new Error('it must not be performed again'))
    expect((await stage.actions(claim)).map(({ state }) => state)).toEqual(['done', 'in_doubt'])
    expect(stage.asked).toHaveLength(2)
    expect(results(stage.asked[1]!)[1]).toContain('unknown: it may or may not have happened')
  })

  const cases = [
    {
      title: 'a result on disk settles it',
      recover: { kind: 'done', result: 'from disk' },
      state: 'done',
      performed: 0,
    },
    { title: 'never started: it is performed, once', recover: { kind: 'never-started' }, state: 'done', performed: 1 },
    {
      title: 'cut off, and nobody knows: in doubt',
      recover: { kind: 'in-doubt', error: 'cut off' },
      state: 'in_doubt',
      performed: 0,
    },
    {
      title: 'cut off, idempotent: performed again with the same key',
      recover: { kind: 'in-doubt', error: 'x' },
      idempotent: true,
      state: 'done',
      performed: 1,
    },
    {
      title: 'cut off, the probe says done',
      recover: { kind: 'in-doubt', error: 'x' },
      probe: { kind: 'done', result: 'seen' },
      state: 'done',
      performed: 0,
    },
    {
      title: 'cut off, the probe says not done',
      recover: { kind: 'in-doubt', error: 'x' },
      probe: { kind: 'failed', error: 'no' },
      state: 'done',
      performed: 1,
    },
    {
      title: 'cut off, the probe does not know',
      recover: { kind: 'in-doubt', error: 'x' },
      probe: { kind: 'unknown' },
      state: 'in_doubt',
      performed: 0,
    },
  ] as const
  test.each(cases)(
    'taken over in the middle of a write: $title [actions/no-blind-retry]',
    async ({ recover, state, performed, ...more }) => {
      const stage = await open()
      stage.replies = [{ calls: [['append', { entry: 'a' }]] }, { text: 'done' }]
      await stage.send('go')
      const claim = await stage.claim()
      let reached = () => {}
      const inside = new Promise<void>((resolve) => (reached = resolve))
      stage.perform = () => {
        reached()
        return new Promise(() => {})
      }
      void stage.run(claim)
      await inside
      stage.recover = () => Promise.resolve(recover)
      if ('probe' in more) stage.probe = () => Promise.resolve(more.probe)
      stage.idempotent = 'idempotent' in more
      let performs = 0
      stage.perform = () => {
        performs += 1
        return Promise.resolve({ kind: 'done', result: 'again' })
      }
      const taken = await stage.takeOver(claim)
      expect(await stage.finished(taken)).toMatchObject({ state: 'succeeded' })
      expect(performs).toBe(performed)
      expect(await stage.actions(claim)).toMatchObject([{ state }])
      expect(stage.asked).toHaveLength(2)
      await assertInvariants(stage.store)
    },
  )

  test('taken over in the middle of a write: "not done" counts once nobody can still do it [actions/no-blind-retry]', async () => {
    const stage = await open()
    stage.replies = [{ calls: [['append', { entry: 'a' }]] }, { text: 'done' }]
    await stage.send('go')
    const claim = await stage.claim()
    const inside = Promise.withResolvers<void>()
    stage.perform = () => {
      inside.resolve()
      return new Promise(() => {})
    }
    void stage.run(claim)
    await inside.promise
    const asked: string[] = []
    stage.rival = async () => {
      asked.push('who could still')
      return 'process 7 may be paused'
    }
    stage.probe = async () => {
      asked.push('its probe')
      return { kind: 'failed', error: 'it is not there' }
    }
    stage.perform = () => Promise.reject(new Error('done a second time'))
    expect(await stage.finished(await stage.takeOver(claim))).toMatchObject({ state: 'succeeded' })
    expect(asked).toEqual(['who could still', 'its probe'])
    expect(await stage.actions(claim)).toMatchObject([
      { state: 'in_doubt', tries: 1, error: expect.stringContaining('process 7 may be paused') },
    ])
  })

  test('cancel withdraws what has not begun, and the run ends cancelled', async () => {
    const stage = await open()
    stage.replies = [
      {
        calls: [
          ['append', { entry: 'a' }],
          ['append', { entry: 'b' }],
        ],
      },
      { text: 'never' },
    ]
    await stage.send('go')
    const claim = await stage.claim()
    stage.perform = async (entry) => {
      await stage.store.apply(cancelRun, claim.run.id, { by: 'tester' })
      return { kind: 'done', result: entry }
    }
    expect(await stage.run(claim)).toEqual({ kind: 'stopped', why: 'cancel-requested' })
    await stage.store.apply(
      finishRun,
      { id: claim.attempt.id, runId: claim.run.id, fence: claim.run.fence },
      { state: 'cancelled' },
    )
    expect(stage.effects).toEqual(['a'])
    expect((await stage.actions(claim)).map(({ state }) => state)).toEqual(['done', 'withdrawn'])
    await assertInvariants(stage.store)
  })

  test('a worker that was superseded records nothing and starts nothing', async () => {
    const stage = await open()
    stage.replies = [{ calls: [['append', { entry: 'a' }]] }, { text: 'done' }]
    await stage.send('go')
    const claim = await stage.claim()
    await stage.takeOver(claim)
    expect(await stage.run(claim)).toEqual({ kind: 'stopped', why: 'superseded' })
    expect(stage.effects).toEqual([])
  })

  test('an agent that never comes to an end is stopped by its limit', async () => {
    const stage = await open()
    stage.replies = Array.from({ length: 300 }, () => ({ calls: [['look', { entry: 'x' }]] as [string, unknown][] }))
    await stage.send('go')
    const outcome = await stage.finished(await stage.claim())
    expect(outcome).toMatchObject({ state: 'failed', code: 'budget' })
  })
})
