import { expect, test } from 'vitest'

import { play } from '../../faults/hostile-tools/case.ts'
import { sideBySide } from '../../faults/hostile-tools/method.ts'
import { planOf } from '../../faults/hostile-tools/plan.ts'
import { Starvation } from '../../faults/hostile-tools/survivors.ts'
import type { Yard } from '../../faults/hostile-tools/yard.ts'
import type { Outcome } from '../../faults/method.ts'
import { temporaryFolder } from '../support/engines.ts'

const COMMANDS = 6

/** By what is there: processes are looked for where Linux lists them. */
test.skipIf(process.platform !== 'linux')(
  'commands that do not want to end are cancelled, in each containment that this machine has: no process is left, the output is bounded, the daemon answers [control/stop-means-stopped] [R2]',
  { timeout: 300_000 },
  async () => {
    const told: Outcome[] = []
    let seed = 0
    await sideBySide(
      () => (seed < COMMANDS ? (seed += 1) : undefined),
      (outcome) => told.push(outcome),
      4,
    )
    expect(told.flatMap(({ seed: of, problems }) => problems.map((problem) => `seed ${of}: ${problem}`))).toEqual([])
    expect(told).toHaveLength(COMMANDS)
    const times = (kind: string) => told.reduce((sum, { faults }) => sum + (faults[kind] ?? 0), 0)
    expect(times('cancelled')).toBeGreaterThan(1)
    expect(times('stubborn')).toBeGreaterThan(1)
  },
)

test('what is counted is what has happened: of a command that never began nothing, but that it broke off', async () => {
  const folder = temporaryFolder()
  const submitting = { apply: () => Promise.reject(new Error('the disk is full')), read: () => Promise.resolve([]) }
  const yard = { folder, store: submitting, slowestMs: 0 } as unknown as Yard
  const { problems, faults } = await play(1, planOf(1, [['the best', 'cgroup']]), yard)
  expect(problems[0]).toBe('broke off: Error: the disk is full')
  expect(faults).toEqual({})
})

test('processes that wait for a processor at the same time are late by what one of them waits', () => {
  const waited = new Map([
    [1, 100],
    [2, 100],
  ])
  const starvation = new Starvation([1, 2], (pid) => waited.get(pid) ?? 0)
  waited.set(1, 400).set(2, 350)
  expect(starvation.ms).toBe(300)
})
