import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { holds } from '../../bench/bench.ts'
import type { Row } from '../../bench/bench.ts'
import { temporaryFolder } from '../support/engines.ts'

// Beside other work, and small: a bound that is missed by more than three times is a regression, whatever the machine does.
test('the benchmark runs small, and no ratio against the raw store in the same run is three times worse than its bound', () => {
  const out = join(temporaryFolder(), 'partial.json')
  const args = ['--quick', '--only', 'store,growth', '--engine', 'sqlite', '--check', '--slack', '3', '--out', out]
  // On a disk: in memory nothing is synced, and what is compared with the raw store is the noise of the machine.
  const env = { ...process.env, TMPDIR: '/var/tmp' }
  const { status, stdout, stderr } = spawnSync(process.execPath, ['bench/run.ts', ...args], { encoding: 'utf8', env })
  expect(status, `${stdout}${stderr}`).toBe(0)
  const { benches } = JSON.parse(readFileSync(out, 'utf8')) as { benches: { bench: string; rows: Row[] }[] }
  expect(benches.map(({ bench }) => bench)).toEqual(['store', 'growth'])
  expect(benches.flatMap(({ rows }) => rows).filter(({ bound }) => bound !== undefined).length).toBeGreaterThan(4)
}, 300_000)

test('a bound that is missed fails, with slack when it is missed by more than that', () => {
  const row = (ratio: number, bound: Row['bound']): Row => ({ name: '', value: 1, unit: '', ratio, bound: bound! })
  const [most, least] = [{ of: 'ratio', most: 2 } as const, { of: 'ratio', least: 0.6 } as const]
  expect([row(2.1, most), row(0.5, least)].map((each) => holds(each))).toEqual([false, false])
  expect([row(5.9, most), row(0.21, least)].map((each) => holds(each, 3))).toEqual([true, true])
  expect([row(6.1, most), row(0.19, least)].map((each) => holds(each, 3))).toEqual([false, false])
})
