/** The targets as data: what is measured, beside what, and what the ratio must be. */
import { bestPeer, figure, singleRuns } from './figures.ts'
import type { Best, CHOICES, Peers } from './figures.ts'

export interface Checked {
  readonly workload: string
  readonly engine: 'SQLite' | 'PostgreSQL'
  readonly what: string
  readonly measured: number | undefined
  readonly unit: string
  readonly beside: Best | undefined
  readonly ratio: number | undefined
  readonly target: string
  /** What would have to be measured to meet it. */
  readonly needs: number | undefined
  /** By the medians; undefined: it cannot be said from these figures. */
  readonly met: boolean | undefined
  /** In how many of the runs, taken one by one, beside the same peer. */
  readonly runs: { readonly met: number; readonly of: number }
}

/** What a run has that its targets are about. */
export const NAMES = [
  'stepsPerSec',
  'stepP50Ms',
  'p50Ms',
  'enqueueSinglePerSec',
  'enqueueBulkPerSec',
  'drainPerSec',
  'lateP99Ms',
  'workerCpuSec',
  'serviceCpuSec',
  'recoverMs',
  'stepsRunMoreThanOnce',
  'coldP50Ms',
  'nodeP50Ms',
]

type Engine = Checked['engine']
const OURS = { SQLite: 'holdfast', PostgreSQL: 'holdfast-pg' } as const
const RAW = { SQLite: 'raw-sqlite', PostgreSQL: 'raw-pg' } as const

interface Target {
  readonly workload: string
  readonly what: string
  readonly unit: string
  readonly engine: Engine
  /** Beside a peer, a raw limit, or nothing: then the target is about the measured value itself. */
  readonly beside?: keyof typeof CHOICES | 'raw'
  readonly better: 'high' | 'low'
  /** Of the ratio, or of the value where there is nothing beside it. */
  readonly least?: number
  readonly most?: number
  readonly target: string
  readonly measure: (peers: Peers, id: string) => number | undefined
}

const from = (workload: string, name: string) => (peers: Peers, id: string) => figure(peers, id, workload, name)
const steps = {
  workload: 'W1',
  what: 'steps/s, 64 callers',
  unit: '/s',
  better: 'high',
  measure: from('w1c64', 'stepsPerSec'),
} as const
const step = {
  workload: 'W1',
  what: 'a step, 1 caller',
  unit: 'ms',
  better: 'low',
  measure: from('w1c1', 'stepP50Ms'),
} as const
const result = {
  workload: 'W2',
  what: 'submit to result, p50',
  unit: 'ms',
  better: 'low',
  measure: from('w2', 'p50Ms'),
} as const
const enqueue = {
  workload: 'W3',
  what: 'enqueue, one a call',
  unit: '/s',
  better: 'high',
  measure: from('w3', 'enqueueSinglePerSec'),
} as const
const bulk = {
  workload: 'W3',
  what: 'enqueue, in bulk',
  unit: '/s',
  better: 'high',
  measure: from('w3', 'enqueueBulkPerSec'),
} as const
const drain = {
  workload: 'W3',
  what: 'drain',
  unit: '/s',
  better: 'high',
  measure: from('w3', 'drainPerSec'),
} as const
const late = {
  workload: 'W4',
  what: 'lateness, p99',
  unit: 'ms',
  better: 'low',
  measure: from('w4', 'lateP99Ms'),
} as const
const cpu = {
  workload: 'W4',
  what: 'processor time, worker and server',
  unit: 's',
  better: 'low',
  measure: (peers: Peers, id: string) => {
    const [worker, server] = [figure(peers, id, 'w4', 'workerCpuSec'), figure(peers, id, 'w4', 'serviceCpuSec')]
    return worker === undefined ? undefined : worker + (server ?? 0)
  },
} as const
const recovery = {
  workload: 'W5',
  what: 'all done after the kill',
  unit: 'ms',
  better: 'low',
  measure: from('w5', 'recoverMs'),
} as const
const twice = {
  workload: 'W5',
  what: 'writes performed twice',
  unit: 'writes',
  better: 'low',
  measure: from('w5', 'stepsRunMoreThanOnce'),
} as const
const cold = {
  workload: 'W6',
  what: 'cold start against node -e 0',
  unit: 'times',
  better: 'low',
  measure: (peers: Peers, id: string) => {
    const [all, node] = [figure(peers, id, 'w6', 'coldP50Ms'), figure(peers, id, 'w6', 'nodeP50Ms')]
    return all === undefined || node === undefined ? undefined : all / node
  },
} as const

