import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

import { createRuntime, defineAgent, defineFunction, defineTool, notDone } from '../../src/index.ts'
import type { AgentEvent, LanguageModel } from '../../src/index.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { createRuntime as openRuntime } from '../../src/runtime.ts'
import { stopThread } from '../../src/threads/remove.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { Notebook, clerk, noting, open } from './support.ts'

const brief = (event: AgentEvent): string => {
  if (event.type === 'text') return `text ${event.delta}`
  if (event.type === 'step') return `step ${event.text}`
  if (event.type === 'action') return `${event.tool} ${event.state}`
  if (event.type === 'finished') return `finished ${event.run.state}`
  return event.type
}

async function collect(events: AsyncIterable<AgentEvent>): Promise<string[]> {
  const told: string[] = []
  for await (const event of events) told.push(brief(event))
  return told
}

const STORY = [
  'started',
  'text Writing.',
  'step Writing.',
  'note started',
  'note done',
  'text Done.',
  'step Done.',
  'finished succeeded',
]

describe.each(engines)('a program with a runtime on $name', (engine) => {
  test('an answer is a stream of events, and waiting for it is draining them', async () => {
    const [notebook, { url: store }] = [new Notebook(), await engine.database()]
    const replies = [{ text: 'Writing.', ...noting('milk') }, { text: 'Done.' }]
    const { runtime } = await open(clerk(replies, [notebook.tool]), { store })
    await runtime.start()
    const answer = runtime.ask({ agent: 'clerk', text: 'Write it down.' })
    expect(await collect(answer)).toEqual(STORY)
    // It is over: whoever asks now need not wait.
    expect(await answer.text()).toBe('Done.')
    expect(notebook.entries()).toEqual(['milk'])
    const { threadId, runId } = await answer.sent
    expect(await answer.run()).toMatchObject({ id: runId, threadId, state: 'succeeded' })
  })

  test('whoever leaves in the middle still gets the answer', async () => {
    const { url: store } = await engine.database()
    const { runtime } = await open(clerk([{ text: 'Good evening.' }]), { store })
    await runtime.start()
    const answer = runtime.ask({ agent: 'clerk', text: 'Hello' })
    for await (const event of answer) if (event.type === 'started') break
    expect(await answer.text()).toBe('Good evening.')
  })

  test('a question with a key is asked once, however often a program asks it', async () => {
    const [notebook, { url: store }] = [new Notebook(), await engine.database()]
    const { runtime } = await open(clerk([noting('milk'), { text: 'Done.' }], [notebook.tool]), { store })
    const question = { agent: 'clerk', text: 'Write it down.', key: 'order-7' }
    const sent = await runtime.send(question)
    expect(await runtime.send(question)).toEqual(sent)
    await runtime.start()
    expect(await runtime.ask(question).text()).toBe('Done.')
    // After its end too: the whole story, from the record.
    expect(await collect(runtime.ask(question))).toEqual([
      'started',
      'step ',
      'note started',
      'note done',
      'text Done.',
      'step Done.',
      'finished succeeded',
    ])
    expect(notebook.entries()).toEqual(['milk'])
  })

  test('one process asks, another executes: the same events, its words at once', async () => {
    const [notebook, { url: store }] = [new Notebook(), await engine.database()]
    const agent = clerk([{ text: 'Writing.', ...noting('milk') }, { text: 'Done.' }], [notebook.tool])
    const { runtime: asking, warnings } = await open(agent, { store })
    const { runtime: working } = await open(agent, { store })
    const answer = asking.ask({ agent: 'clerk', text: 'Write it down.' })
    const told = collect(answer)
    await answer.sent
    await working.start()
    expect(await told).toEqual(STORY)
    expect(warnings).toEqual([expect.stringContaining('nobody executes runs')])
  })

  test('the signal of a question cancels its run, durably, and the tool that is under way [runs/cancel-is-final] [R3]', async () => {
    const { url: store } = await engine.database()
    const stop = new AbortController()
    const seen: unknown[] = []
    const patient = defineTool({
      name: 'wait',
      description: 'Waits',
      effect: 'write',
      input: z.object({ n: z.number() }),
      repeat: 'each',
      run: (_input, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            seen.push((signal.reason as Error).name)
            reject(signal.reason as Error)
          })
          stop.abort(new Error('the user left'))
        }),
    })
    const calls = [
      { tool: 'wait', input: { n: 1 } },
      { tool: 'wait', input: { n: 1 } },
    ]
    const { runtime } = await open(clerk([{ toolCalls: calls }, { text: 'never' }], [patient]), { store })
    await runtime.start()
    const answer = runtime.ask({ agent: 'clerk', text: 'Wait.', signal: stop.signal })
    expect(await collect(answer)).toEqual(['started', 'step ', 'wait started', 'wait in_doubt', 'finished cancelled'])
    expect(seen).toEqual(['AbortError'])
    await expect(answer.text()).rejects.toMatchObject({ code: 'run/cancelled' })
  })

  test('a question that is taken back before anybody began is never answered', async () => {
    const { url: store } = await engine.database()
    const { runtime } = await open(clerk([{ text: 'never' }]), { store })
    const stop = new AbortController()
    const answer = runtime.ask({ agent: 'clerk', text: 'Hello', signal: stop.signal })
    await answer.sent
    stop.abort()
    expect(await answer.run()).toMatchObject({ state: 'cancelled' })
    await runtime.start()
    expect(await answer.run()).toMatchObject({ state: 'cancelled' })
    const late = runtime.ask({ agent: 'clerk', text: 'Hello', signal: AbortSignal.abort(new Error('too late')) })
    await expect(late.text()).rejects.toThrow('too late')
  })

  test('a run that fails says why: as an event, as a run, as an error', async () => {
    const { url: store } = await engine.database()
    const { runtime } = await open(clerk([]), { store })
    await runtime.start()
    const answer = runtime.ask({ agent: 'clerk', text: 'Hello' })
    expect((await collect(answer)).at(-1)).toBe('finished failed')
    expect(await answer.run()).toMatchObject({ state: 'failed', code: 'model' })
    await expect(answer.text()).rejects.toMatchObject({
      code: 'run/model',
      message: expect.stringContaining('reply 1') as string,
    })
  })
})

