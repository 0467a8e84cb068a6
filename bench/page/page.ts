/** The page as markdown. Every number on it comes from the two files of results. */
import { holds } from '../bench.ts'
import type { Row } from '../bench.ts'
import { table } from '../../scripts/docs/markdown.ts'
import { shown, withUnit } from '../../scripts/docs/numbers.ts'
import { boundOf } from '../table.ts'
import { figure } from './figures.ts'
import type { Own, Peers, Result } from './figures.ts'
import type { Plot } from './charts.ts'
import { againstHand, againstLimit, againstSameEnd, limitsOf, limitsTable } from './limits.ts'
import type { Limit } from './limits.ts'
import { REMARKS } from './remarks.ts'
import type { Beside } from './remarks.ts'
import { slowerTable } from './slower.ts'
import type { Slower } from './slower.ts'
import type { Checked } from './targets.ts'

const optional = (value: number | undefined) => (value === undefined ? '' : shown(value))

const verdict = (met: boolean | undefined) => (met === undefined ? 'not measured' : met ? 'met' : '**missed**')

const targetTable = (checked: readonly Checked[]) =>
  table(
    ['', 'store', 'what', 'measured', 'beside', 'ratio', 'target', '', 'in runs'],
    checked.map(({ workload, engine, what, measured, unit, beside, ratio, target, met, runs }) => [
      workload,
      engine,
      what,
      measured === undefined ? 'none' : withUnit(measured, unit),
      beside === undefined ? '' : `${beside.id}: ${shown(beside.value)}`,
      optional(ratio),
      target,
      verdict(met),
      runs.of === 0 ? '' : `${runs.met} of ${runs.of}`,
    ]),
  )

/** What was measured, with its unit and what it is beside. */
function found({ measured, unit, beside, ratio }: Checked): string {
  const value = withUnit(measured ?? Number.NaN, unit)
  return beside === undefined ? value : `${value}, ${shown(ratio ?? Number.NaN)} times ${beside.id}`
}

/** What stands in the way, and what the limit says about it. */
function remarkOn(name: string, known: readonly Checked[], limits: readonly Limit[], peers: Peers | undefined): string {
  const { work = '', between, byHand, sameEnd, note = '' } = REMARKS[name] ?? {}
  const valueOf = (what: Beside | undefined) =>
    what === undefined || peers === undefined ? undefined : figure(peers, what.id, what.workload, what.name)
  const [hand, ended] = [valueOf(byHand), valueOf(sameEnd)]
  const limit = limits.find((each) => each.name === name)
  const measured =
    between === undefined
      ? ''
      : limit === undefined
        ? 'What its statements alone come to was not measured.'
        : againstLimit(known, limit, between)
  const beside = hand === undefined ? '' : againstHand(known, byHand!.id, byHand!.what, hand)
  const same = ended === undefined ? '' : againstSameEnd(known, sameEnd!.id, sameEnd!.what, ended)
  return [work, measured, beside, same, note].filter((part) => part !== '').join(' ')
}

/** What a median is worth is seen from the runs behind it. */
const SINGLY =
  'The verdict is that of the medians. In the last column is in how many of the runs, taken one by one, the same was so: where it is neither none nor all of them, we are level with the target, and another day may say otherwise.'

/** One paragraph for each figure that misses a target, however many it misses. */
function missed(checked: readonly Checked[], limits: readonly Limit[], peers: Peers | undefined): string {
  const rows = checked.filter(({ met }) => met !== true)
  if (rows.length === 0) return 'Every target of the table is met.'
  const groups = Object.groupBy(rows, ({ workload, engine, what }) => `${workload}, ${engine}, ${what}`)
  const lines = Object.entries(groups).map(([name, group = []]) => {
    const known = group.filter(({ met }) => met === false)
    if (known.length === 0) return `- **${name}**: there is no figure for it in this run.`
    const targets = known.map((row) => `${found(row)} (target: ${row.target})`).join('; ')
    return `- **${name}**: ${targets}. ${remarkOn(name, known, limits, peers)}`.trimEnd()
  })
  return `${SINGLY}\n\nThese are missed, or have no figure:\n\n${lines.join('\n')}`
}

const plots = (all: readonly Plot[]) =>
  all.map(({ file, title }) => `![${title}](performance/${file}.svg)`).join('\n\n')

