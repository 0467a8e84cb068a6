import type { LanguageModelV4Content } from '@ai-sdk/provider'
import { APICallError, Output, generateText, isStepCount, jsonSchema, dynamicTool, streamText, tool } from 'ai'
import type { Tool, ToolApprovalStatus } from 'ai'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { durable } from '../../src/ai-sdk/index.ts'
import { defineFunction } from '../../src/index.ts'
import { until } from '../support/holdfast.ts'
import { answering, mock } from './mock.ts'
import { ALLOWED, noting, open } from './support.ts'

interface Parts {
  readonly model: ReturnType<typeof mock>
  readonly tools?: Readonly<Record<string, Tool>>
  readonly toolApproval?: Readonly<Record<string, ToolApprovalStatus>>
}

/** As they go to the AI SDK, durable or as they are. */
type Wrap = (parts: Parts) => Parts
type Program = (wrap: Wrap) => Promise<unknown>

const asTheyAre: Wrap = (parts) => parts
const asDurable: Wrap = (parts) => durable(parts as never) as unknown as Parts

/** What a program comes to without us, with us, and when it comes to all of it again from the record. */
async function threeTimes(program: Program, policy = ALLOWED) {
  const plain = await program(asTheyAre)
  const ends: unknown[] = []
  const gate = durable({ model: mock([]), tools: { gate: noting([]) }, toolApproval: { gate: 'user-approval' } })
  const definition = defineFunction('program', async () => {
    ends.push(await program(asDurable))
    // It waits here, and begins anew.
    await gate.tools.gate.execute({ entry: 'go on' }, { toolCallId: 'gate', messages: [], context: {} })
  })
  const { runtime } = await open([definition], { policy })
  const call = await runtime.call({ function: 'program' })
  const request = await until('it waits', async () => (await runtime.approvals.list())[0])
  await runtime.approvals.approve(request)
  await call.result()
  return { plain, live: ends[0], recorded: ends[1] }
}

/** Each is an answer of the model, after the other. */
const model = (...answers: readonly (readonly LanguageModelV4Content[])[]) => answering(answers)
const says = (text: string): LanguageModelV4Content => ({ type: 'text', text })
const wants = (toolName: string, input: object, more: object = {}): LanguageModelV4Content => ({
  type: 'tool-call',
  toolCallId: `${toolName}-${JSON.stringify(input)}`,
  toolName,
  input: JSON.stringify(input),
  ...more,
})
const ENTRY = z.object({ entry: z.string() })
const stopWhen = isStepCount(5)
const prompt = 'Go.'

/** What a stream says, without the ids and times that are new each time. */
async function partsOf({ stream }: { readonly stream: AsyncIterable<unknown> }): Promise<unknown[]> {
  const parts: unknown[] = []
  for await (const part of stream as AsyncIterable<Record<string, unknown>>) {
    if (part['type'] === 'start-step' || part['type'] === 'finish-step') continue
    parts.push(part['type'] === 'tool-approval-request' ? part['type'] : { ...part, approvalId: undefined })
  }
  return parts
}

const SEVERAL = [
  [says('Now.'), wants('note', { entry: 'one' }), wants('note', { entry: 'two' })],
  [
    wants('search', {}, { providerExecuted: true }),
    { type: 'tool-result', toolCallId: 'search-{}', toolName: 'search', result: { hits: 2 } },
  ],
  [wants('nobody', {}), wants('note', { entry: 5 })],
  [wants('confirm', { entry: 'sure?' }), wants('note', { entry: 'three' })],
] as const satisfies readonly (readonly LanguageModelV4Content[])[]

const tools = (): Parts['tools'] & {} => ({
  note: noting([]),
  confirm: tool({ description: 'Asked of whoever sits there', inputSchema: ENTRY }),
  search: tool({
    type: 'provider',
    isProviderExecuted: true,
    id: 'mock.search',
    args: {},
    inputSchema: z.object({}),
  } as never),
})

