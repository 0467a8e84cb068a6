import { expect, test } from 'vitest'

import { Stop } from './stop.ts'

test('who asks before it is told hears of it, and so does who asks after that', () => {
  const [before, after] = [new Stop(), new Stop()]
  const { signal } = before
  expect({ aborted: signal.aborted, isTold: before.isTold }).toEqual({ aborted: false, isTold: false })
  before.tell('timeout')
  after.tell('timeout')
  for (const stop of [before, after]) {
    expect(stop.isTold).toBe(true)
    expect(stop.signal).toMatchObject({ aborted: true, reason: 'timeout' })
  }
  expect(before.signal).toBe(signal)
})

test('the first word counts', () => {
  const [asked, unasked] = [new Stop(), new Stop()]
  void asked.signal
  for (const stop of [asked, unasked]) {
    stop.tell('cancelled')
    stop.tell('lease-lost')
    expect(stop.reason).toBe('cancelled')
    expect(stop.signal.reason).toBe('cancelled')
  }
})