const COLUMNS: readonly (readonly [string, string, (result: Result) => string])[] = [
  ['W1 ms a step, 1 caller, p50 / p99', 'w1c1', (r) => pair(r, 'stepP50Ms', 'stepP99Ms')],
  ['W1 steps/s, 64 callers', 'w1c64', (r) => one(r, 'stepsPerSec')],
  ['W2 ms p50 / p99', 'w2', (r) => pair(r, 'p50Ms', 'p99Ms')],
  ['W3 enqueue/s single / bulk', 'w3', (r) => pair(r, 'enqueueSinglePerSec', 'enqueueBulkPerSec')],
  ['W3 drain/s', 'w3', (r) => one(r, 'drainPerSec')],
  ['W4 late ms p50 / p99', 'w4', (r) => pair(r, 'lateP50Ms', 'lateP99Ms')],
  ['W4 CPU s worker + server', 'w4', (r) => pair(r, 'workerCpuSec', 'serviceCpuSec')],
  [
    'W5 recovery ms',
    'w5',
    (r) => (typeof r['recoverMs'] === 'number' ? one(r, 'recoverMs') : `${r['unfinished'] ?? '?'} never ended`),
  ],
  ['W5 run twice', 'w5', (r) => one(r, 'stepsRunMoreThanOnce')],
  ['W6 ms (node)', 'w6', (r) => `${one(r, 'coldP50Ms')} (${one(r, 'nodeP50Ms')})`],
]

const one = (result: Result, name: string) => {
  const value = result[name]
  return typeof value === 'number' ? shown(value) : '–'
}
const pair = (result: Result, first: string, second: string) => `${one(result, first)} / ${one(result, second)}`

function peerTable({ median }: Peers): string {
  const cell = (result: Result | undefined, show: (result: Result) => string) =>
    result === undefined
      ? ''
      : result['na'] !== undefined
        ? 'n/a'
        : result['error'] !== undefined
          ? 'failed'
          : show(result)
  return table(
    ['', ...COLUMNS.map(([head]) => head), 'runs'],
    Object.entries(median).map(([id, results]) => [
      id,
      ...COLUMNS.map(([, key, show]) => cell(results[key], show)),
      runsOf(results),
    ]),
  )
}

/** How often each workload was run: `3, W4 1`. */
function runsOf(results: Readonly<Record<string, Result>>): string {
  const runs = Object.entries(results).flatMap(([workload, { okRuns }]) =>
    typeof okRuns === 'number' ? [[workload.slice(0, 2).toUpperCase(), okRuns] as const] : [],
  )
  const most = Math.max(...runs.map(([, times]) => times))
  const fewer = runs.filter(([, times]) => times < most).map(([workload, times]) => `${workload} ${times}`)
  return [most, ...new Set(fewer)].join(', ')
}

function ownTable({ what, rows, error }: Own['benches'][number]): string {
  const words = `${what[0]?.toUpperCase()}${what.slice(1)}.`
  if (error !== undefined) return `${words} It failed in this run: ${error}.`
  const cells = (row: Row) => [
    row.name,
    withUnit(row.value, row.unit),
    optional(row.raw),
    optional(row.ratio),
    row.bound === undefined ? '' : `${boundOf(row.bound)}: ${verdict(holds(row))}`,
  ]
  return `${words}\n\n${table(['', 'measured', 'beside', 'ratio', 'bound'], rows.map(cells))}`
}

const list = (pairs: Readonly<Record<string, string>>) =>
  Object.entries(pairs)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')

const machineOf = ({ date, commit, machine, seconds, settings }: Own) =>
  `${date.slice(0, 10)}, commit ${commit}, ${machine.cores} cores (${machine.processor}), ${machine.memoryGiB} GiB, Linux ${machine.kernel}, load ${machine.load[0]} before; sizes: ${settings['sizes']}; ${seconds} s in all`

function conditions({ own, peers, limits, slower }: PageParts): string {
  const lines: string[] = []
  if (peers !== undefined) {
    const versions = Object.assign({}, ...Object.values(peers.peers).map((each) => each.versions)) as Record<
      string,
      string
    >
    const services = Object.values(peers.services).filter(({ version }) => version !== '')
    lines.push(
      `- **Beside the others**: ${peers.date}, commit ${peers.commit ?? 'unknown'}, ${peers.cpus} cores (${peers.cpu}), ${peers.memGiB} GiB, Linux ${peers.kernel}, Node ${peers.node}; scale ${peers.scale}, ${peers.runs === 1 ? 'one run' : `medians of ${peers.runs} runs`}.`,
      `- **Their versions**: ${list(versions)}.`,
      ...services.map(({ version, durability }) => `- **${version}**: ${durability}.`),
    )
  }
  if (own !== undefined) {
    lines.push(
      `- **Our own**: ${machineOf(own)}; ${list(own.versions)}.`,
      `- **SQLite**: ${own.settings['sqlite']}.`,
      `- **PostgreSQL of our own**: ${own.settings['postgres']}.`,
    )
  }
  if (slower.length > 0) {
    const { date, commit, runs } = slower[0]!
    lines.push(`- **With a slower disk**: ${date}, commit ${commit ?? 'unknown'}, medians of ${runs} runs.`)
  }
  if (limits !== undefined && limits !== own) lines.push(`- **Limits**: ${machineOf(limits)}.`)
  return lines.join('\n')
}

