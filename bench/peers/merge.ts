/**
 * Several runs of the peers' benchmark become one: for each peer and workload the median of all that were measured.
 *
 *   node bench/peers/merge.ts OUT RESULTS [RESULTS ...]
 *
 * The workloads that are over soon can so be measured more often than those that take minutes.
 */
import { readFileSync, writeFileSync } from 'node:fs'

type Value = number | string | null | undefined
type Measured = Readonly<Record<string, Value>> & { readonly peer: string; readonly workload: string }

interface Results {
  readonly node: string
  readonly kernel: string
  readonly scale: number
  readonly commit?: string
  readonly runs: number
  readonly peers: Readonly<Record<string, unknown>>
  readonly services: Readonly<Record<string, unknown>>
  readonly raw: readonly Measured[]
}

const [out, ...files] = process.argv.slice(2)
if (out === undefined || files.length === 0) {
  console.error('usage: node bench/peers/merge.ts OUT RESULTS [RESULTS ...]')
  process.exit(2)
}

const results = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as Results)
const newest = results[0]!
for (const [index, each] of results.entries())
  for (const what of ['node', 'kernel', 'scale', 'commit'] as const)
    if (each[what] !== newest[what])
      throw new Error(`${files[index]} was measured with another ${what}: ${each[what]}, not ${newest[what]}`)

const raw = results.flatMap((each) => each.raw)
const merged = {
  ...newest,
  runs: results.reduce((sum, { runs }) => sum + runs, 0),
  peers: Object.assign({}, ...results.toReversed().map(({ peers }) => peers)) as Results['peers'],
  services: Object.assign({}, ...results.toReversed().map(({ services }) => services)) as Results['services'],
  median: Object.fromEntries(
    [...new Set(raw.map(({ peer }) => peer))].map((peer) => [
      peer,
      mediansOf(raw.filter((each) => each.peer === peer)),
    ]),
  ),
  raw,
}
writeFileSync(out, `${JSON.stringify(merged, null, 1)}\n`)

function mediansOf(measured: readonly Measured[]): Record<string, Record<string, Value>> {
  const workloads = [...new Set(measured.map(({ workload }) => workload))]
  return Object.fromEntries(
    workloads.map((workload) => [workload, together(measured.filter((each) => each.workload === workload))]),
  )
}

/** Why there is no figure, where no run has one. */
function together(measured: readonly Measured[]): Record<string, Value> {
  const good = measured.filter((each) => each['na'] === undefined && each['error'] === undefined)
  if (good.length === 0) {
    const { na, error } = measured[0]!
    return na === undefined ? { error } : { na }
  }
  const names = new Set(good.flatMap((each) => Object.keys(each)))
  for (const name of ['run', 'peer', 'workload']) names.delete(name)
  const medians = [...names].map((name) => [name, median(good.map((each) => each[name]))])
  return { ...Object.fromEntries(medians), okRuns: good.length }
}

function median(values: readonly Value[]): number | null {
  const sorted = values.filter((value) => typeof value === 'number' && Number.isFinite(value)) as number[]
  sorted.sort((a, b) => a - b)
  const middle = sorted.length >> 1
  if (sorted.length === 0) return null
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
