import { expect, test } from 'vitest'

import { describeError } from '../base/errors.ts'
import { parseConfig } from './config.ts'

const failure = (text: string): string => {
  try {
    parseConfig(text, 'c.json')
  } catch (error) {
    return describeError(error)
  }
  throw new Error('nothing was wrong')
}

const agent = (more: string) => `{ "agents": { "a": { "model": "a/b",\n ${more} } } }`

test('limits and window of an agent are read, in the units that the loop counts in', () => {
  const limits = '"limits": { "turns": 50, "tokens": 2000000, "costUsd": 0.25, "timeout": "2h", "truncatedReplies": 1 }'
  expect(parseConfig(agent(`${limits}, "contextTokens": 32000`), 'c.json').agents.get('a')).toMatchObject({
    limits: { turns: 50, tokens: 2_000_000, costMicrousd: 250_000, timeoutMs: 7_200_000, truncatedReplies: 1 },
    contextTokens: 32_000,
  })
  expect(parseConfig(agent('"limits": { "turns": 3 }'), 'c.json').agents.get('a')).toMatchObject({
    limits: { turns: 3 },
  })
})

test('prices are read by the name of the model', () => {
  const text = '{ "prices": { "anthropic/claude-x": { "input": 3, "output": 15, "cacheRead": 0 } } }'
  expect(parseConfig(text, 'c.json').prices).toEqual(
    new Map([['anthropic/claude-x', { input: 3, output: 15, cacheRead: 0 }]]),
  )
})

test.each([
  [agent('"limits": { "turns": 0 }'), 'c.json:2:14: "agents.a.limits.turns" must be a whole number, 1 or more'],
  [agent('"limits": { "tokens": "many" }'), '"agents.a.limits.tokens" must be a whole number, 1 or more'],
  [agent('"limits": { "costUsd": -1 }'), '"agents.a.limits.costUsd" must be an amount in US dollars, more than 0'],
  [agent('"limits": { "cost": 1 }'), '"agents.a.limits.cost" is not a setting; known here: turns, tokens, costUsd'],
  [agent('"limits": { "timeout": 60 }'), '"agents.a.limits.timeout" must be a duration in quotes'],
  [agent('"limits": 5'), '"agents.a.limits" must be an object'],
  [agent('"contextTokens": 1.5'), '"agents.a.contextTokens" must be a whole number, 1 or more'],
  ['{ "agents": { "a": { "command": ["x"], "limits": {} } } }', '"agents.a.limits" is for agents with a model'],
  ['{ "prices": { "a/b": { "input": 1 } } }', '"prices.a/b.output" is missing; write { "input": 3, "output": 15 }'],
  ['{ "prices": { "a/b": { "input": "1", "output": 1 } } }', '"prices.a/b.input" must be an amount in US dollars'],
])('%s is refused, with its place and what to do', (text, words) => {
  expect(failure(text)).toContain(words)
})

test('a model behind an address is a model', () => {
  const text = '{ "agents": { "a": { "model": "openai-compatible:http://127.0.0.1:11434/v1/llama" } } }'
  expect(parseConfig(text, 'c.json').agents.get('a')).toMatchObject({ kind: 'model' })
})
