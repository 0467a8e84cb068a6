import { expect, test } from 'vitest'

import { kill } from '../../faults/kill/method.ts'
import type { Outcome } from '../../faults/method.ts'

/** Few, and of every kind: a daemon, a supervisor, a command line, hooks with the spool. */
const SCENES = { first: 1, most: 8 } as const

test('daemon, supervisor, command line and hook killed with SIGKILL: nothing acknowledged is lost, no effect happens twice, nobody is left [durable/acknowledged] [runs/one-terminal] [actions/once] [inbox/never-lost]', async () => {
  const told: Outcome[] = []
  await kill.run({ ...SCENES, isOver: () => false, tell: (outcome) => told.push(outcome) })
  expect(told.flatMap(({ seed, problems }) => problems.map((problem) => `seed ${seed}: ${problem}`))).toEqual([])
  expect(told).toHaveLength(SCENES.most)
  const kinds = told.flatMap(({ faults }) => Object.keys(faults))
  for (const victim of ['daemon', 'supervisor', 'command', 'hook'])
    expect(kinds.filter((kind) => kind.startsWith(victim))).not.toEqual([])
  expect(told.reduce((sum, { effects }) => sum + effects, 0)).toBeGreaterThan(0)
})
