import { generateText, isStepCount, streamText } from 'ai'
import { describe, expect, test } from 'vitest'

import { durable } from '../../src/ai-sdk/index.ts'
import type { RunId } from '../../src/base/ids.ts'
import { defineFunction } from '../../src/index.ts'
import type { Runtime } from '../../src/index.ts'
import { findRun } from '../../src/runs/run.ts'
import { engines } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { mock } from './mock.ts'
import type { Says } from './mock.ts'
import { ALLOWED, noting, open } from './support.ts'

const asked = (runtime: Runtime, count: number) =>
  until(`${count} wait for a person`, async () => {
    const found = await runtime.approvals.list()
    return found.length === count ? found : undefined
  })

const firstDoubt = (runtime: Runtime) =>
  until('a run waits because of a doubt', async () =>
    (await runtime.doubts.list()).find(({ runState }) => runState === 'parked'),
  )

const TWO: readonly Says[] = [
  [
    ['note', { entry: 'one' }],
    ['note', { entry: 'two' }],
  ],
  'That is all.',
]

type Parts = Parameters<typeof durable<{ note: ReturnType<typeof noting> }>>[0]

/** A clerk who notes things; `parts` is what its program says besides. */
function clerk(script: readonly Says[], parts: Partial<Parts> = {}, failing: (entry: string) => unknown = () => {}) {
  const notes: string[] = []
  const model = mock(script)
  const definition = defineFunction('clerk', async () => {
    const wrapped = durable({ model, tools: { note: noting(notes, failing) }, ...parts })
    const { text, steps } = await generateText({ ...wrapped, prompt: 'Note it.', stopWhen: isStepCount(9) })
    return { text, content: steps.flatMap((step) => step.content.map(({ type }) => type)) }
  })
  return { notes, model, definition }
}

/** What the model was told of its calls, when it was asked last. */
const toldLast = (model: ReturnType<typeof mock>) =>
  model.doGenerateCalls
    .at(-1)!
    .prompt.flatMap((message) =>
      message.role === 'tool' ? message.content.map((part) => (part.type === 'tool-result' ? part.output : part)) : [],
    )

