/** Which plots there are, and what is in them. */
import type { Bar, Chart } from '../../scripts/docs/svg.ts'
import { kindOf } from './figures.ts'
import type { Own, Peers, Result } from './figures.ts'

interface Workload {
  readonly file: string
  readonly title: string
  readonly subtitle: string
  readonly unit: string
  readonly workload: string
  readonly better: 'high' | 'low'
  readonly value: (result: Result) => number | undefined
  readonly note?: (result: Result) => string | undefined
}

const number = (name: string) => (result: Result) => {
  const value = result[name]
  return typeof value === 'number' ? value : undefined
}
const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1_000)

const WORKLOADS: readonly Workload[] = [
  {
    file: 'w1-steps',
    workload: 'w1c64',
    title: 'W1: durable steps a second, 64 callers',
    subtitle: 'more is better',
    unit: '/s',
    better: 'high',
    value: number('stepsPerSec'),
  },
  {
    file: 'w1-one-caller',
    workload: 'w1c1',
    title: 'W1: one durable step, one caller',
    subtitle: 'p50; less is better',
    unit: 'ms',
    better: 'low',
    value: number('stepP50Ms'),
  },
  {
    file: 'w2-result',
    workload: 'w2',
    title: 'W2: from submit to the result, on an idle system',
    subtitle: 'p50; less is better',
    unit: 'ms',
    better: 'low',
    value: number('p50Ms'),
  },
  {
    file: 'w3-enqueue',
    workload: 'w3',
    title: 'W3: jobs enqueued a second, one a call, 64 callers',
    subtitle: 'more is better; beside it what the bulk interface reaches',
    unit: '/s',
    better: 'high',
    value: number('enqueueSinglePerSec'),
    note: bulkNote,
  },
  {
    file: 'w3-drain',
    workload: 'w3',
    title: 'W3: jobs drained a second, one worker',
    subtitle: 'more is better',
    unit: '/s',
    better: 'high',
    value: number('drainPerSec'),
  },
  {
    file: 'w4-lateness',
    workload: 'w4',
    title: 'W4: lateness of scheduled jobs',
    subtitle: 'p99, many others pending; less is better',
    unit: 'ms',
    better: 'low',
    value: number('lateP99Ms'),
  },
  {
    file: 'w4-processor',
    workload: 'w4',
    title: 'W4: processor time for them',
    subtitle: 'worker and server, in ten seconds; less is better',
    unit: 's',
    better: 'low',
    value: processorOf,
  },
  {
    file: 'w5-recovery',
    workload: 'w5',
    title: 'W5: killed with SIGKILL in the middle, restarted: until all is done',
    subtitle: 'less is better; beside it the step bodies that ran twice',
    unit: 's',
    better: 'low',
    value: (result) => seconds(number('recoverMs')(result)),
    note: rerunNote,
  },
  {
    file: 'w6-cold-start',
    workload: 'w6',
    title: 'W6: a fresh process opens the store, reads one message, exits',
    subtitle: 'p50; less is better; beside it how many times as long as node -e 0',
    unit: 'ms',
    better: 'low',
    value: number('coldP50Ms'),
    note: coldNote,
  },
]

function processorOf(result: Result): number | undefined {
  const worker = number('workerCpuSec')(result)
  return worker === undefined ? undefined : worker + (number('serviceCpuSec')(result) ?? 0)
}

function bulkNote(result: Result): string | undefined {
  const bulk = number('enqueueBulkPerSec')(result)
  return bulk === undefined ? undefined : `(${Math.round(bulk).toLocaleString('en-US')})`
}

function rerunNote(result: Result): string | undefined {
  const [twice, stuck] = [number('stepsRunMoreThanOnce')(result), number('unfinished')(result)]
  if (number('recoverMs')(result) === undefined && stuck !== undefined)
    return `${Math.ceil(stuck)} never ended, ${Math.ceil(twice ?? 0)} bodies ran twice`
  if (number('recoverMs')(result) === undefined) return undefined
  return twice === undefined ? undefined : `(${Math.round(twice).toLocaleString('en-US')})`
}

