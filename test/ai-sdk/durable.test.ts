import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { APICallError, ToolLoopAgent, generateText, isStepCount, streamText, tool } from 'ai'
import type { ToolSet } from 'ai'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { durable, idempotencyKey } from '../../src/ai-sdk/index.ts'
import { findRun } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { defineFunction } from '../../src/index.ts'
import { sql } from '../../src/store/sql.ts'
import { run as execute } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import type { TestDatabase } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { mock } from './mock.ts'
import type { Says } from './mock.ts'
import { ALLOWED, noting, open } from './support.ts'

const SCRIPT: readonly Says[] = [[['note', { entry: 'one' }]], [['note', { entry: 'two' }]], 'Both are noted.']

type Parts = ReturnType<typeof durable<ToolSet>>

/** The ways in which a program of the AI SDK has a loop. */
const LOOPS: Readonly<Record<string, (parts: Parts) => Promise<string>>> = {
  generateText: async (parts) =>
    (await generateText({ ...parts, prompt: 'Note two things.', stopWhen: isStepCount(9) })).text,
  streamText: async (parts) =>
    streamText({ ...parts, prompt: 'Note two things.', stopWhen: isStepCount(9), onError: () => {} }).text,
  'ToolLoopAgent.generate': async (parts) =>
    (await new ToolLoopAgent({ ...parts, instructions: 'Be brief.' }).generate({ prompt: 'Note two things.' })).text,
  'ToolLoopAgent.stream': async (parts) =>
    (await new ToolLoopAgent({ ...parts, instructions: 'Be brief.' }).stream({ prompt: 'Note two things.' })).text,
}

async function runOf(database: TestDatabase, id: string): Promise<Run> {
  const store = await database.open()
  return (await store.read(findRun, id as Run['id']))!
}

async function approveTheOne({ approvals }: Awaited<ReturnType<typeof open>>['runtime']): Promise<void> {
  const [request] = await until('it asks', async () => {
    const found = await approvals.list()
    return found.length === 1 ? found : undefined
  })
  await approvals.approve(request!)
}

describe.each(Object.entries(LOOPS))('%s', (_name, loop) => {
  test('with a durable model and durable tools comes to the end that it has without', async () => {
    const notes: string[] = []
    const wrapped = durable({ model: mock(SCRIPT), tools: { note: noting(notes) } })
    // Made outside, as a program would: whose run it is shows when it is used.
    const clerk = defineFunction('clerk', () => loop(wrapped as never))
    const { runtime, warnings } = await open([clerk], { policy: ALLOWED })
    const calls = [await runtime.call({ function: 'clerk' }), await runtime.call({ function: 'clerk' })]
    expect(await Promise.all(calls.map((call) => call.result()))).toEqual(Array(2).fill('Both are noted.'))
    expect(notes.toSorted()).toEqual(['one', 'one', 'two', 'two'])
    expect(warnings).toEqual([])
  })
})

describe.each(engines)('on $name', (engine) => {
  test('what the answers cost is on the bill of the run, and its steps and actions are in its record', async () => {
    const database = await engine.database()
    const clerk = defineFunction('clerk', () =>
      LOOPS['generateText']!(durable({ model: mock(SCRIPT), tools: { note: noting([]) } }) as never),
    )
    const { runtime } = await open([clerk], { store: database.url, policy: ALLOWED })
    const call = await runtime.call({ function: 'clerk' })
    await call.result()
    await runtime.close()
    expect(await runOf(database, call.runId)).toMatchObject({
      state: 'succeeded',
      inputTokens: 30,
      outputTokens: 15,
    })
  })

  test('a rate limit that is told is waited for, by everybody on the account [model/patient]', async () => {
    const database = await engine.database()
    let refused = 0
    const model = mock(['At last.'], {
      asked() {
        refused += 1
        if (refused === 1) throw tooMany('60')
      },
    })
    const clerk = defineFunction('clerk', async () => {
      const { text } = await generateText({ ...durable({ model }), prompt: 'Hello.' })
      return text
    })
    const { runtime } = await open([clerk], { store: database.url })
    const call = await runtime.call({ function: 'clerk' })
    expect(await call.result()).toBe('At last.')
    expect(refused).toBe(2)
  })

  test('a rate limit that is too long to wait for parks the run; when it is over another process goes on [model/patient]', async () => {
    const database = await engine.database()
    const notes: string[] = []
    let isOver = false
    const model = mock(SCRIPT, {
      asked(step) {
        if (step === 1 && !isOver) throw tooMany('7200000')
      },
    })
    const wrapped = durable({ model, tools: { note: noting(notes) } })
    const clerk = defineFunction('clerk', () => LOOPS['streamText']!(wrapped as never))
    const opening = { home: join(temporaryFolder(), 'home'), store: database.url, policy: ALLOWED }
    const first = await open([clerk], opening)
    const { runId } = await first.runtime.call({ function: 'clerk', key: 'notes' })
    const store = await database.open()
    const parked = await until('it is parked', async () => {
      const run = await store.read(findRun, runId as Run['id'])
      return run?.state === 'parked' ? run : undefined
    })
    expect(parked.resumeAt).toBeGreaterThanOrEqual(parked.createdAt + 7_200_000)
    await first.runtime.close()
    expect(model.doStreamCalls).toHaveLength(2)

    await store.apply(twoHoursLater)
    isOver = true
    const second = await open([clerk], opening)
    const call = await second.runtime.call({ function: 'clerk', key: 'notes' })
    expect(await call.result()).toBe('Both are noted.')
    expect(call.runId).toBe(runId)
    // The first answer is read from the record, and is not on the bill again.
    expect(model.doStreamCalls).toHaveLength(4)
    expect(notes).toEqual(['one', 'two'])
    expect(await store.read(findRun, runId as Run['id'])).toMatchObject({
      attempt: 2,
      inputTokens: 30,
      outputTokens: 15,
    })
  })
})

