import type { ModelUsage } from './ports.ts'

export const NO_USAGE: ModelUsage = { inputTokens: 0, outputTokens: 0, costMicrousd: 0 }

export const addUsage = (left: ModelUsage, right: ModelUsage): ModelUsage => ({
  inputTokens: left.inputTokens + right.inputTokens,
  outputTokens: left.outputTokens + right.outputTokens,
  costMicrousd: left.costMicrousd + right.costMicrousd,
})
