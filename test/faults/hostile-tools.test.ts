import { expect, test } from 'vitest'

import { sideBySide } from '../../faults/hostile-tools/method.ts'
import type { Outcome } from '../../faults/method.ts'

const CANCELS = 6

/** By what is there: processes are looked for where Linux lists them. */
test.skipIf(process.platform !== 'linux')(
  'commands that do not want to end are cancelled, in each containment that this machine has: no process is left, the output is bounded, the daemon answers [control/stop-means-stopped] [R2]',
  { timeout: 300_000 },
  async () => {
    const told: Outcome[] = []
    let seed = 0
    await sideBySide(
      () => (seed < CANCELS ? (seed += 1) : undefined),
      (outcome) => told.push(outcome),
      4,
    )
    expect(told.flatMap(({ seed: of, problems }) => problems.map((problem) => `seed ${of}: ${problem}`))).toEqual([])
    expect(told).toHaveLength(CANCELS)
  },
)
