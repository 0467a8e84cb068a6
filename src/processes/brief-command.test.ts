import { expect, test } from 'vitest'

import { systemClock as clock } from '../base/clock.ts'
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
  const left = readProcess(Number(stdout))
  expect(left === undefined || left.dead).toBe(true)
})

test('one that is not there is not an accident', async () => {
  expect(await runBriefly(['/no/such/program'], { clock, timeoutMs: 1_000, env })).toEqual({ code: null, stdout: '' })
})