/** As far as the database knows of time. */
function* twoHoursLater(): Transition<void> {
  yield* execute(sql`update runs set resume_at = resume_at - 7200000 where resume_at is not null`)
  yield* execute(sql`update quotas set blocked_until = blocked_until - 7200000, next_slot = next_slot - 7200000`)
}

const tooMany = (retryAfterMs: string) =>
  new APICallError({
    message: 'too many',
    url: '',
    requestBodyValues: {},
    statusCode: 429,
    responseHeaders: { 'retry-after-ms': retryAfterMs },
  })

test('words are streamed as they come', async () => {
  const heard: string[] = []
  const model = mock(['One two three.'])
  const talker = defineFunction('talker', async () => {
    const { textStream } = streamText({ ...durable({ model }), prompt: 'Count.' })
    for await (const word of textStream) heard.push(word)
  })
  const { runtime } = await open([talker])
  await (await runtime.call({ function: 'talker' })).result()
  expect(heard).toEqual(['One ', 'two ', 'three.'])
})

describe('a cancel', () => {
  test.each(['generateText', 'streamText'] as const)('reaches the model in the middle of %s', async (name) => {
    const asked = Promise.withResolvers<void>()
    const model = mock(['Never.'], {
      asked(_step, { abortSignal }) {
        asked.resolve()
        return new Promise((_, reject) => abortSignal?.addEventListener('abort', () => reject(new Error('aborted'))))
      },
    })
    const clerk = defineFunction('clerk', () => LOOPS[name]!(durable({ model }) as never))
    const { runtime } = await open([clerk])
    const call = await runtime.call({ function: 'clerk' })
    await asked.promise
    await call.cancel()
    await expect(call.result()).rejects.toMatchObject({ code: 'run/cancelled' })
  })

  test('reaches a tool, and its run ends when that has ended [control/stop-means-stopped]', async () => {
    const begun = Promise.withResolvers<void>()
    const ended: string[] = []
    const slow = noting([], async (_entry, signal) => {
      begun.resolve()
      await new Promise((stop) => signal?.addEventListener('abort', stop))
      // Ending takes a while; nobody may say before that it is over.
      await sleep(100)
      ended.push('stopped')
      throw new Error('stopped')
    })
    const wrapped = durable({ model: mock(SCRIPT), tools: { note: slow } })
    // Its program does not wait for the tool.
    const clerk = defineFunction('clerk', (run) => {
      const stopped = new Promise((_, reject) =>
        run.signal.addEventListener('abort', () => reject(new Error('stopped'))),
      )
      return Promise.race([LOOPS['streamText']!(wrapped as never), stopped])
    })
    const { runtime } = await open([clerk], { policy: ALLOWED })
    const call = await runtime.call({ function: 'clerk' })
    await begun.promise
    await call.cancel()
    await expect(call.result()).rejects.toMatchObject({ code: 'run/cancelled' })
    expect(ended).toEqual(['stopped'])
    expect(await runtime.doubts.list()).toMatchObject([{ tool: 'note', state: 'in_doubt' }])
  })
})

test('a tool may be a loop itself: what it asks and does is recorded too, and is not asked or done again', async () => {
  const notes: string[] = []
  const [outer, inner] = [mock([[['research', {}]], [['note', { entry: 'three' }]], 'Done.']), mock(SCRIPT)]
  const helper = durable({ model: inner, tools: { note: noting(notes) }, toolApproval: { note: 'approved' } })
  const research = tool({
    description: 'Asks somebody else',
    inputSchema: z.object({}),
    execute: () => LOOPS['generateText']!(helper as never),
  })
  const clerk = defineFunction('clerk', async () => {
    const tools = { research, note: noting(notes) }
    const wrapped = durable({ model: outer, tools, toolApproval: { research: 'approved' } })
    return (await generateText({ ...wrapped, prompt: 'Go.', stopWhen: isStepCount(9) })).text
  })
  const { runtime } = await open([clerk])
  const call = await runtime.call({ function: 'clerk' })
  await approveTheOne(runtime)
  expect(await call.result()).toBe('Done.')
  expect(inner.doGenerateCalls).toHaveLength(3)
  expect(outer.doGenerateCalls).toHaveLength(3)
})

