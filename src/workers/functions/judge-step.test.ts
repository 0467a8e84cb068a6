import { expect, test } from 'vitest'

import { FakeClock } from '../../testing/fake-clock.ts'
import { TOOL_LIMITS } from '../../tools/limits.ts'
import { askProbe } from './judge-step.ts'

test('a probe that takes too long is told to stop, and has no answer', async () => {
  const clock = new FakeClock()
  const { signal } = new AbortController()
  let told: AbortSignal | undefined
  const probe = (call: { readonly signal: AbortSignal }) => {
    told = call.signal
    return new Promise<never>(() => {})
  }
  const asked = askProbe({ clock, signal }, 'run_1/pay', { probe })
  clock.advance(TOOL_LIMITS.probeMs - 1)
  expect(told?.aborted).toBe(false)
  clock.advance(1)
  expect(told?.aborted).toBe(true)
  expect(await asked).toEqual({ outcome: 'unknown', said: '; its probe failed: timed out after 30s' })
})
