import { execFileSync } from 'node:child_process'

import { describeError } from '../src/base/errors.ts'
import type { Method, Outcome } from './method.ts'
import { broken } from './played.ts'
import { nextOf } from './rounds.ts'
import type { Round } from './rounds.ts'
import { Tally } from './tally.ts'
import { emptyTotal, enter, faultsOf, readTotals, writeTotals } from './totals.ts'

export interface Settings {
  readonly minutes: number
  /** At most so many cases. */
  readonly most: number
  /** Not where the last one ended. */
  readonly from?: number | undefined
  /** With this seed and what follows, and nothing is added. */
  readonly repeats?: number | undefined
  /** Where it is added up, and how often meanwhile. */
  readonly totals: string
  readonly keepMinutes: number
}

/** Asked to end: the cases that are under way come to theirs; asked twice, at once. */
let isAsked = false

export function endWhenAsked(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      if (isAsked) process.exit(130)
      isAsked = true
      console.log(`${signal}: what is under way comes to its end; once more, and it is left where it is`)
    })
}

export const wasAsked = (): boolean => isAsked

/** Runs cases and counts what came of them; how many failed. */
export async function campaign(method: Method, settings: Settings): Promise<number> {
  const { first, upTo, round } = await beginning(method, settings)
  const tally = new Tally(commit(), first, round)
  const keepIt = () => {
    if (settings.repeats === undefined && !tally.isEmpty) keep(method, tally, settings.totals)
  }
  const keeping = setInterval(keepIt, settings.keepMinutes * 60_000).unref()
  // However this process ends, unless it is killed.
  process.on('exit', keepIt)
  console.log(`${method.name}, from seed ${first}: ${method.title}`)
  // A case that was asked for by its seed is played, however long it takes to begin.
  const isOver = () =>
    isAsked || (tally.minutes > settings.minutes && (settings.repeats === undefined || !tally.isEmpty))
  const most = Math.min(settings.most, upTo)
  try {
    await method.run({ first, most, isOver, tell: (outcome) => hear(method, tally, outcome) })
  } catch (error) {
    // Without a case nothing was tried: then it is the machine that lacks something.
    if (tally.isEmpty) throw error
    hear(method, tally, broken(tally.last + 1, describeError(error)))
  } finally {
    clearInterval(keeping)
    process.off('exit', keepIt)
    keepIt()
    console.log(inWords(method, tally))
  }
  if (tally.failed[0] !== undefined && !isAsked) console.log(await shortest(method, tally.failed[0]))
  if (settings.repeats === undefined || !tally.isEmpty || isAsked) return tally.figures.failures
  console.error(`${method.name} has no case ${settings.repeats}: nothing was tried`)
  return 1
}

async function shortest(method: Method, seed: number): Promise<string> {
  if (method.shrink !== undefined) return `shortest way to it, of seed ${seed}:\n${await method.shrink(seed)}`
  return method.size !== undefined
    ? `a case has one fault: seed ${seed} is the shortest way to it`
    : `one story of real processes: seed ${seed} is played again as it is, and not made shorter`
}

interface Beginning {
  readonly first: number
  readonly upTo: number
  readonly round?: Round
}

async function beginning(method: Method, { from, repeats, totals }: Settings): Promise<Beginning> {
  const upTo = Number.MAX_SAFE_INTEGER
  if (repeats !== undefined) return { first: repeats, upTo }
  const { campaigns = [], nextSeed = 1 } = readTotals(totals)[method.name] ?? {}
  if (method.size === undefined) return { first: from ?? nextSeed, upTo }
  const { first, most, ...round } = nextOf(campaigns, await method.size(), await method.digest?.())
  return from === undefined ? { first, upTo: most, round } : { first: from, upTo, round }
}

/** After a signal nobody knows whether it was the signal that a case stumbled over: that is told, and not counted. */
function hear(method: Method, tally: Tally, outcome: Outcome): void {
  const isGood = outcome.problems.length === 0
  if (isGood || !isAsked) tally.tell(outcome)
  if (!isGood) print(method, outcome)
  if (!isGood && isAsked) console.log('  not counted: it was asked to end before')
}

/** Read again, since another campaign may have written meanwhile. */
function keep({ name, title, cases }: Method, tally: Tally, path: string): void {
  const totals = readTotals(path)
  const total = (totals[name] ??= emptyTotal(title, cases))
  Object.assign(total, { title, unit: cases })
  enter(total, tally.entry())
  writeTotals(path, totals)
}

function commit(): string {
  const options = { encoding: 'utf8', cwd: import.meta.dirname, stdio: 'pipe' } as const
  const git = (...args: string[]) => execFileSync('git', args, options).trim()
  try {
    const isChanged = git('status', '--porcelain', '--', '../src', '.', '../test/support', ':!totals.json') !== ''
    return git('rev-parse', '--short', 'HEAD') + (isChanged ? ' (changed)' : '')
  } catch {
    return 'unknown'
  }
}

function print({ name }: Method, { seed, problems }: Outcome): void {
  console.log(`seed ${seed}:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
  console.log(`  again: npm run faults -- --method ${name} --seed ${seed} --cases 1`)
}

function inWords({ cases: unit }: Method, { figures, minutes }: Tally): string {
  const { cases, runs, effects, faults, failures } = figures
  const kinds = Object.entries(faults).map(([kind, times]) => `${times} × ${kind}`)
  const peaks = Object.entries(figures.peaks).map(([name, value]) => `, at most ${value} ${name}`)
  return `${cases} ${unit} with ${runs} runs and ${effects} effects, ${faultsOf(figures)} faults (${kinds.join(', ')})${peaks.join('')}, ${failures} failures, in ${(minutes * 60).toFixed(0)} s`
}
