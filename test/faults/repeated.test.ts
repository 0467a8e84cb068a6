import { join } from 'node:path'

import { expect, onTestFinished, test, vi } from 'vitest'

import { campaign } from '../../faults/campaign.ts'
import type { Method, Outcome } from '../../faults/method.ts'
import { temporaryFolder } from '../support/engines.ts'

const outcome = (seed: number, problems: readonly string[] = []): Outcome => ({
  seed,
  faults: { crash: 1 },
  runs: 1,
  effects: 1,
  problems,
})

/** Three cases, the last of which fails; it looks whether its time is over before it begins. */
const method = (more: Partial<Method> = {}): Method => ({
  name: 'three',
  title: 'Three cases',
  cases: 'cases',
  run({ first, most, isOver, tell }) {
    for (let seed = first; seed < first + most && seed <= 3 && !isOver(); seed += 1)
      tell(outcome(seed, seed === 3 ? ['lost'] : []))
    return Promise.resolve()
  },
  ...more,
})

/** What it said, and how many failed. */
async function repeated(of: Method, seed: number, minutes = 1) {
  const said: string[] = []
  const spies = (['log', 'error'] as const).map((name) =>
    vi.spyOn(console, name).mockImplementation((...words: unknown[]) => void said.push(words.join(' '))),
  )
  onTestFinished(() => spies.forEach((spy) => spy.mockRestore()))
  const totals = join(temporaryFolder(), 'totals.json')
  const failures = await campaign(of, { minutes, most: 1, repeats: seed, totals, keepMinutes: 1 })
  return { failures, said: said.join('\n') }
}

test('a seed that no case has is not a success: nothing was tried', async () => {
  expect(await repeated(method(), 1)).toMatchObject({ failures: 0 })
  const { failures, said } = await repeated(method(), 4)
  expect(failures).toBe(1)
  expect(said).toContain('three has no case 4: nothing was tried')
})

test('a case that is asked for by its seed is played, however late it is', async () => {
  expect((await repeated(method(), 2, -1)).said).toContain('1 cases')
})

test('a case that fails says how to see it again, and what is the shortest way to it', async () => {
  const { failures, said } = await repeated(method(), 3)
  expect(failures).toBe(1)
  expect(said).toContain('again: npm run faults -- --method three --seed 3 --cases 1')
  expect(said).toContain('not made shorter')
  expect((await repeated(method({ size: () => Promise.resolve(3) }), 3)).said).toContain(
    'one fault: seed 3 is the shortest',
  )
  expect((await repeated(method({ shrink: () => Promise.resolve('kill it once') }), 3)).said).toContain('kill it once')
})