test('a tool that ignores its signal keeps neither its run nor its process', async () => {
  const stop = new AbortController()
  const stubborn = defineTool({
    name: 'hang',
    description: 'Hangs',
    effect: 'write',
    input: z.object({}),
    run: (_input, _signal) => {
      stop.abort()
      return new Promise(() => {})
    },
  })
  const { runtime, warnings } = await open(clerk([{ toolCalls: [{ tool: 'hang', input: {} }] }], [stubborn]))
  await runtime.start()
  const answer = runtime.ask({ agent: 'clerk', text: 'Hang.', signal: stop.signal })
  expect(await collect(answer)).toEqual(['started', 'step ', 'hang started', 'hang in_doubt', 'finished cancelled'])
  expect(warnings).toContainEqual(expect.stringContaining('hang ignores its signal'))
})

test('what a tool says of itself is what the model is told: not done, unknown, refused by rule', async () => {
  const moody = defineTool({
    name: 'pay',
    description: 'Pays',
    effect: 'write',
    input: z.object({ mood: z.enum(['sorry', 'broken']) }),
    run: async ({ mood }, _signal) => {
      throw mood === 'sorry' ? notDone('the account is closed') : new Error('connection reset')
    },
  })
  const pay = (mood: string) => ({ tool: 'pay', input: { mood } })
  const replies = [
    { toolCalls: [pay('sorry'), pay('broken'), pay('angry'), ...noting('x').toolCalls] },
    { text: 'Hm.' },
  ]
  const { runtime } = await open(clerk(replies, [moody, new Notebook().tool]), {
    policy: [{ tool: 'note', decision: 'deny' }, { decision: 'allow' }],
  })
  await runtime.start()
  const actions: Record<string, string | undefined> = {}
  for await (const event of runtime.ask({ agent: 'clerk', text: 'Pay.' })) {
    if (event.type === 'action' && event.state !== 'started') actions[event.state] = event.error
  }
  expect(Object.keys(actions).toSorted()).toEqual(['denied', 'failed', 'in_doubt'])
  expect(actions).toMatchObject({ failed: 'the account is closed', in_doubt: 'it threw: connection reset' })
})

test('a thread goes on where it was, also when its runtime was closed in between', async () => {
  const home = join(temporaryFolder(), 'home')
  const agent = clerk([{ text: 'First.' }, { text: 'Second.' }])
  for (const expected of ['First.', 'Second.']) {
    const { runtime } = await open(agent, { home })
    await runtime.start()
    expect(await runtime.ask({ agent: 'clerk', threadId: 'diary', text: 'Go on.' }).text()).toBe(expected)
    await runtime.close()
  }
})

