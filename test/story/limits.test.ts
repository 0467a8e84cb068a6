import { expect, test } from 'vitest'

import { AgentInstallation } from '../support/agents.ts'

test('an agent that spends more than its configuration allows ends with the limit, its value and the bill', async () => {
  const step = { toolCalls: [{ tool: 'files_list', input: { path: '.' } }] }
  const usage = { inputTokens: 1_000, outputTokens: 100, costMicrousd: 300_000 }
  const replies = Array.from({ length: 9 }, () => ({ ...step, usage }))
  const place = new AgentInstallation({
    agents: { spender: { replies, tools: ['files_list'], limits: { costUsd: 0.75 } } },
  })
  const run = await place.ask('spender')
  expect(run).toMatchObject({
    state: 'failed',
    code: 'budget',
    error: 'it may cost 0.75 USD and has cost 0.90 USD; spent: 3 model calls, 3,000 tokens in, 300 out, 0.90 USD',
    usage: { inputTokens: 3_000, outputTokens: 300, costUsd: 0.9 },
  })
})