test('an answer that is under way beside a call that waits for a person is recorded before its run is parked', async () => {
  const [gate, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow = mock(['In the end.'], {
    asked() {
      asked.resolve()
      return gate.promise
    },
  })
  const clerk = defineFunction('clerk', () =>
    Promise.all([
      LOOPS['generateText']!(durable({ model: mock(SCRIPT), tools: { note: noting([]) } }) as never),
      generateText({ ...durable({ model: slow }), prompt: 'Take your time.' }).then(({ text }) => text),
    ]),
  )
  const { runtime } = await open([clerk])
  const call = await runtime.call({ function: 'clerk' })
  const decide = async (entry: string) => {
    const request = await until('it asks', async () => {
      const [found] = await runtime.approvals.list()
      return (found?.input as { entry?: string } | undefined)?.entry === entry ? found : undefined
    })
    await runtime.approvals.approve(request)
  }
  await asked.promise
  await until('it asks', async () => (await runtime.approvals.list())[0])
  // Long enough to be parked, if nobody waited for the answer.
  await sleep(100)
  gate.resolve()
  await decide('one')
  await decide('two')
  expect(await call.result()).toEqual(['Both are noted.', 'In the end.'])
  expect(slow.doGenerateCalls).toHaveLength(1)
})

test('another question than the one that is recorded is noticed, and nothing is done twice', async () => {
  const notes: string[] = []
  let time = 0
  const clerk = defineFunction('clerk', async () => {
    const wrapped = durable({ model: mock(SCRIPT), tools: { note: noting(notes) } })
    return (await generateText({ ...wrapped, prompt: `It is ${++time} o'clock.`, stopWhen: isStepCount(9) })).text
  })
  const { runtime } = await open([clerk])
  const call = await runtime.call({ function: 'clerk' })
  await approveTheOne(runtime)
  await expect(call.result()).rejects.toMatchObject({
    code: 'run/validation',
    message: expect.stringMatching(/its code has changed since it began: it comes to step model \w+ where model \w+/),
  })
  expect(notes).toEqual([])
})

test('other arguments than those that are recorded are noticed, and nothing is done with either', async () => {
  const performed: number[] = []
  let count = 0
  const dice = tool({
    inputSchema: z.object({}).transform(() => ({ number: ++count })),
    execute: ({ number }) => performed.push(number),
  })
  const clerk = defineFunction('clerk', () =>
    LOOPS['generateText']!(durable({ model: mock([[['dice', {}]], 'Done.']), tools: { dice } }) as never),
  )
  const { runtime } = await open([clerk])
  const call = await runtime.call({ function: 'clerk' })
  await approveTheOne(runtime)
  await expect(call.result()).rejects.toMatchObject({
    code: 'run/validation',
    message: expect.stringContaining('it calls dice with other arguments'),
  })
  expect(performed).toEqual([])
})

test('a tool can ask for the key of its call, which is the same for every try', async () => {
  const keys: string[] = []
  const wrapped = durable({ model: mock(SCRIPT), tools: { note: noting([], () => keys.push(idempotencyKey())) } })
  const { runtime } = await open([defineFunction('clerk', () => LOOPS['generateText']!(wrapped as never))], {
    policy: ALLOWED,
  })
  await (await runtime.call({ function: 'clerk' })).result()
  expect(new Set(keys).size).toBe(2)
  expect(() => idempotencyKey()).toThrow('there is no idempotency key here')
})

test('outside of a run it says what to do; with the run in its hand it needs no function around it', async () => {
  const { model } = durable({ model: mock(['Hello.']) })
  await expect(generateText({ model, prompt: 'Hi.' })).rejects.toMatchObject({ code: 'usage/ai-sdk' })
  expect(() => durable({ model: 'openai/gpt-5' })).toThrow('is the name of a model')
  const clerk = defineFunction('clerk', async (run) => {
    const wrapped = durable({ run, model: mock(['Hello.']) })
    return (await generateText({ ...wrapped, prompt: 'Hi.' })).text
  })
  const { runtime } = await open([clerk])
  expect(await (await runtime.call({ function: 'clerk' })).result()).toBe('Hello.')
})

test('a thread of another agent is refused', async () => {
  const { runtime } = await open([defineFunction('one', () => 1), defineFunction('two', () => 2)])
  await (await runtime.call({ function: 'one', threadId: 'diary' })).result()
  await expect(runtime.call({ function: 'two', threadId: 'diary' })).rejects.toMatchObject({ code: 'usage/agent' })
})
