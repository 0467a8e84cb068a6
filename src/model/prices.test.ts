import { expect, test } from 'vitest'

import { LIMITS } from '../base/limits.ts'
import { contextTokensOf, costMicrousd, priceOf } from './prices.ts'

const tokens = (more: Partial<Parameters<typeof costMicrousd>[1]>) => ({
  input: 0,
  cacheRead: 0,
  cacheWrite: 0,
  output: 0,
  ...more,
})

test('dollars for a million tokens are millionths of a dollar for one, rounded up', () => {
  const price = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }
  expect(costMicrousd(price, tokens({ input: 1_000, output: 100 }))).toBe(4_500)
  expect(costMicrousd(price, tokens({ cacheRead: 1 }))).toBe(1)
  expect(costMicrousd(price, tokens({ input: 10, cacheRead: 10, cacheWrite: 10, output: 10 }))).toBe(221)
  // 0.1 * 3 is a hair more than 0.3 to a computer, and not to a bill.
  expect(costMicrousd({ input: 0.1, output: 0 }, tokens({ input: 30 }))).toBe(3)
})

test('what is not said of a cache costs as input does', () => {
  expect(costMicrousd({ input: 2, output: 0 }, tokens({ input: 1, cacheRead: 1, cacheWrite: 1 }))).toBe(6)
})

test('a model that nobody knows costs nothing, and has no price', () => {
  expect(priceOf('openai-compatible:http://127.0.0.1/v1/llama')).toBeUndefined()
  expect(costMicrousd(undefined, tokens({ input: 1_000_000 }))).toBe(0)
})

test('a dated name is the same model; another ending is another model', () => {
  const price = priceOf('anthropic/claude-haiku-4-5')
  expect(price).toMatchObject({ input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 })
  expect(priceOf('anthropic/claude-haiku-4-5-20251001')).toEqual(price)
  expect(priceOf('openai/gpt-5-2025-08-07')).toEqual(priceOf('openai/gpt-5'))
  expect(priceOf('openai/gpt-5-pro')).toBeUndefined()
})

test('the configuration comes first', () => {
  const configured = new Map([['openai/gpt-5', { input: 9, output: 9 }]])
  expect(priceOf('openai/gpt-5', configured)).toEqual({ input: 9, output: 9 })
  expect(priceOf('openai/gpt-5-2025-08-07', configured)).toEqual({ input: 9, output: 9 })
  expect(priceOf('openai/gpt-4o', configured)).toMatchObject({ input: 2.5 })
})

test('a window is what the model has, but not more than is worth filling', () => {
  expect(contextTokensOf('anthropic/claude-haiku-4-5')).toBe(200_000)
  expect(contextTokensOf('anthropic/claude-sonnet-5')).toBe(LIMITS.contextTokensMost)
  expect(contextTokensOf('scripted:./x.json')).toBe(LIMITS.contextTokens)
})
