import { LIMITS } from '../base/limits.ts'
import type { Usage } from '../runs/run.ts'

/** What one run may spend, over all of its attempts. */
export interface RunLimits {
  /** Replies of the model. */
  readonly turns: number
  /** Input and output together. */
  readonly tokens: number
  readonly costMicrousd: number
  /** From its first start, time that it was parked excluded. */
  readonly timeoutMs: number
  /** Replies in a row that were cut off. */
  readonly truncatedReplies: number
}

export const DEFAULT_LIMITS: RunLimits = {
  turns: LIMITS.turns,
  tokens: LIMITS.runTokens,
  costMicrousd: LIMITS.runCostMicrousd,
  timeoutMs: LIMITS.runMs,
  truncatedReplies: LIMITS.truncatedReplies,
}

export interface Spent {
  readonly turns: number
  readonly usage: Usage
}

/** The limit that is reached, in words; undefined while there is something left of each. */
export function limitReached(limits: RunLimits, { turns, usage }: Spent): string | undefined {
  const tokens = usage.inputTokens + usage.outputTokens
  if (turns >= limits.turns) return `it has had the ${counted(limits.turns)} model calls that it may have`
  if (tokens >= limits.tokens) return `it may spend ${counted(limits.tokens)} tokens and has spent ${counted(tokens)}`
  if (usage.costMicrousd >= limits.costMicrousd)
    return `it may cost ${dollars(limits.costMicrousd)} and has cost ${dollars(usage.costMicrousd)}`
  return undefined
}

/** `spent: 12 model calls, 40,210 tokens in, 1,200 out, 0.14 USD`. */
export function inWords({ turns, usage }: Spent): string {
  const { inputTokens, outputTokens, costMicrousd } = usage
  const calls = `${counted(turns)} model ${turns === 1 ? 'call' : 'calls'}`
  return `spent: ${calls}, ${counted(inputTokens)} tokens in, ${counted(outputTokens)} out, ${dollars(costMicrousd)}`
}

const counted = (count: number) => count.toLocaleString('en')

/** To the cent, or as exactly as it takes to be more than nothing. */
function dollars(microusd: number): string {
  const usd = microusd / 1_000_000
  return `${usd === 0 || usd >= 0.01 ? usd.toFixed(2) : usd.toPrecision(1)} USD`
}