test('whoever writes to a stopped thread, by its name alone, wants it to go on', async () => {
  const home = join(temporaryFolder(), 'home')
  const { runtime } = await open(clerk([{ text: 'First.' }, { text: 'Second.' }]), { home })
  await runtime.start()
  await runtime.ask({ agent: 'clerk', threadId: 'diary', text: 'Begin.' }).text()
  const operator = await openRuntime({ home })
  onTestFinished(() => operator.close())
  await operator.store.apply(stopThread, 'diary' as ThreadId)
  expect(await runtime.ask({ threadId: 'diary', text: 'Go on.' }).text()).toBe('Second.')
})

test('wrong addresses are errors that say what there is', async () => {
  const { runtime } = await open(clerk([{ text: 'Hm.' }]))
  await expect(runtime.send({ agent: 'clark', text: 'x' })).rejects.toMatchObject({
    code: 'not-found/agent',
    remedy: 'there are: clerk',
  })
  await expect(runtime.send({ threadId: 'nowhere', text: 'x' })).rejects.toMatchObject({ code: 'not-found/thread' })
  await runtime.send({ agent: 'clerk', threadId: 'diary', text: 'x', key: 'k' })
  await expect(runtime.send({ agent: 'clerk', threadId: 'diary', text: 'y', key: 'k' })).rejects.toMatchObject({
    code: 'messages/key-conflict',
  })
  await expect(runtime.send({ agent: 'clark', threadId: 'diary', text: 'x' })).rejects.toMatchObject({
    code: 'usage/agent',
  })
  await expect(runtime.send({ agent: 'clerk', text: ' ' })).rejects.toMatchObject({ code: 'usage/no-text' })
  await expect(runtime.ask({ agent: 'clark', text: 'x' }).text()).rejects.toMatchObject({ code: 'not-found/agent' })
})

test('agents and tools with mistakes are refused together, each at its place', async () => {
  const [one, other] = [new Notebook().tool, new Notebook().tool]
  const agents = [
    defineAgent({ name: 'a', model: 'nonsense', tools: [one, 'shel'] }),
    defineAgent({ name: 'b', model: 'scripted:./x.json', tools: [other] }),
  ]
  const opened = createRuntime({ home: temporaryFolder(), agents })
  await expect(opened).rejects.toThrow(/"agents\.a\.model" is not the name of a model/)
  await expect(opened).rejects.toThrow(/names the tool "shel"/)
  await expect(opened).rejects.toThrow(/"tools\.note" is the name of two different tools/)
})

test('limits of an agent are those of the configuration, in the same words', async () => {
  const { runtime } = await open({ ...clerk([noting('a'), noting('b')], [new Notebook().tool]), limits: { turns: 1 } })
  await runtime.start()
  expect(await runtime.ask({ agent: 'clerk', text: 'Write.' }).run()).toMatchObject({ state: 'failed', code: 'budget' })
})

test('a model of your own is asked as any other', async () => {
  const usage = { inputTokens: 7, outputTokens: 1, costMicrousd: 0 }
  const generate: LanguageModel['generate'] = async ({ messages }, { onText }) => {
    onText?.('You said: ')
    return { text: `You said: ${messages.map((each) => each.text).join()}`, toolCalls: [], usage, finish: 'stop' }
  }
  const { runtime } = await open(defineAgent({ name: 'clerk', model: { id: 'own', quota: 'own', generate } }))
  await runtime.start()
  const answer = runtime.ask({ agent: 'clerk', text: 'Hello' })
  expect(await answer.text()).toBe('You said: Hello')
  expect((await answer.run()).usage).toMatchObject({ inputTokens: 7 })
})

test('two agents of one name are refused', async () => {
  const opened = createRuntime({ home: temporaryFolder(), agents: [clerk([]), clerk([])] })
  await expect(opened).rejects.toMatchObject({ code: 'usage/agent' })
})

test('closing twice is closing once, and an idle runtime closes at once', async () => {
  const runtime = await createRuntime({ home: join(temporaryFolder(), 'home'), agents: [clerk([])] })
  onTestFinished(() => runtime.close())
  await runtime.start()
  await Promise.all([runtime.close(), runtime.close()])
})

test('a start that failed can be asked for again', async () => {
  const home = join(temporaryFolder(), 'home')
  const hello = defineFunction('hello', () => 'hello')
  const runtime = await createRuntime({ home, agents: [hello] })
  onTestFinished(() => runtime.close())
  const side = new DatabaseSync(join(home, 'holdfast.db'))
  onTestFinished(() => side.close())
  side.exec('alter table workers rename to elsewhere')
  await expect(runtime.start()).rejects.toThrow('workers')
  side.exec('alter table elsewhere rename to workers')
  await runtime.start()
  expect(await (await runtime.call({ function: 'hello' })).result()).toBe('hello')
})
