import { expect, test } from 'vitest'

import { describeTurns } from './conversation.ts'
import type { ActionView, StepView } from '../words/views.ts'

const entry = (kind: StepView['kind'], body: object) => ({ kind, ...body, seq: 1 }) as StepView

test('a reply without words says whether it called tools', () => {
  const calls = [{ id: 'c', tool: 'shell', input: {} }]
  expect(describeTurns([entry('assistant', { text: '', toolCalls: calls })], [])).toEqual(['< (tool calls)'])
  expect(describeTurns([entry('assistant', { text: '', toolCalls: [] })], [])).toEqual(['< (nothing)'])
})

test('what a model says cannot steer the terminal', () => {
  expect(describeTurns([entry('assistant', { text: '\u001b[2Jgone' })], [])).toEqual(['< \\u{1b}[2Jgone'])
})

test('an action that evidence has settled says which', () => {
  const action = { tool: 'pay', input: {}, state: 'done', result: 1, step: 1 }
  const shown = (settledBy: string) =>
    describeTurns([entry('assistant', { text: 'x' })], [{ ...action, settledBy } as unknown as ActionView])
  expect(shown('its probe')).toEqual(['< x\n  · pay {}: done, settled by its probe (1)'])
  expect(shown('its tool')).toEqual(['< x\n  · pay {}: done (1)'])
})