describe.each(engines)('on $name', (engine) => {
  test('what no rule allows waits for a person, all of a reply at once; then the loop goes on from the record [approvals/bound]', async () => {
    const { notes, model, definition } = clerk(TWO)
    const database = await engine.database()
    const { runtime, warnings } = await open([definition], { store: database.url })
    const call = await runtime.call({ function: 'clerk' })
    const [one, two] = await asked(runtime, 2)
    // While nobody says anything nobody is at work.
    const store = await database.open()
    await until('it is parked', async () =>
      (await store.read(findRun, call.runId as RunId))?.state === 'parked' ? true : undefined,
    )
    expect(one).toMatchObject({ agent: 'clerk', tool: 'note', input: { entry: 'one' }, state: 'pending' })
    expect(notes).toEqual([])
    await runtime.approvals.approve(two!, { by: 'Ann' })
    await runtime.approvals.deny(one!, { by: 'Ann', note: 'not that' })
    expect(await call.result()).toMatchObject({ text: 'That is all.' })
    expect(notes).toEqual(['two'])
    expect(model.doGenerateCalls).toHaveLength(2)
    expect(toldLast(model)).toEqual([
      { type: 'execution-denied', reason: expect.stringContaining('not that') as string },
      { type: 'json', value: { noted: 'two' } },
    ])
    expect(warnings).toEqual([])
    // Once to ask, and once for each decision.
    expect((await store.read(findRun, call.runId as RunId))?.attempt).toBeLessThanOrEqual(3)
  })

  test('a write that breaks off is in doubt: listed, not repeated, and its run waits [actions/no-blind-retry]', async () => {
    const { url: store } = await engine.database()
    const { notes, model, definition } = clerk(TWO, {}, (entry) => {
      if (entry === 'one') throw new Error('the line went dead')
    })
    const { runtime } = await open([definition], { store, policy: ALLOWED })
    const call = await runtime.call({ function: 'clerk' })
    const doubt = await firstDoubt(runtime)
    expect(doubt).toMatchObject({ tool: 'note', input: { entry: 'one' }, state: 'in_doubt' })
    expect(doubt.seen).toContain('the line went dead')
    // What the same reply wanted besides was done.
    expect(notes).toEqual(['two'])
    await runtime.doubts.resolve(doubt.id, { resolution: 'happened', result: { noted: 'by hand' } })
    expect(await call.result()).toMatchObject({ text: 'That is all.' })
    expect(toldLast(model)).toEqual([
      { type: 'json', value: { noted: 'by hand' } },
      { type: 'json', value: { noted: 'two' } },
    ])
    expect(notes).toEqual(['two'])
    expect(model.doGenerateCalls).toHaveLength(2)
  })

  test('what the same reply wants besides is done before the run waits, also if it is proposed late', async () => {
    const { url: store } = await engine.database()
    const notes: string[] = []
    const doubted = Promise.withResolvers<void>()
    const tools = {
      note: noting(notes, (entry) => {
        if (entry === 'one') throw new Error('the line went dead')
      }),
    }
    const said = async ({ entry }: { entry: string }) => {
      if (entry === 'two') await doubted.promise
      return 'approved' as const
    }
    const definition = defineFunction('clerk', async () => {
      const { model, tools: wrapped } = durable({ model: mock(TWO), tools, toolApproval: { note: said } })
      return (await generateText({ model, tools: wrapped, prompt: 'Note it.', stopWhen: isStepCount(9) })).text
    })
    const { runtime } = await open([definition], { store, policy: ALLOWED })
    await runtime.call({ function: 'clerk' })
    await until('the first is in doubt', async () => (await runtime.doubts.list())[0])
    doubted.resolve()
    await firstDoubt(runtime)
    expect(notes).toEqual(['two'])
  })

  test('a message that is sent meanwhile is shown at the next step, once, and stays where it stands [inbox/effect-once]', async () => {
    const { url: store } = await engine.database()
    const model = mock([[['note', { entry: 'one' }]], [['note', { entry: 'two' }]], 'Done.'])
    const notes: string[] = []
    const send: (() => Promise<unknown>)[] = []
    const definition = defineFunction('clerk', async () => {
      const tools = { note: noting(notes, (entry) => (entry === 'one' ? send[0]!() : undefined)) }
      const said = { note: (input: { entry: string }) => (input.entry === 'one' ? 'approved' : undefined) } as const
      const wrapped = durable({ model, tools, toolApproval: said })
      return (await generateText({ ...wrapped, prompt: 'Note it.', stopWhen: isStepCount(9) })).text
    })
    const { runtime } = await open([definition], { store })
    send.push(() => runtime.send({ threadId: 'diary', text: 'Be quick.' }))
    const call = await runtime.call({ function: 'clerk', threadId: 'diary' })
    const [two] = await asked(runtime, 1)
    expect(await runtime.inbox('diary')).toEqual([])
    await runtime.approvals.approve(two!)
    expect(await call.result()).toBe('Done.')
    const shown = model.doGenerateCalls.map(({ prompt }) => prompt.map(({ role }) => role))
    expect(shown).toEqual([
      ['user'],
      ['user', 'assistant', 'tool', 'user'],
      ['user', 'assistant', 'tool', 'user', 'assistant', 'tool'],
    ])
    expect(model.doGenerateCalls[2]!.prompt[3]!.content).toEqual([{ type: 'text', text: 'Be quick.' }])
    expect(notes).toEqual(['one', 'two'])
  })
})

describe('toolApproval', () => {
  test.each([
    ['for each tool', { note: ({ entry }: { entry: string }) => (entry === 'one' ? 'approved' : 'denied') }, undefined],
    [
      'as a function',
      ({ toolCall }: { toolCall: { input: { entry: string } } }) =>
        toolCall.input.entry === 'one' ? 'approved' : { type: 'denied', reason: 'enough' },
      'enough',
    ],
  ] as const)('of a program, %s, allows and denies without a person', async (_name, toolApproval, reason) => {
    const { notes, model, definition } = clerk(TWO, { toolApproval } as Partial<Parts>)
    const { runtime } = await open([definition])
    const call = await runtime.call({ function: 'clerk' })
    expect(await call.result()).toMatchObject({ text: 'That is all.' })
    expect(notes).toEqual(['one'])
    expect(toldLast(model)).toEqual([
      { type: 'json', value: { noted: 'one' } },
      { type: 'execution-denied', reason },
    ])
  })

  test('that leaves it to the user parks the run, whatever a rule allows, and the loop hears of the decision', async () => {
    const { notes, model, definition } = clerk(TWO, {
      toolApproval: { note: { type: 'user-approval', reason: 'costs money' } },
    })
    const { runtime } = await open([definition], { policy: ALLOWED })
    const call = await runtime.call({ function: 'clerk' })
    const requests = await asked(runtime, 2)
    expect(requests.map(({ askedBy }) => askedBy)).toEqual(Array(2).fill('toolApproval: costs money'))
    await runtime.approvals.approve(requests[0]!)
    // What its schema makes of other arguments only the function knows; a note is as good.
    await expect(runtime.approvals.edit(requests[1]!, { input: { entry: 'three' } })).rejects.toMatchObject({
      code: 'approvals/no-tool',
      remedy: expect.stringContaining('skip the call with a note') as string,
    })
    await runtime.approvals.skip(requests[1]!, { note: 'make it three' })
    const { content } = (await call.result()) as { content: string[] }
    expect(content.filter((type) => type === 'tool-approval-response')).toHaveLength(2)
    expect(notes).toEqual(['one'])
    expect(toldLast(model)).toMatchObject([{}, { reason: expect.stringContaining('make it three') as string }])
  })

  test('of a rule that denies cannot be overruled by the program', async () => {
    const { notes, definition } = clerk(TWO, { toolApproval: { note: 'approved' } })
    const { runtime } = await open([definition], { policy: [{ tool: 'note', decision: 'deny' }] })
    expect(await (await runtime.call({ function: 'clerk' })).result()).toMatchObject({ text: 'That is all.' })
    expect(notes).toEqual([])
  })

  test('that is not handed on: the two values alone ask and deny just as well', async () => {
    const notes: string[] = []
    const model = mock(TWO)
    const definition = defineFunction('clerk', async () => {
      const { model: wrapped, tools } = durable({ model, tools: { note: noting(notes) } })
      return streamText({ model: wrapped, tools, prompt: 'Note it.', stopWhen: isStepCount(9) }).text
    })
    const { runtime } = await open([definition])
    const call = await runtime.call({ function: 'clerk' })
    const [one, two] = await asked(runtime, 2)
    await runtime.approvals.deny(one!)
    await runtime.approvals.approve(two!)
    expect(await call.result()).toBe('That is all.')
    expect(notes).toEqual(['two'])
    expect(model.doStreamCalls).toHaveLength(2)
  })
})