const TARGETS: readonly Target[] = [
  {
    ...steps,
    engine: 'SQLite',
    beside: 'not on Redis',
    least: 10,
    target: '≥ 10 times the best peer that is not on Redis',
  },
  { ...steps, engine: 'SQLite', beside: 'on Redis', least: 4, target: '≥ 4 times BullMQ on Redis' },
  { ...steps, engine: 'SQLite', beside: 'raw', least: 0.35, target: '≥ 35% of raw batches' },
  {
    ...steps,
    engine: 'PostgreSQL',
    beside: 'on PostgreSQL',
    least: 3,
    target: '≥ 3 times the best peer on PostgreSQL',
  },
  { ...steps, engine: 'PostgreSQL', beside: 'workflow engine', least: 5, target: '≥ 5 times every workflow engine' },
  { ...steps, engine: 'PostgreSQL', beside: 'raw', least: 0.25, target: '≥ 25% of raw batches' },
  { ...step, engine: 'SQLite', beside: 'raw', most: 2, target: '≤ 2 times a raw one-row commit' },
  { ...step, engine: 'PostgreSQL', beside: 'raw', most: 2, target: '≤ 2 times a raw one-row commit' },
  { ...result, engine: 'SQLite', beside: 'all', most: 1, target: 'best of all, no polling' },
  {
    ...result,
    engine: 'PostgreSQL',
    beside: 'on PostgreSQL',
    most: 1,
    target: 'best of all on PostgreSQL, no polling',
  },
  { ...enqueue, engine: 'SQLite', beside: 'all', least: 3, target: '≥ 3 times the best peer' },
  { ...bulk, engine: 'SQLite', beside: 'all', least: 3, target: '≥ 3 times the best peer' },
  { ...drain, engine: 'SQLite', beside: 'all', least: 2, target: '≥ 2 times the best peer' },
  {
    ...enqueue,
    engine: 'PostgreSQL',
    beside: 'on PostgreSQL',
    least: 2,
    target: '≥ 2 times the best peer on PostgreSQL',
  },
  { ...bulk, engine: 'PostgreSQL', beside: 'on PostgreSQL', least: 2, target: '≥ 2 times the best peer on PostgreSQL' },
  {
    ...drain,
    engine: 'PostgreSQL',
    beside: 'on PostgreSQL',
    least: 1,
    target: '≥ 1 times the best peer on PostgreSQL',
  },
  { ...late, engine: 'SQLite', most: 50, target: '< 50 ms' },
  { ...late, engine: 'PostgreSQL', most: 100, target: '< 100 ms' },
  { ...cpu, engine: 'SQLite', beside: 'all', most: 1, target: 'lowest of all' },
  { ...recovery, engine: 'SQLite', beside: 'all', most: 1, target: 'fastest of all' },
  { ...recovery, engine: 'PostgreSQL', beside: 'all', most: 1, target: 'fastest of all' },
  { ...twice, engine: 'SQLite', most: 0, target: '0' },
  { ...twice, engine: 'PostgreSQL', most: 0, target: '0' },
  { ...cold, engine: 'SQLite', most: 1.6, target: '≤ 1.6 times' },
]

/** The raw limit of one caller is a commit for each row, which a run of the peers may have left out. */
function rawOf(peers: Peers, { engine, what, measure }: Target): Best | undefined {
  const ids = what === step.what ? [`${RAW[engine]}-1`, RAW[engine]] : [RAW[engine]]
  for (const id of ids) {
    const value = measure(peers, id)
    if (value !== undefined) return { id, value }
  }
  return undefined
}

function check(peers: Peers, runs: readonly Peers[], target: Target): Checked {
  const { workload, engine, what, unit, beside, better, least, most, measure } = target
  const measured = measure(peers, OURS[engine])
  const against =
    beside === undefined
      ? undefined
      : beside === 'raw'
        ? rawOf(peers, target)
        : bestPeer(peers, beside, better, (id) => measure(peers, id))
  const ratio = measured === undefined || against === undefined ? undefined : measured / against.value
  const meets = (value: number) => value >= (least ?? -Infinity) && value <= (most ?? Infinity)
  const judged = beside === undefined ? measured : ratio
  const met = judged === undefined ? undefined : meets(judged)
  const bound = least ?? most ?? Number.NaN
  const needs = beside === undefined ? bound : against && bound * against.value
  const singly = runs.flatMap((run) => {
    const [value, other] = [measure(run, OURS[engine]), against === undefined ? 1 : measure(run, against.id)]
    return value === undefined || other === undefined ? [] : [meets(value / other)]
  })
  const inRuns = { met: singly.filter(Boolean).length, of: singly.length }
  return {
    workload,
    engine,
    what,
    measured,
    unit,
    beside: against,
    ratio,
    target: target.target,
    needs,
    met,
    runs: inRuns,
  }
}

export function checkTargets(peers: Peers): Checked[] {
  const runs = singleRuns(peers)
  return TARGETS.map((target) => check(peers, runs, target))
}
