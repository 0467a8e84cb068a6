import { expect, test } from 'vitest'

import type { RunId, ThreadId } from '../base/ids.ts'
import { LiveText, RETRY } from './live-text.ts'

const about = (threadId: string) => ({ runId: 'run_1' as RunId, threadId: threadId as ThreadId, agent: 'clerk' })
const delta = (text: string, threadId = 'mine') => ({ ...about(threadId), kind: 'text', delta: text }) as const
const step = (threadId = 'mine') => ({ ...about(threadId), kind: 'step', text: '', toolCalls: [] }) as const

function listening(): LiveText {
  const words = new LiveText()
  words.onlyOf('mine')
  return words
}

test('words behind the end of a step wait until that step is told', () => {
  const words = listening()
  for (const event of [delta('one '), delta('two'), step(), delta('three')]) words.hear(event)
  expect([...words.deltas()]).toEqual(['one ', 'two'])
  expect([...words.deltas()]).toEqual([])
  expect([...words.ofStep('one two')]).toEqual([])
  expect([...words.deltas()]).toEqual(['three'])
})

test('a step that is told before its end was heard does not hold back the next one', () => {
  const words = listening()
  words.hear(delta('one'))
  expect([...words.ofStep('one')]).toEqual(['one'])
  words.hear(step())
  words.hear(delta('two'))
  expect([...words.deltas()]).toEqual(['two'])
})

test('a step of which nothing was heard is told whole, and those of another process leave no trace', () => {
  const words = listening()
  expect([...words.ofStep('elsewhere')]).toEqual(['elsewhere'])
  expect([...words.ofStep('')]).toEqual([])
  words.newAttempt()
  for (const event of [delta('here'), step(), delta('next')]) words.hear(event)
  expect([...words.ofStep('here')]).toEqual(['here'])
  expect([...words.deltas()]).toEqual(['next'])
})

test('what is said before it is known whose words are wanted is kept, of that thread alone', () => {
  const words = new LiveText()
  for (const event of [delta('a', 'another'), delta('m'), step('another')]) words.hear(event)
  words.onlyOf('mine')
  words.hear(delta('b', 'another'))
  expect([...words.deltas()]).toEqual(['m'])
})

test('what a call had said before it broke off is void; one that had said nothing takes nothing back', () => {
  const words = listening()
  const retry = { ...about('mine'), kind: 'retry', error: 'cut', waitMs: 1 } as const
  for (const event of [retry, delta('ha'), retry, delta('half'), delta(' done'), step()]) words.hear(event)
  expect([...words.ofStep('half done')]).toEqual(['ha', RETRY, 'half', ' done'])
})
