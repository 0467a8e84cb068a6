/**
 * Looks for faults, and adds what it saw to faults/totals.json.
 *
 *   npm run faults -- [--method NAME[,NAME…]] [--minutes N] [--cases N] [--seed S]
 *
 * `--minutes` is for each method. Without a seed it goes on where the last campaign ended; with one it repeats that case
 * and what follows, and adds nothing.
 */
import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'

import type { Method, Outcome } from './method.ts'
import { METHODS } from './methods.ts'
import { add, emptyTotal, faultsOf, readTotals, writeTotals } from './totals.ts'
import type { Total } from './totals.ts'

/** Enough to begin with. */
const MOST_NAMED = 20
const TOTALS = new URL('totals.json', import.meta.url).pathname

const { values } = parseArgs({
  options: {
    method: { type: 'string' },
    minutes: { type: 'string', default: '1' },
    cases: { type: 'string' },
    seed: { type: 'string' },
  },
})
const repeats = values.seed !== undefined
const minutes = numberOf('minutes', values.minutes)
const most = values.cases === undefined ? Number.MAX_SAFE_INTEGER : numberOf('cases', values.cases)
const chosen = values.method?.split(',') ?? Object.keys(METHODS)
const unknown = chosen.filter((name) => !Object.hasOwn(METHODS, name))
if (unknown.length > 0)
  refuse(`there is no method ${unknown.join(', ')}; there are: ${Object.keys(METHODS).join(', ')}`)
if (repeats && chosen.length > 1) refuse('a seed is one of a method: add --method NAME')

let failures = 0
for (const name of chosen) {
  try {
    failures += await campaign(await METHODS[name]!())
  } catch (error) {
    // One that broke keeps nobody from the others.
    console.error(`${name} broke, and nothing of this campaign is counted:`, error)
    failures += 1
  }
}
process.exit(failures === 0 ? 0 : 1)

async function campaign(method: Method): Promise<number> {
  const before = readTotals(TOTALS)[method.name] ?? emptyTotal(method.title, method.cases)
  const seen = emptyTotal(method.title, method.cases)
  const failed: number[] = []
  const outcomes: Outcome[] = []
  const began = performance.now()
  const first = repeats ? numberOf('seed', values.seed) : method.finite === true ? 1 : before.nextSeed
  console.log(`${method.name}, from seed ${first}: ${method.title}`)
  await method.run({
    first,
    most,
    isOver: () => performance.now() > began + minutes * 60_000,
    tell(outcome) {
      add(seen, outcome)
      outcomes.push(outcome)
      if (outcome.problems.length === 0) return
      failed.push(outcome.seed)
      print(method, outcome)
    },
  })
  seen.seconds = (performance.now() - began) / 1_000
  console.log(inWords(seen))
  if (!repeats) await keep(method, first, seen, outcomes, failed)
  if (failed[0] !== undefined && method.shrink !== undefined)
    console.log(`shortest way to it, of seed ${failed[0]}:\n${await method.shrink(failed[0])}`)
  return seen.failures
}

/** Read again, since another campaign may have ended meanwhile. */
async function keep(
  method: Method,
  first: number,
  seen: Total,
  outcomes: readonly Outcome[],
  failed: readonly number[],
): Promise<void> {
  const totals = readTotals(TOTALS)
  const total = (totals[method.name] ??= emptyTotal(method.title, method.cases))
  Object.assign(total, { title: method.title, unit: method.cases })
  for (const outcome of outcomes) add(total, outcome)
  total.seconds += seen.seconds
  total.campaigns.push({
    at: new Date().toISOString().slice(0, 16),
    commit: commit(),
    first,
    last: seen.nextSeed - 1,
    cases: seen.cases,
    faults: faultsOf(seen),
    failures: seen.failures,
    failed: failed.slice(0, MOST_NAMED),
    seconds: Math.round(seen.seconds),
  })
  await writeTotals(TOTALS, totals)
}

function commit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8', cwd: import.meta.dirname }).trim()
  return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--', '../src') === '' ? '' : ' (changed)')
}

function print({ name }: Method, { seed, problems }: Outcome): void {
  console.log(`seed ${seed}:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
  console.log(`  again: npm run faults -- --method ${name} --seed ${seed} --cases 1`)
}

function inWords(seen: Total): string {
  const kinds = Object.entries(seen.faults).map(([kind, times]) => `${times} × ${kind}`)
  const peaks = Object.entries(seen.peaks).map(([name, value]) => `, at most ${value} ${name}`)
  return `${seen.cases} ${seen.unit} with ${seen.runs} runs and ${seen.effects} effects, ${faultsOf(seen)} faults (${kinds.join(', ')})${peaks.join('')}, ${seen.failures} failures, in ${seen.seconds.toFixed(0)} s`
}

function numberOf(name: string, value: string | undefined): number {
  const number = Number(value)
  if (!(number > 0)) refuse(`--${name} must be a number above 0, not ${value}`)
  return number
}

function refuse(sentence: string): never {
  console.error(sentence)
  process.exit(2)
}
