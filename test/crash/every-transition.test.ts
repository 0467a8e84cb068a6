import { expect, test } from 'vitest'

import { allNodes, dottedName, parse } from '../tidy/syntax.ts'
import type { Node } from '../tidy/syntax.ts'
import { sourcesBelow } from '../tidy/tree.ts'
import type { SourceFile } from '../tidy/tree.ts'
import { SCENARIOS } from './scenarios.ts'

/** What is passed to a store's `apply`: `store.apply(finishRun, …)` gives `finishRun`. */
function appliedIn(file: SourceFile): string[] {
  return allNodes(parse(file), 'CallExpression').flatMap((call) => {
    const callee = call['callee'] as Node
    const property = callee.type === 'MemberExpression' ? dottedName(callee['property']) : undefined
    if (property !== 'apply') return []
    const [first] = call['arguments'] as readonly Node[]
    return [dottedName(first) ?? `something without a name at ${file.path}:${call.start}`]
  })
}

/** The contract's own cases are tests, and the store's pass on what they are given. */
const isProduct = ({ path }: SourceFile) => !path.startsWith('src/testing/') && !path.endsWith('.test.ts')

const applied = new Set(sourcesBelow('src').filter(isProduct).flatMap(appliedIn))

test('every transition that is applied anywhere has a scenario in which it is interrupted at each point', () => {
  const covered = new Set(SCENARIOS.map(({ change }) => change))
  expect([...applied].filter((name) => !covered.has(name))).toEqual([])
})

test('the scan saw the transitions', () => {
  expect(applied.size).toBeGreaterThanOrEqual(10)
  for (const name of ['finishRun', 'claimRun', 'takeOverRun', 'renewLeases']) expect([...applied]).toContain(name)
})

test('a planted transition is found, under whatever store it is applied', () => {
  const text = `await store.apply(one, 1)\nawait this.#options.store.apply(two)\nstore?.apply(three)\nstore.apply(() => {})\n`
  expect(appliedIn({ path: 'src/a.ts', text })).toEqual([
    'one',
    'two',
    'three',
    expect.stringContaining('something without a name at src/a.ts'),
  ])
})
