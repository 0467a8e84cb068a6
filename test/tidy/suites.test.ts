import { matchesGlob } from 'node:path'
import { expect, test } from 'vitest'
import config from '../../vitest.config.ts'
import { filesBelow } from './tree.ts'

interface Suite {
  readonly test: { readonly name: string; readonly include: readonly string[] }
}
const suites = config.test?.projects as readonly Suite[]

test('every test file belongs to exactly one suite', () => {
  const files = filesBelow('').filter((path) => path.endsWith('.test.ts'))
  const suitesOf = (path: string) =>
    suites
      .filter((suite) => suite.test.include.some((pattern) => matchesGlob(path, pattern)))
      .map(({ test: { name } }) => name)
  const stray = files.map((path) => ({ path, suites: suitesOf(path) })).filter((each) => each.suites.length !== 1)
  expect(stray).toEqual([])
  expect(files.length).toBeGreaterThanOrEqual(10)
})
