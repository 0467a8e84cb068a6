import { expect, test } from 'vitest'

import { sleep, systemClock as clock } from '../base/clock.ts'
import { runBriefly } from './brief-command.ts'
import { readProcess } from './process-table.ts'

const env = { PATH: process.env['PATH'] ?? '' }

test('it says what it printed and how it ended', async () => {
  const end = await runBriefly(['/bin/sh', '-c', 'echo out; echo err >&2; exit 3'], { clock, timeoutMs: 10_000, env })
  expect(end).toEqual({ code: 3, stdout: 'out\n' })
})

test('one that takes too long is killed with what it started', async () => {
  const script = 'sleep 300 & echo $!; wait'
  const { code, stdout } = await runBriefly(['/bin/sh', '-c', script], { clock, timeoutMs: 300, env })
  expect(code).toBeNull()
  // Killed is not yet gone: whoever has to reap it comes in his own time.
  const isGone = () => readProcess(Number(stdout))?.dead ?? true
  for (const deadline = performance.now() + 5_000; !isGone() && performance.now() < deadline;) await sleep(clock, 10)
  expect(isGone()).toBe(true)
})

test('one that is not there is not an accident', async () => {
  expect(await runBriefly(['/no/such/program'], { clock, timeoutMs: 1_000, env })).toEqual({ code: null, stdout: '' })
})
