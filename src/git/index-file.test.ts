import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { copyIndexFile } from './index-file.ts'

test('an edit of the same size in the second of the index is seen through a copy of it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-index-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [file, index] = [join(folder, 'a.txt'), join(folder, '.git', 'index')]
  const git = (env: Record<string, string>, ...args: readonly string[]) =>
    execFileSync('git', ['-c', 'core.trustctime=false', ...args], { cwd: folder, env: { ...process.env, ...env } })
  const changedIn = (copy: string) => git({ GIT_INDEX_FILE: copy }, 'diff-files', '--name-only').toString().trim()
  // Everything happens within one second: that of the file, of the index and of the edit.
  const second = 1_700_000_000
  git({}, 'init', '-q')
  writeFileSync(file, '1\n')
  utimesSync(file, second, second)
  git({}, 'add', 'a.txt')
  utimesSync(index, second, second)
  writeFileSync(file, '2\n')
  utimesSync(file, second, second)
  const [ours, plain] = [join(folder, 'ours'), join(folder, 'plain')]
  await copyIndexFile(index, ours)
  copyFileSync(index, plain)
  expect([changedIn(ours), changedIn(plain)]).toEqual(['a.txt', ''])
})
