import { expect, test, vi } from 'vitest'

import { LIMITS } from '../base/limits.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import { Gathering } from './gathering.ts'

const about = (...topics: string[]) => new Set(topics)

function gathering() {
  const clock = new FakeClock()
  const tell = vi.fn<() => void>()
  return { clock, tell, gathered: new Gathering(clock, tell) }
}

test('a burst is told of once, soon after its first commit', () => {
  const { clock, tell, gathered } = gathering()
  gathered.add(about('run.queued'))
  gathered.add(about())
  clock.advance(LIMITS.wakeGatherMs - 1)
  gathered.add(about('run.finished'))
  expect(tell).not.toHaveBeenCalled()
  clock.advance(1)
  expect(tell).toHaveBeenCalledTimes(1)
  clock.advance(LIMITS.quietWakeGatherMs)
  expect(tell).toHaveBeenCalledTimes(1)
})

test('what only readers of events look at is told of after a while', () => {
  const { clock, tell, gathered } = gathering()
  gathered.add(about())
  clock.advance(LIMITS.quietWakeGatherMs - 1)
  gathered.add(about())
  expect(tell).not.toHaveBeenCalled()
  clock.advance(1)
  expect(tell).toHaveBeenCalledTimes(1)
})

test('what somebody may wait for does not wait behind that', () => {
  const { clock, tell, gathered } = gathering()
  gathered.add(about())
  gathered.add(about('run.queued'))
  clock.advance(LIMITS.wakeGatherMs)
  expect(tell).toHaveBeenCalledTimes(1)
  clock.advance(LIMITS.quietWakeGatherMs)
  expect(tell).toHaveBeenCalledTimes(1)
})

test('whoever closes takes what is left to be told, once', () => {
  const { clock, tell, gathered } = gathering()
  expect(gathered.take()).toBe(false)
  gathered.add(about('run.finished'))
  expect(gathered.take()).toBe(true)
  expect(gathered.take()).toBe(false)
  clock.advance(LIMITS.quietWakeGatherMs)
  expect(tell).not.toHaveBeenCalled()
})
