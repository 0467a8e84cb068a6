import { expect, test } from 'vitest'

import { unallowed } from '../../faults/kill/account.ts'
import { kill } from '../../faults/kill/method.ts'
import type { Outcome } from '../../faults/method.ts'
import type { Store } from '../../src/store/store.ts'

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

test('a line that nobody asked for is told, and one that nobody allowed', async () => {
  const actions = [
    { id: 'plain', tool: 'plain', state: 'done', approval: null },
    { id: 'yes', tool: 'careful', state: 'done', approval: 'consumed' },
    { id: 'no', tool: 'careful', state: 'denied', approval: 'denied' },
    { id: 'unused', tool: 'careful', state: 'done', approval: 'approved' },
    { id: 'unasked', tool: 'careful', state: 'done', approval: null },
  ]
  const store = { read: async () => actions } as unknown as Store
  const lines = (...more: string[]) => unallowed(store, new Set(['entry']), ['entry', 'plain', 'yes', ...more])
  expect(await lines()).toEqual([])
  for (const line of ['no', 'unused', 'unasked', 'stranger'])
    expect(await lines(line)).toEqual([expect.stringContaining(`${line} `)])
})
