import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { METHODS } from '../../faults/methods.ts'
import { plotsOf } from '../../faults/page/charts.ts'
import { DESCRIBED } from '../../faults/page/described.ts'
import { writePage } from '../../faults/page/page.ts'
import { add, emptyTotal } from '../../faults/totals.ts'
import type { Totals } from '../../faults/totals.ts'
import { ROOT } from './tree.ts'

const page = (...args: string[]) =>
  spawnSync(process.execPath, ['faults/page/run.ts', ...args], { cwd: ROOT, encoding: 'utf8' })

test('the page on reliability is that of the counters: `npm run faults:page` writes it', () => {
  const { stdout, stderr, status } = page('--check')
  expect({ stale: stdout, stderr, status }).toEqual({ stale: '', stderr: '', status: 0 })
})

test('a page that is not that of its counters is named', () => {
  const out = mkdtempSync(join(tmpdir(), 'page-'))
  const totals = join(out, 'totals.json')
  writeFileSync(totals, JSON.stringify(someTotals(0)))
  expect(page('--out', out, '--totals', totals).status).toBe(0)
  expect(page('--out', out, '--totals', totals, '--check').status).toBe(0)
  writeFileSync(totals, JSON.stringify(someTotals(3)))
  const { stdout, status } = page('--out', out, '--totals', totals, '--check')
  expect({ stdout, status }).toEqual({ stdout: expect.stringContaining('reliability.md'), status: 1 })
  expect(readFileSync(join(out, 'reliability.md'), 'utf8')).toContain('no failure')
})

test('a failure is on the page, with the seeds among which it is', () => {
  const text = writePage(someTotals(3), plotsOf)
  expect(text).toContain('**3 failing cases**')
  expect(text).toContain('up to 3 that nobody has explained yet')
  expect(text).toContain('seeds 1, 2, 3 of 1 to 8')
  expect(text).toContain('**Nothing was run since.**')
})

test('every method is described, in the order of the report', () => {
  const names = DESCRIBED.map(({ name }) => name)
  expect(Object.keys(METHODS)).toEqual(names.filter((name) => Object.hasOwn(METHODS, name)))
})

function someTotals(failing: number): Totals {
  const total = emptyTotal('A title', 'kills')
  for (let seed = 1; seed <= 8; seed++) {
    const problems = seed <= failing ? ['an effect happened twice'] : []
    add(total, { seed, faults: { 'a kill': 2 }, runs: 1, effects: 1, recoveryMs: seed * 100, problems })
  }
  const campaign = { at: '2026-11-16T01:00', commit: 'abc1234', first: 1, last: 8, cases: 8, faults: 16, seconds: 4 }
  const failed = Array.from({ length: failing }, (_, index) => index + 1)
  total.campaigns.push({ ...campaign, failures: failing, failed })
  return { kill: total }
}