const PROGRAMS: Readonly<Record<string, Program>> = {
  'calls side by side, tools of the provider and of the client, unknown tools and wrong arguments': async (wrap) => {
    const { steps, finishReason } = await generateText({
      ...wrap({ model: model(...SEVERAL), tools: tools() }),
      prompt,
      stopWhen,
    })
    return { content: steps.map(({ content }) => content), finishReason }
  },
  'the same, streamed': async (wrap) => {
    const streamed = streamText({ ...wrap({ model: model(...SEVERAL), tools: tools() }), prompt, stopWhen })
    const { length } = await partsOf(streamed)
    return { isStreamed: length > 0, content: (await streamed.steps).map(({ content }) => content) }
  },
  'bytes, dates and files, as a tool returns them and as a model says them': async (wrap) => {
    const look = dynamicTool({
      description: 'Takes a picture',
      inputSchema: jsonSchema({ type: 'object', properties: {} }),
      execute: async () => ({ taken: new Date(5), bytes: new Uint8Array([1, 2]), at: new URL('https://x.example/') }),
      toModelOutput: ({ output }) => ({ type: 'text', value: String((output as { bytes: Uint8Array }).bytes.length) }),
    })
    const picture = {
      type: 'file' as const,
      mediaType: 'image/png',
      data: { type: 'data' as const, data: new Uint8Array([7]) },
    }
    const asked = model([wants('look', {})], [picture, says('So.')])
    const messages = [
      {
        role: 'user' as const,
        content: [{ type: 'file' as const, data: new Uint8Array([3]), mediaType: 'image/png' }],
      },
    ]
    const { steps, files } = await generateText({ ...wrap({ model: asked, tools: { look } }), messages, stopWhen })
    return { results: steps.map(({ toolResults }) => toolResults), files: files.map(({ base64 }) => base64) }
  },
  'a tool that returns nothing': async (wrap) => {
    const quiet = tool({ inputSchema: ENTRY, execute: async () => {} })
    const asked = model([wants('quiet', { entry: 'x' })], [says('So.')])
    const { steps } = await generateText({ ...wrap({ model: asked, tools: { quiet } }), prompt, stopWhen })
    return steps.map(({ response }) => response.messages)
  },
  'structured output, in parts': async (wrap) => {
    const output = Output.object({ schema: z.object({ name: z.string(), age: z.number() }) })
    const streamed = streamText({ ...wrap({ model: model([says('{"name": "Ann", "age": 7}')]) }), prompt, output })
    let last: unknown
    for await (const part of streamed.partialOutputStream) last = part
    return { last, whole: await streamed.output }
  },
  'what a step prepares: another model, other tools, fewer messages': async (wrap) => {
    const [first, second] = [
      wrap({ model: model([wants('note', { entry: 'one' })]), tools: tools() }),
      wrap({ model: model([], [says('So.')]) }),
    ]
    const { text, steps } = await generateText({
      ...first,
      prompt,
      stopWhen,
      prepareStep: ({ stepNumber, messages }) =>
        stepNumber === 0 ? { activeTools: ['note'] } : { model: second.model, messages: messages.slice(-2) },
    })
    return { text, content: steps.map(({ content }) => content) }
  },
  'another model where the first one refuses, by its status': async (wrap) => {
    const refuses = mock([], {
      asked() {
        throw new APICallError({
          message: 'no',
          url: 'https://x.example/',
          requestBodyValues: {},
          statusCode: 404,
          responseBody: '{}',
        })
      },
    })
    try {
      return await generateText({ ...wrap({ model: refuses }), prompt })
    } catch (error) {
      if (!APICallError.isInstance(error) || error.statusCode !== 404) throw error
      const { text } = await generateText({ ...wrap({ model: mock(['Instead.']) }), prompt })
      return { text, message: error.message, body: error.responseBody }
    }
  },
  'an answer that the program does not wait for any longer': async (wrap) => {
    const never = mock([], {
      asked: (_step, { abortSignal }) =>
        new Promise((_, reject) => abortSignal?.addEventListener('abort', () => reject(abortSignal.reason as Error))),
    })
    try {
      return await generateText({ ...wrap({ model: never }), prompt, abortSignal: AbortSignal.timeout(20) })
    } catch (error) {
      return (error as Error).name
    }
  },
}

test.each(Object.entries(PROGRAMS))('%s: as without us, at first and from the record', async (_name, program) => {
  const { plain, live, recorded } = await threeTimes(program)
  expect([comparable(live), comparable(recorded)]).toEqual([comparable(plain), comparable(plain)])
})

const comparable = (end: unknown) => JSON.parse(JSON.stringify(end, readable)) as unknown

test('what the program itself approves and denies is told as without us, where no rule says otherwise', async () => {
  const program: Program = async (wrap) => {
    const asked = model([wants('note', { entry: 'one' }), wants('quiet', { entry: 'two' })], [says('So.')])
    const quiet = tool({ inputSchema: ENTRY, execute: async () => 1 })
    const toolApproval = { note: 'approved', quiet: { type: 'denied', reason: 'not today' } } as const
    const { steps } = await generateText({
      ...wrap({ model: asked, tools: { note: noting([]), quiet }, toolApproval }),
      prompt,
      stopWhen,
    })
    return steps.map(({ content }) => content.map((part) => ({ ...part, approvalId: undefined })))
  }
  const { plain, live, recorded } = await threeTimes(program, [])
  expect([comparable(live), comparable(recorded)]).toEqual([comparable(plain), comparable(plain)])
})

/** Bytes and errors as what they are; ids that the AI SDK makes up are left out. */
function readable(key: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes ${value.join(' ')}`
  if (value instanceof Error) return value.message
  return key === 'id' && typeof value === 'string' && value.startsWith('ai') ? undefined : value
}

test('what a tool tells of its progress is streamed as it comes; from the record there is its result', async () => {
  const slow = tool({
    inputSchema: ENTRY,
    async *execute({ entry }) {
      yield { status: 'begun' }
      yield { status: 'done', entry }
    },
  })
  const { plain, live, recorded } = await threeTimes(async (wrap) => {
    const asked = model([wants('slow', { entry: 'x' })], [says('So.')])
    const parts = await partsOf(streamText({ ...wrap({ model: asked, tools: { slow } }), prompt, stopWhen }))
    return (parts as { type: string; output?: { status: string }; preliminary?: boolean }[]).flatMap((part) =>
      part.type === 'tool-result' ? [`${part.output!.status}${part.preliminary === true ? ', so far' : ''}`] : [],
    )
  })
  expect(plain).toEqual(['begun, so far', 'done, so far', 'done'])
  expect(live).toEqual(plain)
  expect(recorded).toEqual(['done, so far', 'done'])
})
