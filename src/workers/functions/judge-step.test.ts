import { expect, test } from 'vitest'

import { systemClock } from '../../base/clock.ts'
import type { RunId } from '../../base/ids.ts'
import type { Step } from '../../runs/step.ts'
import type { Store } from '../../store/store.ts'
import { FakeClock } from '../../testing/fake-clock.ts'
import { TOOL_LIMITS } from '../../tools/limits.ts'
import { askProbe, judgeCutOff, judgeDoubted } from './judge-step.ts'

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

/** A database that fails at the first look, and then answers. */
function failingOnce(answer: unknown) {
  let looks = 0
  const read = () => (looks++ === 0 ? Promise.reject(new Error('the disk failed')) : Promise.resolve(answer))
  const warnings: string[] = []
  const ports = {
    store: { read } as unknown as Store,
    clock: systemClock,
    warn: (said: string) => void warnings.push(said),
    runId: 'run_1' as RunId,
    signal: new AbortController().signal,
    mayNotGoOn: () => false,
  }
  return { ports, warnings }
}

const TRIED_AGAIN = ['it will be tried again: the disk failed']

test('who could still do it is looked for until the database answers: its function does not hear of that', async () => {
  const { ports, warnings } = failingOnce([])
  const step = { name: 'pay', tries: 1, state: 'started' } as Step
  const judged = await judgeCutOff(ports, step, { probe: async () => ({ outcome: 'not_done' }) })
  expect(judged).toEqual({ kind: 'restart' })
  expect(warnings).toEqual(TRIED_AGAIN)
})

test('what a person said of it is looked for until the database answers', async () => {
  const { ports, warnings } = failingOnce({ state: 'done', result: 7 })
  const step = { name: 'pay', tries: 1, state: 'in_doubt', actionId: 'act_1' } as unknown as Step
  expect(await judgeDoubted(ports, {} as never, step, {})).toEqual({ kind: 'done', result: 7 })
  expect(warnings).toEqual(TRIED_AGAIN)
})
