import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { expect, test } from 'vitest'

import { keep, revive } from './kept.ts'
import { Insertions, digestOfPrompt } from './prompt.ts'

const user = (text: string): LanguageModelV4Message => ({ role: 'user', content: [{ type: 'text', text }] })
const system: LanguageModelV4Message = { role: 'system', content: 'Be brief.' }
const said: LanguageModelV4Message = { role: 'assistant', content: [{ type: 'text', text: 'Well.' }] }
const results = (...ids: readonly string[]): LanguageModelV4Message => ({
  role: 'tool',
  content: ids.map((toolCallId) => ({
    type: 'tool-result',
    toolCallId,
    toolName: 'note',
    output: { type: 'text', value: toolCallId },
  })),
})

const texts = (prompt: LanguageModelV4Prompt) =>
  prompt.map(({ role, content }) => (role === 'user' ? (content[0] as { text: string }).text : role))

test('the order in which tools ended does not make another question of it; a word does', () => {
  const asked = [system, user('Go.'), results('a', 'b')]
  expect(digestOfPrompt([system, user('Go.'), results('b', 'a')])).toBe(digestOfPrompt(asked))
  expect(digestOfPrompt([system, user('Go!'), results('a', 'b')])).not.toBe(digestOfPrompt(asked))
  expect(digestOfPrompt([user('half a \ud83d')])).toHaveLength(64)
})

test('a message keeps its place in the conversation, and stands in front of one that was shortened', () => {
  const insertions = new Insertions()
  const first = [system, user('Go.')]
  expect(texts(insertions.into(first, ['Quick.']))).toEqual(['system', 'Go.', 'Quick.'])
  insertions.add(first, ['Quick.'])
  const second = [...first, said, results('a')]
  expect(texts(insertions.into(second, ['Now.']))).toEqual(['system', 'Go.', 'Quick.', 'assistant', 'tool', 'Now.'])
  insertions.add(second, ['Now.'])
  expect(texts(insertions.into([...second, said], []))).toEqual([
    'system',
    'Go.',
    'Quick.',
    'assistant',
    'tool',
    'Now.',
    'assistant',
  ])
  expect(texts(insertions.into([system, said, results('a')], []))).toEqual([
    'system',
    'Quick.',
    'Now.',
    'assistant',
    'tool',
  ])
})

test('dates, addresses and bytes of an answer come back from the record as what they were', () => {
  const answer = {
    at: new Date(1_000),
    url: new URL('https://example.com/a'),
    file: new Uint8Array([1, 2, 3]),
    plain: { $date: 'not one of ours' },
    nothing: undefined,
    deep: [{ more: null }],
  }
  const { nothing: _, ...rest } = answer
  expect(revive(JSON.parse(JSON.stringify(keep(answer))))).toEqual(rest)
})
