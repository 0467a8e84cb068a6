import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

test('the pages on speed and scale are those of their figures: `npm run bench:page` writes them', () => {
  const out = mkdtempSync(join(tmpdir(), 'holdfast-pages-'))
  onTestFinished(() => rmSync(out, { recursive: true, force: true }))
  mkdirSync(join(out, 'performance'))
  copyFileSync('docs/scaling.md', join(out, 'scaling.md'))
  const figures = ['own', 'peers', 'limits', 'slower', 'scale'].flatMap((name) => [
    `--${name}`,
    `docs/performance/${name}.json`,
  ])
  const { status, stderr } = spawnSync(process.execPath, ['bench/page/run.ts', ...figures, '--out', out], {
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  for (const page of ['performance.md', 'scaling.md'])
    expect(readFileSync(join(out, page), 'utf8'), page).toBe(readFileSync(join('docs', page), 'utf8'))
})
