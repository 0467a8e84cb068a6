import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import type { ContainmentKind } from '../../src/processes/command.ts'
import {
  availableModes,
  begin,
  endOf,
  fixture,
  freshFolder,
  newMark,
  processesWith,
  seen,
  specOf,
  within,
} from './support.ts'

const modes = await availableModes()
const TIMES = process.env.HOLDFAST_DEEP === '1' ? 100 : Math.ceil(30 / modes.length)
const AT_ONCE = 8

const fifo = `${freshFolder()}.never`
execFileSync('mkfifo', [fifo])

describe.each(modes)('in containment %s', (containment) => {
  test(
    `a stubborn command leaves nothing behind, ${TIMES} times of ${TIMES} [R2] [control/stop-means-stopped]`,
    { timeout: 120_000 },
    async () => {
      for (let done = 0; done < TIMES; done += AT_ONCE) {
        const batch = Array.from({ length: Math.min(AT_ONCE, TIMES - done) }, () => cancelStubborn(containment))
        for (const { left, tookMs } of await Promise.all(batch)) {
          expect(left).toEqual([])
          expect(tookMs).toBeLessThan(5_000)
        }
      }
    },
  )
})

async function cancelStubborn(containment: ContainmentKind) {
  const token = `stubborn-${newMark()}`
  // By its mark alone nothing is found that has no environment; the kernel's containments do not need one.
  const scrub = containment === 'mark' || containment === 'group' ? [] : ['scrub']
  const away = seen('away')
  const argv = [fixture('stubborn.sh'), token, fifo, ...scrub] as const
  const { command } = await begin(specOf([...argv], { containment, graceMs: 300 }), { onStderr: away.reader })
  await away.promise
  const asked = performance.now()
  command.stop('cancelled')
  const end = endOf(await within(10_000, command.ended, 'no end'))
  const left = processesWith(token)
  expect(end.stopped?.why).toBe('cancelled')
  expect(end.survivorsKilled).toBeGreaterThan(0)
  return { left, tookMs: performance.now() - asked }
}
