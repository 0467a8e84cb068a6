import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

const NOBODY = 65_534

/** What a user who may not enter it says of these paths; we may be one whom nothing keeps out. */
function asNobody(paths: readonly string[]): unknown {
  const program = `import { isBarred } from ${JSON.stringify(new URL('home.ts', import.meta.url).href)}
    console.log(JSON.stringify(${JSON.stringify(paths)}.map(isBarred)))`
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    ...user,
    env: {},
    encoding: 'utf8',
  })
  return JSON.parse(stdout)
}

test('a folder that may not be entered is barred; one that is not there is not', () => {
  const folder = mkdtempSync('/tmp/holdfast-test-')
  const [locked, open] = [join(folder, 'locked'), join(folder, 'open')]
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [path, mode] of [
    [folder, 0o755],
    [locked, 0o000],
    [open, 0o777],
  ] as const) {
    mkdirSync(path, { recursive: true })
    chmodSync(path, mode)
  }
  expect(asNobody([locked, join(locked, 'work'), open, join(open, 'work')])).toEqual([true, true, false, false])
})
