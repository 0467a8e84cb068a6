import { expect, test } from 'vitest'
import { CLAIMS } from './claims/claims.ts'
import { claimsIn, judge, titlesIn } from './tidy/citations.ts'
import { sourcesBelow } from './tidy/tree.ts'

const titles = titlesIn(sourcesBelow('src', 'test'))
const verdict = judge(CLAIMS, titles, claimsIn)

test('every claim that is due has a test that proves it', () => {
  console.log(`claims: ${verdict.proven.length} proven, ${verdict.notYet.length} not yet: ${verdict.notYet.join(', ')}`)
  expect(verdict.unproven).toEqual([])
})

test('every test that cites a claim cites one that exists', () => {
  expect(titles.length).toBeGreaterThan(30)
  expect(verdict.unknown).toEqual([])
})

test('the table has every claim once, numbered without a gap', () => {
  const letters = Object.groupBy(CLAIMS, (claim) => claim.id.charAt(0))
  const counts = Object.entries(letters).map(([letter, claims]) => [letter, claims?.length])
  expect(Object.fromEntries(counts)).toEqual({ W: 7, T: 8, X: 5, M: 15, F: 7, R: 8 })
  for (const claims of Object.values(letters)) {
    expect(claims?.map((claim) => Number(claim.id.slice(1)))).toEqual(claims?.map((_, index) => index + 1))
  }
})

test('a due claim without proof breaks the gate', () => {
  const owed = CLAIMS.map((claim) => ({ ...claim, due: claim.id === 'W1' || claim.id === 'M15' }))
  const title = 'a child that vanished is reported [M15]'
  const { unproven, proven } = judge(owed, [{ file: 'a.test.ts', title }], claimsIn)
  expect({ unproven, proven }).toEqual({ unproven: ['W1'], proven: ['M15'] })
})
