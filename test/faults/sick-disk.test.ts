import { describe, expect, onTestFinished, test } from 'vitest'

import { canTrace } from '../../faults/power-loss/record.ts'
import { casesOf, play } from '../../faults/sick-disk/case.ts'
import type { Case } from '../../faults/sick-disk/case.ts'
import { canMount } from '../../faults/sick-disk/mount.ts'
import { SCENARIOS } from '../../faults/sick-disk/scenarios.ts'
import { builtProgram } from '../support/built-program.ts'

/** Something of everything: so many calls of each kind that fails. */
function spread(cases: readonly Case[], most: number): Case[] {
  const kinds = Object.values(Object.groupBy(cases, ({ fault }) => `${fault.layer} ${fault.errno}`))
  return kinds.flatMap((kind) => kind[Math.floor(kind.length / 2)] ?? []).slice(0, most)
}

describe.runIf(canTrace())('a disk that fails is said with a code, and nothing that was acknowledged is lost', () => {
  test.each([
    { name: 'a message is sent', most: 6 },
    { name: 'a run is submitted to a new home', most: 2 },
  ])('when $name', async ({ name, most }) => {
    const cases = await casesOf(
      SCENARIOS.find((scenario) => scenario.name === name)!,
      await builtProgram(),
      canMount(),
    )
    onTestFinished(() => cases[0]?.template.remove())
    expect(cases.length).toBeGreaterThan(50)
    for (const each of spread(cases, most)) expect((await play(each)).problems).toEqual([])
  })
})
