import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesBelow, filesKnownToGit, readSource, ROOT } from './tree.ts'
import { foldersOfThisMachine, machinePaths } from './words.ts'

const files = (filesKnownToGit() ?? filesBelow('')).map(readSource).filter((file) => !file.text.includes('\0'))

test('no file names a folder of the machine that it was written on', () => {
  expect(machinePaths(files)).toEqual([])
  expect(files.length).toBeGreaterThan(30)
  expect(foldersOfThisMachine().length).toBeGreaterThan(0)
})

test.runIf(existsSync(join(ROOT, 'CHANGELOG.md')))('the changelog opens with what is not released yet', () => {
  const headings = readSource('CHANGELOG.md').text.match(/^## .*$/gm)
  expect(headings?.[0]).toMatch(/^## \[?Unreleased\]?$/)
})

test('planted paths are found', () => {
  const planted = {
    path: 'a.md',
    text: ['see /srv', 'code/x.md\nor ', 'home/ann/y.md, https://a.b/srv/code/'].join('/'),
  }
  expect(machinePaths([planted], ['/srv/code'])).toEqual(['a.md:1 names /srv/code/', expect.stringContaining('ann/')])
  expect(foldersOfThisMachine('/tmp/clone', '/')).toEqual(['/tmp/clone'])
  expect(foldersOfThisMachine('/srv/code/clone', '/somebody')).toEqual(['/srv/code', '/somebody'])
})