test('who is asked sees what the model said beside the call, also of an answer that an earlier attempt got', async () => {
  const answers = ['First this.', 'Then that.'].map((says) => ({ says, calls: [['note', { entry: says }]] }) as const)
  const { definition } = clerk([...answers, 'Done.'])
  const { runtime } = await open([definition])
  const call = await runtime.call({ function: 'clerk' })
  for (const { says } of answers) {
    const request = await until('it asks', async () => (await runtime.approvals.list())[0])
    expect(request).toMatchObject({ input: { entry: says }, modelSaid: says })
    await runtime.approvals.approve(request)
  }
  expect(await call.result()).toMatchObject({ text: 'Done.' })
})

test.each([
  ['did-not-happen', 'failed: it did not happen'],
  ['give-up', 'unknown: it may or may not have happened'],
] as const)('a doubt that a person settles with %s is told to the model as that', async (resolution, told) => {
  const { model, definition } = clerk([[['note', { entry: 'one' }]], 'Well.'], {}, () => {
    throw new Error('the line went dead')
  })
  const { runtime } = await open([definition], { policy: ALLOWED })
  const call = await runtime.call({ function: 'clerk' })
  await runtime.doubts.resolve((await firstDoubt(runtime)).id, { resolution })
  expect(await call.result()).toMatchObject({ text: 'Well.' })
  expect(toldLast(model)).toEqual([{ type: 'error-text', value: expect.stringContaining(told) as string }])
})

test('a program may have the model told of a doubt: nobody is waited for, and it stays listed', async () => {
  const { model, definition } = clerk([[['note', { entry: 'one' }]], 'Well.'], { doubt: 'tell' }, () => {
    throw new Error('the line went dead')
  })
  const { runtime } = await open([definition], { policy: ALLOWED })
  expect(await (await runtime.call({ function: 'clerk' })).result()).toMatchObject({ text: 'Well.' })
  expect(toldLast(model)).toEqual([{ type: 'error-text', value: expect.stringContaining('unknown') as string }])
  expect(await runtime.doubts.list()).toHaveLength(1)
})

test('a tool that only reads asks nobody, and what it says of a failure is told to the model', async () => {
  const { model, definition } = clerk([[['note', { entry: 'one' }]], 'Well.'], { actions: { note: 'read' } }, () => {
    throw new Error('nobody there')
  })
  const { runtime } = await open([definition])
  expect(await (await runtime.call({ function: 'clerk' })).result()).toMatchObject({ text: 'Well.' })
  expect(toldLast(model)).toEqual([{ type: 'error-text', value: expect.stringContaining('nobody there') as string }])
})

test('an identical write in the same run is answered from the first; `each` makes it an action of its own', async () => {
  const twice: readonly Says[] = [[['note', { entry: 'one' }]], [['note', { entry: 'one' }]], 'Done.']
  for (const [actions, noted] of [
    [{}, ['one']],
    [{ note: { repeat: 'each' } }, ['one', 'one']],
  ] as const) {
    const { notes, definition } = clerk(twice, { actions })
    const { runtime } = await open([definition], { policy: ALLOWED })
    expect(await (await runtime.call({ function: 'clerk' })).result()).toMatchObject({ text: 'Done.' })
    expect(notes).toEqual(noted)
  }
})