export interface PageParts {
  readonly own: Own | undefined
  readonly peers: Peers | undefined
  /** Where the limits are from; it may be the same as `own`. */
  readonly limits: Own | undefined
  readonly slower: readonly Slower[]
  readonly checked: readonly Checked[]
  readonly peerPlots: readonly Plot[]
  readonly ownPlots: readonly Plot[]
}

const HEAD = `# Speed and scale

This page is written by \`npm run bench:page\` from what was measured, and so are the limits in the remarks on what is missed; a figure of a profile or of a trial is called so. Durability is on everywhere: a step counts when it is on disk. The
path of a step is the one that every program has: the claim is checked by its fence, the intent and the outcome are recorded, an event is written.`

const PEERS = `One benchmark on one machine, each peer in its own best settings and in fresh processes, one after the other, on a machine that others share: what Node takes to start, beside W6, says how quick it was just then. Where a workload was run several times, its figures are medians; how often is in the last column. \`raw-*\` is the limit: the same store, batches
written by hand, no engine (\`-1\`: a commit for each row); so is \`holdfast-rows\`: the rows that Holdfast keeps in W1, by hand (\`bench/peers/rows.ts\`), the same ones by a test. \`graphile-worker-end\` is that peer, seen when the end of its job is on disk, as everybody's is, and not when it says so. How to run it: \`node bench/peers/run.ts CHECKOUT\`, where CHECKOUT is the folder of the peers' benchmark.

In W5 each step of Holdfast is a write with a probe: a worker that comes after a crash asks the world (here the file in which the bodies are counted) whether a
write that was cut off has happened. The other peers have no notion of that, and run the body again. A Holdfast step without a probe would not be run again either:
it would wait, in doubt, for a person.`

const SLOWER = `The ratios depend on the disk: where a sync costs nothing, what is left is the processor time of an engine; where it costs a lot, only how many there are. Here the same workloads run with
every sync of everybody (Redis and PostgreSQL too) made longer, by \`--sync\`: the ratio, and in brackets our own figure. Only those peers that were among the best are in it.`

const OWN = `\`npm run bench\` measures these (\`--quick\` for small sizes, \`--only NAME\` for some). \`beside\` is the limit, or what the name says, measured in the same run and
in turns with ours. What can be counted instead of timed (commits, statements and bytes a step, processor time against raw rows) is checked by a test at every change,
\`test/claims/step-cost.test.ts\`; and two of these are run small then, with their bounds times three for a machine that has other work: \`test/claims/bench.test.ts\`.`

const LIMITS = `Where a target is missed, \`npm run bench -- --only limits\` measures what stands in the way, in one run and in turns. **The product**: the same workload by the public library. **Its statements alone**: what the
product asks of its database for it is recorded at the driver, from opening it to the end of the work, and asked again of an empty one by the bare driver: the same settings, statements and values, the same
batches, every commit synced; on PostgreSQL on as many connections, where a transaction begins as soon as all is answered that was answered when the product began it, and goes on with its own answers (where claims get other jobs than they got, what follows is asked about those). What did not overlap in the product does not overlap there either, so on PostgreSQL the limit may be somewhat higher. That the same rows are in every table afterwards is tested at every change,
\`test/claims/limits.test.ts\`. Between these two is the engine. **Raw rows**: what the peers' benchmark calls \`raw-*\`, one row of a hand-made table instead of what is kept of a step or a run (in W2 three commits, one after the other: the call, the step, the end). For a rate a ratio is the share that is
reached, for a time how many times as long it takes. W4 is without others pending, which make no difference ([schedule](#schedule)), and its statements do not wait for their instants.`

/** Without what was not measured. */
export function writePage(parts: PageParts): string {
  const { own, peers, checked, peerPlots, ownPlots } = parts
  const limits = limitsOf(parts.limits)
  const others = own?.benches.filter(({ bench }) => bench !== 'limits') ?? []
  const sections = [
    HEAD,
    ...(peers === undefined ? [] : ['## Targets', targetTable(checked), missed(checked, limits, peers)]),
    ...(limits.length === 0 ? [] : ['## Limits', LIMITS, limitsTable(limits)]),
    ...(peers === undefined ? [] : ['## Beside the others', PEERS, plots(peerPlots), peerTable(peers)]),
    ...(parts.slower.length === 0 ? [] : ['## With a slower disk', SLOWER, slowerTable(parts.slower)]),
    ...(own === undefined
      ? []
      : ['## Our own', OWN, plots(ownPlots), ...others.flatMap((each) => [`### ${each.bench}`, ownTable(each)])]),
    '## Machine, versions, settings',
    conditions(parts),
  ]
  return `${sections.join('\n\n')}\n`
}
