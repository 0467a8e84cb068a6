import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROMISES } from './promises.ts'
import { judge, promisesIn, titlesIn, titlesOf, type Owed } from './tidy/citations.ts'
import { readSource, ROOT, sourcesBelow } from './tidy/tree.ts'

const titles = titlesIn(sourcesBelow('src', 'test'))
const verdict = judge(PROMISES, titles, promisesIn)

test('every promise that is due has a test that proves it', () => {
  console.log(
    `promises: ${verdict.proven.length} proven, ${verdict.notYet.length} not yet: ${verdict.notYet.join(', ')}`,
  )
  expect(verdict.unproven).toEqual([])
})

test('every test that cites a promise cites one that exists', () => {
  expect(titles.length).toBeGreaterThan(30)
  expect(verdict.unknown).toEqual([])
})

test('the table has every promise once, and a promise that is due keeps all of its part company', () => {
  expect(PROMISES).toHaveLength(16)
  expect(new Set(PROMISES.map((promise) => promise.id)).size).toBe(16)
  const lastDue = Math.max(...PROMISES.filter((promise) => promise.due).map((promise) => promise.part))
  expect(PROMISES.filter((promise) => promise.due !== promise.part <= lastDue)).toEqual([])
})

test.runIf(existsSync(join(ROOT, 'README.md')))('the README says every promise that is due', () => {
  const { text } = readSource('README.md')
  expect(PROMISES.filter((promise) => promise.due && !text.includes(promise.id)).map(({ id }) => id)).toEqual([])
})

const owed = (id: string, due: boolean): Owed => ({ id, due, part: 1, text: '' })

const example = (text: string) => titlesOf({ path: 'a.test.ts', text })

test('a due promise without proof, an unknown one and one that is not due yet are told apart', () => {
  const found = example(`test('a sentence [a/proven] [a/unheard-of]', () => {})`)
  expect(judge([owed('a/proven', true), owed('a/missing', true), owed('a/later', false)], found, promisesIn)).toEqual({
    proven: ['a/proven'],
    unproven: ['a/missing'],
    notYet: ['a/later'],
    unknown: [`a.test.ts: [a/unheard-of] in "a sentence [a/proven] [a/unheard-of]"`],
  })
})

// The text below is what the reader of titles is tried on: in it `skip` and `todo` switch nothing off.
test('titles are read from every form of a test, and from nothing that is switched off', () => {
  const found = example(`
    test('one', run); it(\`two \${x}\`, run); test.each(cases)('three', run); describe.for(x)('four', () => {
      test.runIf(y)('five', run); test.skip('six', run); test.todo('seven'); test('eight')
    })
    describe.skip('nine', () => { test('ten', run) }); say('eleven', run); test('a' + ' twelve', { timeout: 1 }, run)`)
  expect(found.map((each) => each.title)).toEqual(['one', 'two …', 'three', 'four', 'five', 'a twelve'])
})

test('the cases of a table have titles too', () => {
  const found = example(`export const cases = [{ title: 'one', async check() {} }, { title: 'two', run: () => {} }]
    const page = { title: 'no case', text: 'x' }`)
  expect(found.map((each) => each.title)).toEqual(['one', 'two'])
})

test('a proof in a suite counts only when a test file loads it', () => {
  const suite = { path: 'src/testing/suite.ts', text: `test('a sentence', run)` }
  const importing = { path: 'test/a.test.ts', text: `import '../src/testing/suite.ts'` }
  expect(titlesIn([suite])).toEqual([])
  expect(titlesIn([suite, importing])).toEqual([{ file: suite.path, title: 'a sentence' }])
})
