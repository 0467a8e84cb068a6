/** The tables of docs/scaling.md, from what `npm run bench:scale` measured: the rest of that page is written by hand. */
import { table } from '../../scripts/docs/markdown.ts'
import { shown } from '../../scripts/docs/numbers.ts'

export interface Spread {
  readonly p50: number
  readonly p99: number
}

/** So many worker processes. */
export interface ScaleRow {
  readonly workers: number
  readonly stepsPerSecond: number
  readonly claimMs: Spread
  readonly lateMs: Spread
  readonly workerCpuMsPerStep: number
  readonly serverCpuMsPerStep: number
  readonly commitsPerStep: number
  readonly walKibPerStep: number
  readonly diskKibPerStep: number
  readonly server: { readonly waits: Readonly<Record<string, number>>; readonly connections: number }
}

export interface Scale {
  readonly date: string
  readonly commit: string
  readonly machine: { readonly cores: number; readonly cpu: string | undefined; readonly load: readonly number[] }
  readonly runs: number
  readonly steps: number
  readonly results: readonly ScaleRow[]
}

/** What the server calls its waits, in words. */
const WORDS: Readonly<Record<string, string>> = {
  cpu: 'computing',
  'Lock: advisory': 'the order of events',
  'IO: WALSync': 'syncing the log',
  'IO: WalSync': 'syncing the log',
  'LWLock: WALWrite': 'syncing the log',
  'Client: ClientWrite': 'answering',
}

function busyWith(waits: Readonly<Record<string, number>>): string {
  const busy = new Map<string, number>()
  for (const [what, count] of Object.entries(waits)) {
    if (what === 'idle' || what === 'Client: ClientRead') continue
    const word = WORDS[what] ?? what
    busy.set(word, (busy.get(word) ?? 0) + count)
  }
  const all = [...busy.values()].reduce((sum, count) => sum + count, 0)
  return [...busy]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, 3)
    .map(([what, count]) => `${what} ${Math.round((count / all) * 100)} %`)
    .join(', ')
}

const pair = ({ p50, p99 }: Spread) => `${shown(p50)} / ${shown(p99)}`

export const scaleTable = ({ results, runs, steps, date, commit, machine }: Scale): string =>
  [
    `${shown(runs)} runs of ${steps} steps, 64 functions in each process; ${date.slice(0, 10)}, commit ${commit}, ${machine.cores} cores, load ${shown(machine.load[0] ?? 0)} before:`,
    table(
      [
        'worker processes',
        'steps/s',
        'call to its beginning, ms p50 / p99',
        'late by, ms p50 / p99',
        'CPU of workers a step',
        'CPU of the server a step',
        'transactions a step',
        'WAL a step',
        'disk a step',
        'sessions of the server were busy with',
      ],
      results.map((each) => [
        String(each.workers),
        shown(each.stepsPerSecond),
        pair(each.claimMs),
        pair(each.lateMs),
        `${each.workerCpuMsPerStep.toFixed(3)} ms`,
        `${each.serverCpuMsPerStep.toFixed(3)} ms`,
        each.commitsPerStep.toFixed(2),
        `${each.walKibPerStep.toFixed(2)} KiB`,
        `${each.diskKibPerStep.toFixed(2)} KiB`,
        busyWith(each.server.waits),
      ]),
    ),
  ].join('\n\n')

const RUNS_A_DAY = 100e6
const MACHINES = 1_000
/** A peak is so many times the average. */
const PEAK = 3
/** Of a synced commit, in seconds: a disk of a server that keeps its promise. */
const SYNC_S = 0.0005
/** How busy a database may be with commits. */
const BUSY = 0.6
const DATABASES = 32

export function planTable({ results, steps }: Scale): string {
  const average = (RUNS_A_DAY * steps) / 86_400
  const peak = average * PEAK
  const range = (values: readonly number[], show: (value: number) => string) =>
    `${show(Math.min(...values))} … ${show(Math.max(...values))}`
  const worker = results.map(({ workerCpuMsPerStep }) => workerCpuMsPerStep)
  const server = results.map(({ serverCpuMsPerStep }) => serverCpuMsPerStep)
  const walKib = Math.max(...results.map(({ walKibPerStep }) => walKibPerStep))
  const cores = (values: readonly number[]) =>
    range(
      values.map((ms) => (peak * ms) / 1_000),
      (value) => value.toFixed(1),
    )
  const hundred = (value: number) => (Math.round(value / 100) * 100).toLocaleString('en-US')
  const each = Math.round(peak / MACHINES)
  return table(
    ['quantity', 'formula', 'here'],
    [
      [
        'steps a second, average, peak',
        `runs a day × ${steps} / 86,400; ${PEAK} times that`,
        `${hundred(average)}; ${hundred(peak)}`,
      ],
      [
        'CPU of workers',
        `peak × ${range(worker, (ms) => ms.toFixed(2))} ms`,
        `${cores(worker)} cores of all machines: their own work is what counts`,
      ],
      ['CPU of servers', `peak × ${range(server, (ms) => ms.toFixed(2))} ms`, `${cores(server)} cores`],
      [
        'log written',
        `steps a day × ${walKib.toFixed(2)} KiB`,
        `${((RUNS_A_DAY * steps * walKib) / 2 ** 30).toFixed(1)} TiB a day; ${Math.round((peak * walKib) / 1_024)} MiB/s at the peak`,
      ],
      ['steps that share a commit (B)', `peak / machines × T: ${each} a second each, so hardly any`, '1'],
      ['ordered commits', 'peak / B', `${hundred(peak)} a second`],
      [
        'databases',
        `commits × T / ${BUSY}, T = ${SYNC_S * 1_000} ms`,
        `${Math.ceil((peak * SYNC_S) / BUSY)}: say ${DATABASES}`,
      ],
      [
        'machines, connections of each',
        `${MACHINES.toLocaleString('en-US')} / ${DATABASES}; × 11`,
        `${Math.floor(MACHINES / DATABASES)}; ${Math.ceil((MACHINES * 11) / DATABASES)}`,
      ],
    ],
  )
}

const LEAST_RUNS = 1_000
const LEAST_ROWS = 4

/** The page with its tables of these results, between the marks that say where they are. */
export function withTables(page: string, scale: Scale): string {
  if (scale.runs < LEAST_RUNS || scale.results.length < LEAST_ROWS)
    throw new Error(`a trial is no measurement: ${scale.runs} runs, ${scale.results.length} rows; npm run bench:scale`)
  return between(between(page, 'measured', scaleTable(scale)), 'planned', planTable(scale))
}

function between(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`the page has no place for what was ${name}: ${begin} … ${end}`)
  return `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`
}
