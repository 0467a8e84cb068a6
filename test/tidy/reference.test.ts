import { spawnSync } from 'node:child_process'

import { expect, test } from 'vitest'

import { errorRows, errorsInSources, IN_OTHER_WORDS } from '../../scripts/docs/errors.ts'
import { filesBelow, ROOT, sourcesBelow } from './tree.ts'

// As a process: it loads the whole command line, which takes longer when each file is transformed first.
test('the pages that follow from the code are those of the code: `npm run docs` writes them', () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['scripts/docs.ts', '--check'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  expect({ stale: stdout, stderr, status }).toEqual({ stale: '', stderr: '', status: 0 })
  expect(filesBelow('docs/reference')).toHaveLength(5)
})

test('every code of the page of errors is one, with a sentence and what to do', () => {
  const rows = errorRows()
  expect(rows.filter((row) => row.says === '' || row.do === '')).toEqual([])
  expect(rows.map(({ code }) => code)).not.toContain('rebase-merge/head-name')
  const sources = sourcesBelow('src')
  expect(rows.filter(({ code }) => sources.every(({ text }) => !text.includes(`'${code}'`)))).toEqual([])
  // Words of the page that the code has by now are not needed twice.
  const stale = errorRows({}).filter(({ code, ...found }) => {
    const words = IN_OTHER_WORDS[code] ?? {}
    return (words.says !== undefined && found.says !== '') || (words.do !== undefined && found.do !== '')
  })
  expect(stale).toEqual([])
})

test('nearly every error says what to do', () => {
  const errors = errorsInSources()
  const codes = new Set(errors.map(({ code }) => code))
  const silent = [...codes].filter((code) => errors.every((each) => each.code !== code || each.remedy === undefined))
  console.log(`errors: ${codes.size} codes; ${silent.length} whose remedy is not in the text: ${silent.join(', ')}`)
  expect(codes.size).toBeGreaterThan(150)
  expect(silent.length / codes.size).toBeLessThan(0.05)
})
