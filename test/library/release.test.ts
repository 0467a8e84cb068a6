import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import { ROOT } from '../tidy/tree.ts'

const CHANGELOG = '# Changelog\n\n## Unreleased\n\n- A door.\n\n## 0.1.0 (2026-01-01)\n\n- A house.\n'

/** A small package in a repository of its own. */
function aPackage(changelog = CHANGELOG) {
  const folder = temporaryFolder()
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim()
  const manifest = {
    name: 'house',
    version: '0.1.0',
    license: 'MIT',
    type: 'module',
    files: ['index.js', 'index.d.ts'],
  }
  const exports = { '.': { types: './index.d.ts', default: './index.js' } }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ ...manifest, exports }, null, 2)}\n`)
  writeFileSync(join(folder, 'index.js'), 'export const door = 1\n')
  writeFileSync(join(folder, 'index.d.ts'), 'export declare const door: number\n')
  writeFileSync(join(folder, '.gitignore'), '*.tgz\n')
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog)
  git('init', '--quiet', '--initial-branch=main')
  git('config', 'user.name', 'Somebody')
  git('config', 'user.email', 'somebody@example.com')
  git('add', '.')
  git('commit', '--quiet', '--message', 'A house')
  const release = (...args: readonly string[]) => {
    const script = join(ROOT, 'scripts/release.ts')
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { cwd: folder, encoding: 'utf8' })
    return { status, stdout, stderr }
  }
  return { folder, git, release }
}

test('a release is refused for a dirty tree, an empty changelog, a red suite, a version that is no new one', () => {
  const { folder, release, git } = aPackage()
  expect(release('0.2.0', '--suite', 'false')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('`false` failed') as string,
  })
  expect(release('0.2.0', '--suite', 'touch left-behind').stderr).toContain('left files behind')
  const dirty = release('0.2.0', '--suite', 'touch ran')
  expect(dirty).toMatchObject({ status: 1, stderr: expect.stringContaining('not committed') as string })
  // Refused before the suite, which takes minutes, was run.
  expect(existsSync(join(folder, 'ran'))).toBe(false)
  git('clean', '--quiet', '--force')
  git('tag', 'v0.3.0')
  expect(release('0.3.0', '--suite', 'true').stderr).toContain('v0.3.0 is there already')
  expect(release('0.0.9', '--suite', 'true').stderr).toContain('comes before 0.1.0')
  expect(release('soon', '--suite', 'true').stderr).toContain('no version')
  expect(aPackage(CHANGELOG.replace('- A door.\n\n', '')).release('0.2.0', '--suite', 'true').stderr).toContain(
    'is empty',
  )
  expect(git('log', '--oneline').split('\n')).toHaveLength(1)
})

test('a package with mistakes is not released, and nothing of it is left', () => {
  const { folder, git, release } = aPackage()
  rmSync(join(folder, 'index.d.ts'))
  git('commit', '--quiet', '--all', '--message', 'No types')
  expect(release('0.2.0', '--suite', 'true')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('refused: publint') as string,
  })
  expect(readdirSync(folder).filter((name) => name.endsWith('.tgz'))).toEqual([])
  expect([git('status', '--porcelain'), git('tag')]).toEqual(['', ''])
})

test('a dry run changes nothing; a release leaves a commit, a tag and a package, and publishes nothing', () => {
  const { folder, git, release } = aPackage()
  expect(release('0.2.0', '--dry-run', '--suite', 'true')).toMatchObject({ status: 0, stderr: '' })
  expect([git('status', '--porcelain'), git('tag')]).toEqual(['', ''])

  const made = release('0.2.0', '--suite', 'true')
  expect(made.status).toBe(0)
  expect(made.stdout).toContain('npm publish house-0.2.0.tgz')
  expect(readdirSync(folder).filter((name) => name.endsWith('.tgz'))).toEqual(['house-0.2.0.tgz'])
  expect(git('show', 'v0.2.0:package.json')).toContain('"version": "0.2.0"')
  expect(git('status', '--porcelain')).toBe('')
  expect(readFileSync(join(folder, 'CHANGELOG.md'), 'utf8')).toMatch(
    /^# Changelog\n\n## Unreleased\n\n## 0\.2\.0 \(\d{4}-\d\d-\d\d\)\n\n- A door\.\n\n## 0\.1\.0/,
  )
  // There is nothing new to tell now.
  expect(release('0.2.1', '--suite', 'true').stderr).toContain('is empty')
})
