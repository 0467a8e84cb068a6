import { expect, test } from 'vitest'

import { LIMITS } from '../base/limits.ts'
import type { Entry } from './conversation.ts'
import { retold } from './retold.ts'

const entry = (kind: 'user' | 'assistant', text: unknown) => ({ kind, body: { text } }) as unknown as Entry

test('what was said is quoted line by line, and what says nothing is left out', () => {
  const told = retold([
    entry('user', 'one\ntwo'),
    entry('assistant', ''),
    entry('assistant', 7),
    entry('assistant', 'three'),
  ])
  expect(told).toContain('You were told:\n> one\n> two\n\nYou said:\n> three\n\nWhat you are told now:\n\n')
})

test('half a character is replaced: a request can be written as JSON', () => {
  expect(retold([entry('user', 'a\ud800b')]).isWellFormed()).toBe(true)
})

test('nothing said is nothing told', () => {
  expect(retold([])).toBe('')
  expect(retold([entry('assistant', '  ')])).toBe('')
})

test('of a long conversation the end is told', () => {
  const told = retold([entry('user', 'a'.repeat(LIMITS.retoldCharacters)), entry('assistant', 'the end')])
  expect(told.length).toBeLessThan(LIMITS.retoldCharacters + 300)
  expect(told).toContain('> the end')
})
