import { expect, test } from 'vitest'

import { blocksIn, commandsIn, type Block } from './docs.ts'
import { readSource } from './tree.ts'

/** What a newcomer reads first: every command in these is run by something, not only looked up. */
const FIRST = ['README.md', 'docs/first-ten-minutes.md']

/**
 * Commands that cannot be run in an empty home within seconds, and what runs them: a file, and what it says there. A block that
 * can be run is marked as `run` instead.
 */
const ELSEWHERE: Readonly<Record<string, readonly [file: string, says: string]>> = {
  'npm ci': ['scripts/clean-clone.sh', 'newcomer npm ci'],
  'npm start': ['scripts/clean-clone.sh', 'newcomer npm start'],
  'npm test': ['scripts/clean-clone.sh', 'newcomer npm test'],
  // Before `npm start`, by itself; and for every suite that looks at the page.
  'npm run dashboard': ['test/support/built-dashboard.ts', 'dashboard'],
  'npm run demo': ['test/story/demo.test.ts', `'demo'`],
  'holdfast demo': ['test/story/demo.test.ts', `'demo'`],
  'npm install holdfast': ['test/library/package.test.ts', `'install', '--no-audit'`],
  'holdfast up --workers 16': ['test/story/machines.test.ts', `up()`],
  'claude -p': ['test/hooks/first-ten-minutes.test.ts', 'pageSays'],
  'holdfast threads list': ['test/hooks/first-ten-minutes.test.ts', `'threads', 'list'`],
}

const unrun = (blocks: readonly Block[]) =>
  blocks
    .filter(({ language, marks }) => language === 'sh' && !marks.includes('run'))
    .flatMap(commandsIn)
    .filter(({ words }) => words[0] !== 'export')
    .filter(({ words }) => !Object.keys(ELSEWHERE).some((known) => words.join(' ').startsWith(known)))
    .map(({ place, words }) => `${place}: "${words.join(' ')}" is run by nothing`)

test('every command of the first pages is run by a test', () => {
  const blocks = FIRST.flatMap((path) => blocksIn(readSource(path)))
  expect(blocks.filter(({ marks }) => marks.includes('run')).length).toBeGreaterThan(5)
  expect(unrun(blocks)).toEqual([])
})

test('what is said to run them does', () => {
  for (const [file, says] of Object.values(ELSEWHERE)) expect(readSource(file).text, file).toContain(says)
})

test('a command that nothing runs is found, at its line', () => {
  const text = ['```sh', 'npm ci', 'holdfast runs list', '```', ''].join('\n')
  expect(unrun(blocksIn({ path: 'docs/a.md', text }))).toEqual(['docs/a.md:3: "holdfast runs list" is run by nothing'])
})
