import { expect, inject, test } from 'vitest'

import type { Outcome } from '../../faults/method.ts'
import { Databases } from '../../faults/zombies/databases.ts'
import { sideBySide } from '../../faults/zombies/method.ts'

/** Of both engines: stopped at an end, a record, a claim, an intent, a delivery and a takeover; one of them with a wrong clock, one that
 * comes back without its database to a command that another has taken over. The first was lost once: it changed hands twice. */
const SEEDS = [1, 2, 3, 7, 8, 21, 25, 41]

test(
  'workers stopped beyond their lease and taken over from: who comes back changes nothing, no effect happens twice, none is lost [runs/fenced] [actions/once] [runs/one-terminal]',
  { timeout: 300_000 },
  async () => {
    const told: Outcome[] = []
    const seeds = [...SEEDS]
    const databases = await Databases.create(inject('postgres'))
    await sideBySide(
      () => seeds.shift(),
      (outcome) => told.push(outcome),
      databases,
      4,
    )
    expect(told.flatMap(({ seed, problems }) => problems.map((problem) => `seed ${seed}: ${problem}`))).toEqual([])
    expect(told).toHaveLength(SEEDS.length)
    const stopped = told.filter(({ faults }) => Object.keys(faults).some((kind) => kind.startsWith('stopped')))
    expect(stopped.length).toBeGreaterThan(SEEDS.length / 2)
    expect(told.reduce((sum, { effects }) => sum + effects, 0)).toBeGreaterThan(SEEDS.length)
  },
)
