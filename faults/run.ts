/**
 * Looks for faults, and adds what it saw to faults/totals.json.
 *
 *   npm run faults -- [--method NAME] [--minutes N] [--cases N] [--seed S]
 *
 * Without a seed it goes on where the last campaign ended. With one it repeats that case and what follows, and adds nothing.
 */
import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'

import type { Method, Outcome } from './method.ts'
import { simulation } from './simulation/method.ts'
import { add, emptyTotal, readTotals, writeTotals } from './totals.ts'
import type { Total } from './totals.ts'

const METHODS: readonly Method[] = [simulation]
const TOTALS = new URL('totals.json', import.meta.url).pathname

const { values } = parseArgs({
  options: {
    method: { type: 'string' },
    minutes: { type: 'string', default: '1' },
    cases: { type: 'string' },
    seed: { type: 'string' },
  },
})
const chosen = METHODS.filter(({ name }) => values.method === undefined || name === values.method)
if (chosen.length === 0) {
  console.error(`there is no method ${values.method}; there are: ${METHODS.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}

let failures = 0
for (const method of chosen) failures += await campaign(method)
process.exit(failures === 0 ? 0 : 1)

async function campaign(method: Method): Promise<number> {
  const totals = readTotals(TOTALS)
  const before = (totals[method.name] ??= emptyTotal())
  const seen = emptyTotal()
  const began = performance.now()
  const until = began + Number(values.minutes) * 60_000
  const first = values.seed === undefined ? before.nextSeed : Number(values.seed)
  const most = values.cases === undefined ? Number.MAX_SAFE_INTEGER : Number(values.cases)
  console.log(`${method.title}, from seed ${first}`)
  await method.run({
    first,
    most,
    isOver: () => performance.now() > until,
    tell(outcome) {
      add(seen, outcome)
      if (values.seed === undefined) add(before, outcome)
      if (outcome.problems.length > 0) print(method, outcome)
    },
  })
  seen.seconds = (performance.now() - began) / 1_000
  console.log(inWords(method, seen))
  if (values.seed === undefined) {
    before.seconds += seen.seconds
    before.commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
    before.at = new Date().toISOString().slice(0, 10)
    await writeTotals(TOTALS, totals)
  }
  return seen.failures
}

function print({ name }: Method, { seed, problems }: Outcome): void {
  console.log(`seed ${seed}:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
  console.log(`  again: npm run faults -- --method ${name} --seed ${seed} --cases 1`)
}

function inWords({ cases }: Method, seen: Total): string {
  const faults = Object.values(seen.faults).reduce((sum, times) => sum + times, 0)
  const kinds = Object.entries(seen.faults).map(([kind, times]) => `${times} × ${kind}`)
  return `${seen.cases} ${cases} with ${seen.runs} runs and ${seen.effects} effects, ${faults} faults (${kinds.join(', ')}), ${seen.failures} failures, in ${seen.seconds.toFixed(0)} s`
}
