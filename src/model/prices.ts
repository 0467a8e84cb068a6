import { LIMITS } from '../base/limits.ts'
import type { ModelPrice } from '../loop/ports.ts'

interface KnownModel {
  readonly price: ModelPrice
  readonly contextTokens: number
}

/** Anthropic: reading a cache costs a tenth of the input, writing it for five minutes a quarter more. */
const anthropic = (input: number, output: number, contextTokens: number, cacheRead = input / 10): KnownModel => ({
  price: { input, output, cacheRead, cacheWrite: input * 1.25 },
  contextTokens,
})

/** OpenAI: writing a cache costs nothing extra. */
const openai = (input: number, output: number, contextTokens: number, cacheRead = input / 10): KnownModel => ({
  price: { input, output, cacheRead, cacheWrite: input },
  contextTokens,
})

/**
 * List prices in US dollars for a million tokens, and windows, as of November 2026. They change: `prices` and
 * `contextTokens` in the configuration come first, and a model that is not here has no price rather than a guessed one.
 */
const KNOWN: Readonly<Record<string, KnownModel>> = {
  'anthropic/claude-opus-5-5': anthropic(4, 20, 1_000_000, 0.2),
  'anthropic/claude-opus-5': anthropic(5, 25, 1_000_000),
  'anthropic/claude-opus-4-8': anthropic(5, 25, 200_000),
  'anthropic/claude-opus-4-7': anthropic(5, 25, 200_000),
  'anthropic/claude-opus-4-6': anthropic(5, 25, 200_000),
  'anthropic/claude-opus-4-5': anthropic(5, 25, 200_000),
  'anthropic/claude-opus-4-1': anthropic(15, 75, 200_000),
  'anthropic/claude-sonnet-5-5': anthropic(2, 10, 1_000_000),
  'anthropic/claude-sonnet-5': anthropic(2, 10, 1_000_000),
  'anthropic/claude-sonnet-4-6': anthropic(3, 15, 200_000),
  'anthropic/claude-sonnet-4-5': anthropic(3, 15, 200_000),
  'anthropic/claude-haiku-4-5': anthropic(1, 5, 200_000),
  'openai/gpt-5.5': openai(5, 30, 1_000_000),
  'openai/gpt-5.4': openai(2.5, 15, 1_000_000),
  'openai/gpt-5.4-mini': openai(0.75, 4.5, 400_000),
  'openai/gpt-5.4-nano': openai(0.2, 1.25, 400_000),
  'openai/gpt-5': openai(1.25, 10, 400_000),
  'openai/gpt-5-mini': openai(0.25, 2, 400_000),
  'openai/gpt-5-nano': openai(0.05, 0.4, 400_000),
  'openai/gpt-4.1': openai(2, 8, 1_000_000, 0.5),
  'openai/gpt-4.1-mini': openai(0.4, 1.6, 1_000_000, 0.1),
  'openai/gpt-4o': openai(2.5, 10, 128_000, 1.25),
  'openai/gpt-4o-mini': openai(0.15, 0.6, 128_000, 0.075),
}

/** A dated name is the same model; any other ending may be a different one at another price. */
const DATED = /-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$/

const known = (id: string): KnownModel | undefined => KNOWN[id] ?? KNOWN[id.replace(DATED, '')]

export type Prices = ReadonlyMap<string, ModelPrice>

/** What the configuration says, else the list price; undefined when nobody knows. */
export const priceOf = (id: string, configured: Prices = new Map()): ModelPrice | undefined =>
  configured.get(id) ?? configured.get(id.replace(DATED, '')) ?? known(id)?.price

/** The window that is used when nobody says another: what a model has, but not more than is worth filling. */
export const contextTokensOf = (id: string): number =>
  Math.min(known(id)?.contextTokens ?? LIMITS.contextTokens, LIMITS.contextTokensMost)

/** The tokens of one try. Cached ones are not among `input`. */
export interface TokenCounts {
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly output: number
}

/** A price for a million in dollars is a price for one in millionths; rounded up, so that something is never nothing. */
export function costMicrousd(price: ModelPrice | undefined, tokens: TokenCounts): number {
  if (price === undefined) return 0
  const { input, output, cacheRead = input, cacheWrite = input } = price
  const exact =
    tokens.input * input + tokens.output * output + tokens.cacheRead * cacheRead + tokens.cacheWrite * cacheWrite
  // What is a hair above a whole number is so by the arithmetic alone.
  return Math.ceil(exact - 1e-6)
}