function coldNote(result: Result): string | undefined {
  const [all, node] = [number('coldP50Ms')(result), number('nodeP50Ms')(result)]
  return all === undefined || node === undefined ? undefined : `(${(all / node).toFixed(1)})`
}

/** Sorted, the best first; who has no figure comes last, with the reason. */
function barsOf(peers: Peers, { workload, value, note, better }: Workload): Bar[] {
  const bars = Object.entries(peers.median).flatMap(([id, results]): Bar[] => {
    const result = results[workload]
    if (result === undefined) return []
    const measured = value(result)
    const why =
      result['na'] === undefined ? (result['error'] === undefined ? undefined : 'failed') : 'has no such thing'
    // A limit that was not measured here is one that another stands for.
    if (measured === undefined && kindOf(peers, id) === 'raw') return []
    const words = measured === undefined ? (why ?? note?.(result)) : note?.(result)
    return [{ label: id, value: measured, kind: kindOf(peers, id), ...(words === undefined ? {} : { note: words }) }]
  })
  const sign = better === 'high' ? -1 : 1
  return bars.toSorted((a, b) => sign * ((a.value ?? sign * Infinity) - (b.value ?? sign * Infinity)))
}

function rowsOf(own: Own, name: string) {
  return own.benches.find(({ bench }) => bench === name)?.rows ?? []
}

/** `SQLite, function, 10 steps behind it` is the bar `10 steps behind it` of the group `SQLite, function`. */
function historyBars(own: Own): Bar[] {
  return rowsOf(own, 'history')
    .filter(({ unit }) => unit === 'ms a step')
    .flatMap((row): Bar[] => {
      const [engine = '', what = '', ...rest] = row.name.split(', ')
      const group = `${engine}, ${what}`
      const bar: Bar = { group, label: rest.join(', '), value: row.value, kind: 'ours' }
      const raw: Bar[] =
        rest[0]?.startsWith('10 ') === true ? [{ group, label: 'a raw commit', value: row.raw, kind: 'raw' }] : []
      return [...raw, bar]
    })
}

function growthBars(own: Own): Bar[] {
  return rowsOf(own, 'growth')
    .filter(({ unit }) => unit === 'bytes')
    .map(({ name, value }) => {
      const [group = '', label = ''] = name.split(': ')
      return { group, label: shortened(label), value, kind: 'ours' }
    })
}

const shortened = (label: string) =>
  label
    .replace(/ \(.*\)/, '')
    .replace('written to the log for a step of a function', 'log, a step of a function')
    .replace('a run of a function, without its steps', 'a run, without its steps')

function retentionBars(own: Own): Bar[] {
  return rowsOf(own, 'growth')
    .filter(({ unit }) => unit === 'MiB')
    .map(({ name, value }) => {
      const [group = '', label = ''] = name.split(': ')
      return {
        group: `${group}: ${label.split(', ')[0]}`,
        label: label.split(', ').slice(1).join(', ').replace('after those before were forgotten', 'the old forgotten'),
        value,
        kind: 'ours',
      }
    })
}

export interface Plot extends Chart {
  readonly file: string
}

export function peerPlots(peers: Peers): Plot[] {
  return WORKLOADS.map((workload): Plot => {
    const { file, title, subtitle, unit } = workload
    return { file, title, subtitle, unit, scale: 'log', bars: barsOf(peers, workload) }
  }).filter(({ bars }) => bars.some(({ value }) => value !== undefined))
}

export function ownPlots(own: Own): Plot[] {
  const plots: Plot[] = [
    {
      file: 'history',
      title: 'A step, with a short and with a long history behind it',
      subtitle: 'median; flat is right',
      unit: 'ms',
      scale: 'linear',
      bars: historyBars(own),
    },
    {
      file: 'growth',
      title: 'What is left on disk',
      subtitle: 'less is better',
      unit: 'bytes',
      scale: 'log',
      bars: growthBars(own),
    },
    {
      file: 'retention',
      title: 'The same work again and again',
      subtitle: 'what the store grows by',
      unit: 'MiB',
      scale: 'linear',
      bars: retentionBars(own),
    },
  ]
  return plots.filter(({ bars }) => bars.some(({ value }) => value !== undefined && value > 0))
}
