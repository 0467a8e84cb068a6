import { expect, test } from 'vitest'

import type { ModelRequest } from '../loop/ports.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import { aiSdkModel } from './ai-sdk-model.ts'
import type { SdkCall, SdkPart } from './ai-sdk.ts'

const never = new AbortController().signal
const request: ModelRequest = {
  system: 'Be brief.',
  messages: [
    { role: 'user', text: 'hello' },
    { role: 'assistant', text: '', toolCalls: [{ id: 'c1', tool: 'look', input: { at: 1 } }] },
    { role: 'tool', callId: 'c1', tool: 'look', text: 'nothing', failed: false },
    { role: 'tool', callId: 'c2', tool: 'look', text: 'broken', failed: true },
    { role: 'assistant', text: '', toolCalls: [] },
  ],
  tools: [{ name: 'look', description: 'Looks', inputSchema: { type: 'object' } }],
  replies: 1,
  purpose: 'turn',
}
const usage = { inputTokens: { total: 12 }, outputTokens: { total: 3 } }
const finish = (unified: string): SdkPart => ({ type: 'finish', usage, finishReason: { unified } })

function modelSaying(parts: readonly SdkPart[], failure?: Error) {
  const calls: SdkCall[] = []
  const sdk = {
    specificationVersion: 'v4',
    async doStream(call: SdkCall) {
      calls.push(call)
      if (failure !== undefined) throw failure
      return { stream: ReadableStream.from(parts) }
    },
  }
  return { calls, model: aiSdkModel(sdk, { id: 'a/b', quota: 'a', clock: new FakeClock() }) }
}

test('a conversation is put in the words of the AI SDK', async () => {
  const { model, calls } = modelSaying([finish('stop')])
  await model.generate(request, { signal: never })
  expect(calls[0]).toMatchObject({
    prompt: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'hello' }] },
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: { at: 1 } }] },
      { role: 'tool', content: [{ toolCallId: 'c1', output: { type: 'text', value: 'nothing' } }] },
      { role: 'tool', content: [{ toolCallId: 'c2', output: { type: 'error-text', value: 'broken' } }] },
    ],
    tools: [{ type: 'function', name: 'look', inputSchema: { type: 'object' } }],
  })
})

test('an answer is put together from its stream', async () => {
  const call = { type: 'tool-call', toolCallId: 'c9', toolName: 'look' } as const
  const { model } = modelSaying([
    { type: 'text-delta', delta: 'a' },
    { type: 'text-delta', delta: 'b' },
    { ...call, input: '{"at":2}' },
    { ...call, input: '{"at":' },
    finish('tool-calls'),
  ])
  const heard: string[] = []
  const reply = await model.generate(request, { signal: never, onText: (delta) => heard.push(delta) })
  expect(reply).toEqual({
    text: 'ab',
    toolCalls: [
      { id: 'c9', tool: 'look', input: { at: 2 } },
      { id: 'c9', tool: 'look', input: '{"at":' },
    ],
    usage: { inputTokens: 12, outputTokens: 3, costMicrousd: 0 },
    finish: 'tool-calls',
  })
  expect(heard).toEqual(['a', 'b'])
})

test.each([
  ['stop', 'stop'],
  ['length', 'length'],
  ['content-filter', 'refusal'],
  ['other', 'stop'],
])('an answer that ended with %s is %s', async (unified, expected) => {
  const { model } = modelSaying([finish(unified)])
  expect((await model.generate(request, { signal: never })).finish).toBe(expected)
})

test.each<[string, SdkPart[]]>([
  ['without an end', []],
  ['as interrupted', [finish('interrupted')]],
  ['as an error', [finish('error')]],
])('an answer that ends %s was cut off, and its cost is kept [T8]', async (_how, end) => {
  const started = {
    type: 'raw',
    rawValue: { type: 'message_start', message: { usage: { input_tokens: 12 } } },
  } as const
  const { model } = modelSaying([started, { type: 'text-delta', delta: 'a' }, ...end])
  await expect(model.generate(request, { signal: never })).rejects.toMatchObject({
    code: 'model/connection',
    usage: { inputTokens: 12 },
  })
})

test('what a provider says it took is an amount, whatever it says: limits go by it', async () => {
  const odd = {
    input_tokens: 'many',
    cache_read_input_tokens: -5,
    cache_creation_input_tokens: 1.5,
    output_tokens: NaN,
  }
  const started = { type: 'raw', rawValue: { message: { usage: odd } } } as const
  const end = (total: number): SdkPart => ({
    type: 'finish',
    usage: { inputTokens: { total: undefined }, outputTokens: { total } },
    finishReason: { unified: 'stop' },
  })
  const spent = async (total: number) =>
    (await modelSaying([started, end(total)]).model.generate(request, { signal: never })).usage
  expect(await spent(-1)).toEqual({ inputTokens: 2, outputTokens: 0, costMicrousd: 0 })
  expect(await spent(1e300)).toEqual({ inputTokens: 2, outputTokens: 1e12, costMicrousd: 0 })
})

test('a tool call without a name is an answer that was cut off', async () => {
  const { model } = modelSaying([{ type: 'tool-call', toolName: 'look', input: '{}' } as SdkPart, finish('tool-calls')])
  await expect(model.generate(request, { signal: never })).rejects.toMatchObject({ code: 'model/connection' })
})

test.each<[string, object, object]>([
  ['a refused key', { statusCode: 401 }, { code: 'model/auth', status: 401 }],
  [
    'a rate limit',
    { statusCode: 429, responseHeaders: { 'retry-after': '3' } },
    { code: 'model/rate-limit', retryAfterMs: 3_000 },
  ],
  ['a missing key', { name: 'AI_LoadAPIKeyError' }, { code: 'model/auth', status: undefined }],
  ['a broken connection', {}, { code: 'model/connection', status: undefined }],
  ['an event that makes no sense', { name: 'AI_JSONParseError' }, { code: 'model/connection' }],
])('%s is told as what it is, before and inside the stream', async (_what, fields, expected) => {
  const failure = Object.assign(new Error('no'), fields)
  await expect(modelSaying([], failure).model.generate(request, { signal: never })).rejects.toMatchObject(expected)
  const inside = modelSaying([{ type: 'error', error: failure }])
  await expect(inside.model.generate(request, { signal: never })).rejects.toMatchObject(expected)
})
