import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, inject, onTestFinished, test } from 'vitest'

import type { Outcome } from '../../faults/method.ts'
import { plant } from '../../faults/planted/method.ts'
import { hunksOf, plantedBugs } from '../../faults/planted/patch.ts'
import type { Planted } from '../../faults/planted/patch.ts'
import { ROOT, applyPatch } from '../../faults/planted/private-tree.ts'
import { PROMISES } from '../promises.ts'

const bugs = plantedBugs()

/** Beside the promises: who is let in, and what is told to nobody (docs/security.md). */
const TOPICS = [...PROMISES.map(({ id }) => id), 'doors', 'secrets']

async function judged(chosen: readonly Planted[]): Promise<Outcome[]> {
  const told: Outcome[] = []
  const campaign = {
    first: 1,
    most: chosen.length,
    isOver: () => false,
    tell: (outcome: Outcome) => told.push(outcome),
  }
  await plant(chosen, campaign, { HOLDFAST_TEST_POSTGRES: inject('postgres') })
  return told
}

describe('bugs that are planted', () => {
  test('are at least 25, each numbered, with a sentence, a promise and the tests that catch it', () => {
    expect(bugs.length).toBeGreaterThanOrEqual(25)
    expect(bugs.map(({ name }) => Number.parseInt(name, 10))).toEqual(bugs.map((_, index) => index + 1))
    const wrong = bugs.filter(
      ({ breaks, promise, tests }) =>
        !breaks.endsWith('.') || !TOPICS.includes(promise) || tests.length === 0 || !tests.every(isTest),
    )
    expect(wrong.map(({ name, breaks, promise, tests }) => ({ name, breaks, promise, tests }))).toEqual([])
  })

  test('are spread over all promises', () => {
    const broken = new Set(bugs.map(({ promise }) => promise))
    expect(TOPICS.filter((topic) => !broken.has(topic))).toEqual([])
  })

  test('still fit the sources, each in one place only', () => {
    const unfit = bugs.flatMap((bug) => {
      const trouble = applyPatch(ROOT, bug.path, '--check')
      const places = hunksOf(bug).map(({ file, before }) => occurrences(readFileSync(join(ROOT, file), 'utf8'), before))
      const isAtOne = places.length > 0 && places.every((count) => count === 1)
      return trouble === undefined && isAtOne ? [] : [{ name: bug.name, trouble, places }]
    })
    expect(unfit, 'node faults/planted/refit.ts makes them fit again').toEqual([])
  })

  test('one is caught by its test; not so by another test, and not if it fits no more', async () => {
    const real = bugs.find(({ name }) => name.endsWith('-missed-without-a-line'))!
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-patches-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const unnoticed = { ...real, tests: ['src/base/ids.test.ts'] }
    const unfit = { ...real, path: join(folder, 'unfit.patch') }
    writeFileSync(unfit.path, real.text.replace(/^-.+passedOver/m, '-  nowhere'))
    const [caught, missed, stale] = await judged([real, unnoticed, unfit])
    expect(caught).toMatchObject({ seed: 1, faults: { 'missed-without-a-line': 1 }, problems: [] })
    expect(missed?.problems).toEqual([expect.stringContaining('not caught by src/base/ids.test.ts')])
    expect(stale?.problems).toEqual([expect.stringContaining('does not fit the sources any more')])
  })
})

const isTest = (path: string) => path.endsWith('.test.ts') && existsSync(join(ROOT, path))

const occurrences = (text: string, part: string) => text.split(`\n${part}\n`).length - 1
