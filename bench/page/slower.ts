/** The same targets where every sync takes longer (`bench/peers/run.ts --sync`): how much of a ratio is the disk. */
import { table } from '../../scripts/docs/markdown.ts'
import { shown, withUnit } from '../../scripts/docs/numbers.ts'
import type { Peers } from './figures.ts'
import { checkTargets } from './targets.ts'
import type { Checked } from './targets.ts'

export interface Slower extends Peers {
  /** So much longer. */
  readonly syncMs: number
  /** As it was measured in the same run. */
  readonly fdatasync: readonly { readonly overwrite4k: { readonly p50Ms: number } }[]
}

/** What is kept of one run. */
export function keptOf(run: Slower & { readonly raw?: unknown }): Slower {
  const { raw: _, ...kept } = run
  return kept
}

function syncOf({ fdatasync }: Slower): number {
  const sorted = fdatasync.map(({ overwrite4k }) => overwrite4k.p50Ms).toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? Number.NaN
}

const cell = ({ measured, unit, ratio, met }: Checked): string =>
  measured === undefined || ratio === undefined
    ? '–'
    : `${shown(ratio)} (${withUnit(measured, unit)})${met === true ? '' : ', **missed**'}`

/** A row for each target of what was measured, a column for each run. */
export function slowerTable(runs: readonly Slower[]): string {
  const columns = runs.toSorted((a, b) => a.syncMs - b.syncMs).map((run) => ({ run, checked: checkTargets(run) }))
  const isMeasured = (place: number) => columns.every(({ checked }) => checked[place]!.ratio !== undefined)
  const rows = (columns[0]?.checked ?? []).flatMap(({ workload, engine, what, target }, place) =>
    isMeasured(place) ? [[workload, engine, what, target, ...columns.map(({ checked }) => cell(checked[place]!))]] : [],
  )
  return table(['', 'store', 'what', 'target', ...columns.map(({ run }) => `a sync of ${shown(syncOf(run))} ms`)], rows)
}
