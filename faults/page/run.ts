/**
 * Writes docs/reliability.md and its plots from faults/totals.json.
 *
 *   npm run faults:page               writes what is stale
 *   npm run faults:page -- --check    names it
 */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { drawBars } from '../../scripts/docs/svg.ts'
import { readTotals } from '../totals.ts'
import { plotsOf } from './charts.ts'
import { DESCRIBED } from './described.ts'
import { writePage } from './page.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const { values } = parseArgs({
  options: {
    check: { type: 'boolean', default: false },
    totals: { type: 'string', default: join(ROOT, 'faults', 'totals.json') },
    out: { type: 'string', default: join(ROOT, 'docs') },
  },
})

const totals = readTotals(values.totals)
const plots = DESCRIBED.flatMap((described) => {
  const total = totals[described.name]
  return total === undefined ? [] : plotsOf(described, total)
})
const folder = join(values.out, 'reliability')
const wanted = new Map([
  [join(values.out, 'reliability.md'), writePage(totals, plotsOf)],
  ...plots.map((plot) => [join(folder, `${plot.file}.svg`), drawBars(plot)] as const),
])
const there = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
const superfluous = there.filter((file) => !wanted.has(file))
const stale = [...wanted].filter(([file, text]) => !existsSync(file) || readFileSync(file, 'utf8') !== text)

process.stdout.write([...stale.map(([file]) => file), ...superfluous].map((file) => `${file}\n`).join(''))
if (values.check) process.exitCode = stale.length + superfluous.length === 0 ? 0 : 1
else {
  if (plots.length > 0) mkdirSync(folder, { recursive: true })
  for (const [file, text] of stale) writeFileSync(file, text)
  for (const file of superfluous) rmSync(file)
}
