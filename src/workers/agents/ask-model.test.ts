import { expect, onTestFinished, test } from 'vitest'

import { systemClock as clock } from '../../base/clock.ts'
import { systemRandomness as random } from '../../base/ids.ts'
import { EMPTY_CONFIG } from '../../config/config.ts'
import type { ModelPrice } from '../../loop/ports.ts'
import { openSqliteStore } from '../../store/sqlite/store.ts'
import { askModel } from './ask-model.ts'

const request = { system: '', messages: [], tools: [], replies: 0, purpose: 'turn' } as const
const { signal } = new AbortController()

/** A model of the AI SDK that answers, or fails, always the same. */
const sdkModel = (parts: readonly object[] | Error, modelId = 'unheard-of') => ({
  specificationVersion: 'v4',
  provider: 'acme.chat',
  modelId,
  doStream: () =>
    parts instanceof Error ? Promise.reject(parts) : Promise.resolve({ stream: ReadableStream.from(parts) }),
})

const answer = [
  { type: 'text-delta', delta: 'hello' },
  {
    type: 'finish',
    finishReason: { unified: 'stop' },
    usage: { inputTokens: { total: 1_000, cacheRead: 400, cacheWrite: 100 }, outputTokens: { total: 10 } },
  },
]

async function asking(model: ReturnType<typeof sdkModel>, prices?: Record<string, ModelPrice>, costMicrousd?: number) {
  const store = await openSqliteStore({ path: ':memory:', clock, random })
  onTestFinished(() => store.close())
  const warnings: string[] = []
  const ports = { store, clock, random, warn: (message: string) => void warnings.push(message) }
  const config = {
    ...EMPTY_CONFIG,
    folder: '/',
    ...(prices === undefined ? {} : { prices: new Map(Object.entries(prices)) }),
  }
  const limits = costMicrousd === undefined ? {} : { limits: { costMicrousd } }
  const ask = askModel({ model, ...limits }, config, ports)
  return { warnings, ask: () => ask(request, { signal }) }
}

test('a model without a price costs 0, and that is said once', async () => {
  const { warnings, ask } = await asking(sdkModel(answer))
  expect((await ask()).spent).toEqual({ inputTokens: 1_000, outputTokens: 10, costMicrousd: 0 })
  await ask()
  expect(warnings).toEqual([
    expect.stringMatching(/^the price of acme\/unheard-of is not known, so its cost counts as 0; write/),
  ])
})

test('a limit on money that cannot hold is said to have no effect', async () => {
  const { warnings, ask } = await asking(sdkModel(answer), undefined, 5_000_000)
  await ask()
  expect(warnings).toEqual([expect.stringContaining('its limit on money has no effect')])
})

test('with a price the tokens become money, each kind at its own', async () => {
  const prices = { 'acme/unheard-of': { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } }
  const { warnings, ask } = await asking(sdkModel(answer), prices)
  expect((await ask()).spent.costMicrousd).toBe(500 * 3 + 400 * 0.3 + 100 * 3.75 + 10 * 15)
  expect(warnings).toEqual([])
})

test.each([
  ['prompt is too long: 210000 tokens > 200000 maximum', true],
  ["This model's maximum context length is 128000 tokens", true],
  ['Input exceeds the context window of this model', true],
  ['messages: at least one message is required', false],
])('a provider that says "%s" says that it is too long: %s', async (message, tooLong) => {
  const error = Object.assign(new Error(message), { statusCode: 400, responseHeaders: {} })
  const { ask } = await asking(sdkModel(error))
  expect(await ask()).toMatchObject({ kind: 'failed', code: 'model', tooLong })
})
