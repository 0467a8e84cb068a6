import { readFileSync, readdirSync, statSync } from 'node:fs'

/** What was measured right before a kill. */
export interface Sample {
  /** Runs so far. */
  readonly runs: number
  readonly databaseMiB: number
  /** Of SQLite; a server keeps its own. */
  readonly walMiB?: number
  /** Of the one that is killed next. */
  readonly daemon: Held
  /** Of the one that nobody kills. */
  readonly beside: Held
}

interface Held {
  readonly memoryMiB: number
  readonly files: number
}

export const MIB = 2 ** 20

const megabytes = (path: string): number => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) / MIB

export const filesOf = (database: string): Pick<Sample, 'databaseMiB' | 'walMiB'> => ({
  databaseMiB: megabytes(database),
  walMiB: megabytes(`${database}-wal`),
})

export function heldBy(pid: number): Held {
  const [, kilobytes = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return { memoryMiB: Number(kilobytes) / 1_024, files: readdirSync(`/proc/${pid}/fd`).length }
}

export const peaksOf = ({ daemon, beside, walMiB }: Sample): Record<string, number> => ({
  'memory MiB': Math.round(Math.max(daemon.memoryMiB, beside.memoryMiB)),
  'open files': Math.max(daemon.files, beside.files),
  ...(walMiB === undefined ? {} : { 'WAL MiB': Math.round(walMiB * 10) / 10 }),
})

/** A quarter of fewer says nothing. */
const LEAST = 12

interface Gauge {
  readonly name: string
  readonly of: (sample: Sample) => number
  /** The last quarter may be so much higher than the first: this part of it, and this much more. */
  readonly part: number
  readonly more: number
}

/** A heap takes some time to find its size; files and log have theirs at once. */
const GAUGES: readonly Gauge[] = [
  { name: 'memory MiB of the daemon', of: ({ daemon }) => daemon.memoryMiB, part: 1.25, more: 20 },
  { name: 'memory MiB of the daemon that is not killed', of: ({ beside }) => beside.memoryMiB, part: 1.4, more: 30 },
  { name: 'open files of the daemon', of: ({ daemon }) => daemon.files, part: 1.1, more: 10 },
  { name: 'open files of the daemon that is not killed', of: ({ beside }) => beside.files, part: 1.1, more: 10 },
  { name: 'WAL MiB', of: ({ walMiB = 0 }) => walMiB, part: 1.5, more: 4 },
]

/** What grows with time instead of staying level: the last quarter beside the first. */
export function growing(samples: readonly Sample[]): string[] {
  if (samples.length < LEAST) return []
  const quarter = Math.floor(samples.length / 4)
  const [first, last] = [samples.slice(0, quarter), samples.slice(-quarter)]
  const grown = GAUGES.flatMap(({ name, of, part, more }) => {
    const [before, after] = [median(first.map(of)), median(last.map(of))]
    return after > before * part + more ? [`${name}: ${before.toFixed(1)} at first, ${after.toFixed(1)} at last`] : []
  })
  const [early, late] = [bytesARun(first), bytesARun(last)]
  // Pages are taken a few at a time.
  if (late > early * 1.5 + 4_096) grown.push(`bytes a run: ${early.toFixed(0)} at first, ${late.toFixed(0)} at last`)
  return grown
}

function bytesARun(samples: readonly Sample[]): number {
  const [first, last] = [samples[0]!, samples.at(-1)!]
  const runs = last.runs - first.runs
  return runs === 0 ? 0 : ((last.databaseMiB - first.databaseMiB) * MIB) / runs
}

const median = (values: readonly number[]): number => quantile(values, 0.5)

export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
}
