import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import type { Outcome } from '../../faults/method.ts'
import type { Fault } from '../../faults/simulation/faults.ts'
import { oneJob } from '../../faults/simulation/jobs.ts'
import { simulation } from '../../faults/simulation/method.ts'
import { fewest } from '../../faults/simulation/shrink.ts'
import { temporaryFolder } from '../support/engines.ts'

/** Any, and one because of what happens in it. */
const SEEDS = [
  { first: 1, most: 5, what: 'any' },
  { first: 9, most: 1, what: 'a worker paused in front of a write whose probe says that it is not done' },
  {
    first: 315,
    most: 1,
    what: 'a cancelled function whose step a paused worker had begun, and a person who says that it was not done',
  },
] as const

async function worlds(first: number, most: number): Promise<Outcome[]> {
  const told: Outcome[] = []
  await simulation.run({ first, most, isOver: () => false, tell: (outcome) => told.push(outcome) })
  return told.toSorted((a, b) => a.seed - b.seed)
}

describe('a simulated world with faults at every statement', () => {
  test.each(SEEDS)('seed $first: $what', async ({ first, most }) => {
    const told = await worlds(first, most)
    expect(told.map(({ seed, problems }) => ({ seed, problems }))).toEqual(
      Array.from({ length: most }, (_, index) => ({ seed: first + index, problems: [] })),
    )
    for (const { runs, effects, faults } of told) {
      expect(runs).toBeGreaterThan(0)
      expect(effects).toBeGreaterThan(0)
      expect(Object.keys(faults)).not.toEqual([])
    }
  })

  test('the same seed is the same world', async () => {
    expect(await worlds(2, 1)).toEqual(await worlds(2, 1))
  })

  test('of the faults of a world that goes wrong only those are left that it takes', async () => {
    const faults = Array.from({ length: 40 }, (_, nth) => ({ nth, kind: 'crash' }) as Fault)
    const needed = [3, 17, 18]
    let looks = 0
    const left = await fewest(faults, async (some) => {
      looks += 1
      return needed.every((nth) => some.some((fault) => fault.nth === nth))
    })
    expect(left.map(({ nth }) => nth)).toEqual(needed)
    expect(looks).toBeLessThan(60)
  })
})

/** What a job tells whose process is this program. */
async function toldBy(program: string, first: number, most: number): Promise<Outcome[]> {
  const script = join(temporaryFolder(), 'program.mjs')
  writeFileSync(script, program)
  const told: Outcome[] = []
  await oneJob(script, { first, most, isOver: () => false, tell: (outcome) => told.push(outcome) }, 0, 1)
  return told
}

/** One product after the other that breaks a promise; seed 3 has work, children, a schedule and a worker whose disk fails. */
const BREAKS = [
  { file: 'base/limits.ts', was: 'recoveries: 20', is: 'recoveries: 0', wrong: /^failed: .* with internal/ },
  {
    file: 'schedule/fire.ts',
    was: 'firings >= options.maxFirings',
    is: 'firings + 1 >= options.maxFirings',
    wrong: /was to fire 3 times: it is ended after 2 with 2/,
  },
  {
    file: 'threads/accept.ts',
    was: '= message.suppressed ??',
    is: `= message.kind === 'completion' ? 'no-notify' : message.suppressed ??`,
    wrong: /messages are dead/,
  },
]

describe('what is wrong with a world', () => {
  test('a run that fails for no reason, a firing that is left out and a message that nobody is shown are told', async () => {
    const worker = new URL('../../faults/simulation/worker.ts', import.meta.url).href
    const [{ problems } = { problems: [] }] = await toldBy(
      `import { registerHooks } from 'node:module'
      const breaks = ${JSON.stringify(BREAKS)}
      registerHooks({
        load(url, context, next) {
          const loaded = next(url, context)
          const broken = breaks.find(({ file }) => url.endsWith('/src/' + file))
          if (broken === undefined) return loaded
          const source = Buffer.from(loaded.source).toString()
          if (!source.includes(broken.was)) throw new Error(broken.file + ' has changed')
          return { ...loaded, source: source.replace(broken.was, broken.is) }
        },
      })
      await import('${worker}')`,
      3,
      1,
    )
    for (const { wrong } of BREAKS) expect(problems).toContainEqual(expect.stringMatching(wrong))
  })

  test('one at which its process breaks has failed, and those after it are played in another', async () => {
    const outcome = { faults: {}, runs: 1, effects: 1, problems: [] }
    const program = `const [first, , most] = process.argv.slice(2).map(Number)
      for (let seed = first; seed < first + most; seed++) {
        if (seed === 2) throw new Error('its store cannot be closed')
        console.log(JSON.stringify({ seed, ...${JSON.stringify(outcome)} }))
      }`
    expect(await toldBy(program, 1, 3)).toEqual([
      { seed: 1, ...outcome },
      {
        seed: 2,
        faults: {},
        runs: 0,
        effects: 0,
        problems: [expect.stringMatching(/^it broke: exit 1 [^]*its store cannot be closed/)],
      },
      { seed: 3, ...outcome },
    ])
  })

  test('where no process says anything, it is not the worlds that are wrong', async () => {
    await expect(toldBy(`throw new Error('cannot begin')`, 1, 9)).rejects.toThrow(/said nothing: [^]*cannot begin/)
  })
})
