import { expect, test } from 'vitest'
import { fileLengths, functionLengths, KNOWN_LONG, LIMITS, percentile, summary, tooLong } from './lengths.ts'
import { filesKnownToGit, sourcesBelow, type SourceFile } from './tree.ts'

const CODE = ['src', 'test', 'bench', 'faults', 'dashboard', 'examples', 'scripts']
const files = sourcesBelow(...CODE)
const functions = functionLengths(files)
const lengths = fileLengths(files)

const called = (name: string, lines: number): SourceFile => ({
  path: `src/${name}.ts`,
  text: `export function ${name}() {\n${'  x()\n'.repeat(lines - 2)}}\n`,
})

test('no function and no file is too long', () => {
  expect(tooLong(functions, LIMITS.function.longest)).toEqual([])
  expect(tooLong(lengths, LIMITS.file.longest)).toEqual([])
})

test('the tail stays short', () => {
  const own = (path: string) => path.startsWith('src/') && !path.includes('.test.ts')
  for (const [where, pick] of Object.entries({ src: own, tests: (path: string) => !own(path) })) {
    console.log(`lines of functions in ${where}: ${summary(functions.filter((each) => pick(each.what)))}`)
    console.log(`lines of files in ${where}: ${summary(lengths.filter((each) => pick(each.what)))}`)
  }
  expect(percentile(functions, 0.95)).toBeLessThanOrEqual(LIMITS.function.p95)
  expect(percentile(lengths, 0.95)).toBeLessThanOrEqual(LIMITS.file.p95)
})

test('the measurement saw every file and the functions in them', () => {
  const seen = files.map((file) => file.path)
  const isCode = (path: string) => /\.tsx?$/.test(path) && CODE.some((folder) => path.startsWith(`${folder}/`))
  expect(seen.toSorted()).toEqual((filesKnownToGit()?.filter(isCode) ?? seen).toSorted())
  expect(functions.length).toBeGreaterThan(files.length)
})

test('the ratchet names only what exists', () => {
  const known = [...functions, ...lengths].map((each) => each.what)
  expect(Object.keys(KNOWN_LONG).filter((what) => !known.includes(what))).toEqual([])
})

test('a function that is one line too long is found, and a ratchet only turns one way', () => {
  const measured = functionLengths([called('fits', 70), called('long', 71)])
  expect(measured.map((each) => each.lines)).toEqual([70, 71])
  expect(tooLong(measured, 70)).toEqual(['src/long.ts:long has 71 lines, at most 70'])
  expect(tooLong(measured, 70, { 'src/long.ts:long': 71 })).toEqual([])
  expect(tooLong(measured, 70, { 'src/long.ts:long': 70 })).toHaveLength(1)
  expect(tooLong(measured, 70, { 'src/fits.ts:fits': 90 })).toContain(
    'src/fits.ts:fits is within the limit now: take it off the ratchet',
  )
})

test('methods, generators and callbacks are functions, a describe is not', () => {
  const text = `class A { long() {\n\n} }\nconst b = function* () {\n}\non(() => {\n\n\n})\ndescribe('x', () => {\n})\n`
  const measured = functionLengths([{ path: 'a.ts', text }])
  expect(measured).toEqual([
    { what: 'a.ts:long', lines: 3 },
    { what: 'a.ts:b', lines: 2 },
    { what: 'a.ts:line 6', lines: 4 },
  ])
})

test('a file that is one line too long is found', () => {
  const file = { path: 'src/a.ts', text: 'x()\n'.repeat(501) }
  expect(tooLong(fileLengths([file]), 500)).toEqual(['src/a.ts has 501 lines, at most 500'])
})
