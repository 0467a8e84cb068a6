/** What was measured: by us (`npm run bench`), and beside the alternatives (`node bench/peers/run.ts`). */
import type { Kind } from '../../scripts/docs/svg.ts'
import type { Row } from '../bench.ts'

export interface Own {
  readonly date: string
  readonly commit: string
  readonly machine: {
    readonly processor: string
    readonly cores: number
    readonly memoryGiB: number
    readonly kernel: string
    readonly load: readonly number[]
  }
  readonly versions: Readonly<Record<string, string>>
  readonly settings: Readonly<Record<string, string>>
  readonly seconds: number
  readonly benches: readonly {
    readonly bench: string
    readonly what: string
    readonly rows: readonly Row[]
    readonly error?: string
  }[]
}

/** What one peer came to on one workload: numbers by name, or why there are none. */
export type Result = Readonly<Record<string, number | string | null | undefined>>

export interface Peers {
  readonly date: string
  /** Of ours, that stood beside them. */
  readonly commit?: string
  readonly node: string
  readonly cpus: number
  readonly cpu: string
  readonly memGiB: number
  readonly kernel: string
  readonly runs: number
  readonly scale: number
  readonly params: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly services: Readonly<Record<string, { readonly version: string; readonly durability: string }>>
  readonly peers: Readonly<
    Record<
      string,
      {
        readonly title: string
        readonly service: string
        readonly versions: Readonly<Record<string, string>>
        readonly durability: string
        readonly limit: boolean
      }
    >
  >
  readonly median: Readonly<Record<string, Readonly<Record<string, Result>>>>
  /** What every run came to, in their order: of the figures that there are targets for. */
  readonly each?: Readonly<Record<string, Readonly<Record<string, readonly Result[]>>>>
}

export interface Measured extends Result {
  readonly peer: string
  readonly workload: string
}

/** Of all that was measured, what the page says of single runs. */
export function eachOf(raw: readonly Measured[], names: readonly string[]): NonNullable<Peers['each']> {
  const ofRuns = (measured: readonly Measured[]) =>
    measured.map((run) => Object.fromEntries(names.flatMap((name) => (name in run ? [[name, run[name]]] : []))))
  const by = (measured: readonly Measured[], what: 'peer' | 'workload') =>
    Object.entries(Object.groupBy(measured, (run) => run[what])) as [string, Measured[]][]
  return Object.fromEntries(
    by(raw, 'peer').map(([peer, runs]) => [
      peer,
      Object.fromEntries(by(runs, 'workload').map(([workload, its]) => [workload, ofRuns(its)])),
    ]),
  )
}

/** The runs one by one, each as if it were all that there is. */
export function singleRuns(peers: Peers): readonly Peers[] {
  const each = Object.entries(peers.each ?? {})
  const count = Math.max(0, ...each.flatMap(([, workloads]) => Object.values(workloads).map((runs) => runs.length)))
  const at = (place: number): Peers['median'] =>
    Object.fromEntries(
      each.map(([peer, workloads]) => [
        peer,
        Object.fromEntries(
          Object.entries(workloads).flatMap(([workload, runs]) =>
            runs[place] === undefined ? [] : [[workload, runs[place]]],
          ),
        ),
      ]),
    )
  return Array.from({ length: count }, (_, place) => ({ ...peers, median: at(place) }))
}

export const kindOf = (peers: Peers, id: string): Kind =>
  peers.peers[id]?.limit === true ? 'raw' : id.startsWith('holdfast') ? 'ours' : 'peer'

/** A number of a peer on a workload; undefined: it has none. */
export function figure(peers: Peers, id: string, workload: string, name: string): number | undefined {
  const value = peers.median[id]?.[workload]?.[name]
  return typeof value === 'number' ? value : undefined
}

/** They have steps of their own; the others take a chain of jobs for them. */
const ENGINES = ['dbos', 'restate', 'langgraph-sqlite', 'langgraph-pg', 'workflow-local', 'workflow-pg', 'absurd']

type Choice = (id: string, service: string) => boolean
export const CHOICES = {
  all: () => true,
  'not on Redis': (_, service) => service !== 'redis',
  'on Redis': (_, service) => service === 'redis',
  'on PostgreSQL': (_, service) => service === 'postgres',
  'workflow engine': (id) => ENGINES.includes(id),
} satisfies Record<string, Choice>

export interface Best {
  readonly id: string
  readonly value: number
}

/** The best of the peers that are chosen; raw limits and we ourselves are none. */
export function bestPeer(
  peers: Peers,
  choice: keyof typeof CHOICES,
  better: 'high' | 'low',
  measure: (id: string) => number | undefined,
): Best | undefined {
  const chosen: Choice = CHOICES[choice]
  return Object.entries(peers.peers)
    .filter(([id, { service }]) => kindOf(peers, id) === 'peer' && chosen(id, service))
    .flatMap(([id]) => {
      const value = measure(id)
      return value === undefined ? [] : [{ id, value }]
    })
    .toSorted((a, b) => (better === 'high' ? b.value - a.value : a.value - b.value))[0]
}
