import { expect, test } from 'vitest'

import type { Action } from '../actions/action.ts'
import type { Entry } from '../threads/conversation.ts'
import { describeTurns } from './conversation.ts'

const entry = (kind: Entry['kind'], body: Entry['body']) => ({ kind, body, seq: 1 }) as Entry

test('a reply without words says whether it called tools', () => {
  const calls = [{ id: 'c', tool: 'shell', input: {} }]
  expect(describeTurns([entry('assistant', { text: '', toolCalls: calls })], [])).toEqual(['< (tool calls)'])
  expect(describeTurns([entry('assistant', { text: '', toolCalls: [] })], [])).toEqual(['< (nothing)'])
})

test('what a model says cannot steer the terminal', () => {
  expect(describeTurns([entry('assistant', { text: '\u001b[2Jgone' })], [])).toEqual(['< \\u{1b}[2Jgone'])
})

test('an action that evidence has settled says which', () => {
  const action = { tool: 'pay', input: {}, state: 'done', error: null, repeatOf: null, result: 1, entrySeq: 1 }
  const shown = (settledBy: string) =>
    describeTurns([entry('assistant', { text: 'x' })], [{ ...action, settledBy } as unknown as Action])
  expect(shown('its probe')).toEqual(['< x\n  · pay {}: done, settled by its probe (1)'])
  expect(shown('its tool')).toEqual(['< x\n  · pay {}: done (1)'])
})
