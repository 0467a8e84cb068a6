/** What stands in the way of a target, measured (bench/limits): the product's statements without the product, and raw rows. */
import { table } from '../../scripts/docs/markdown.ts'
import { shown, withUnit } from '../../scripts/docs/numbers.ts'
import type { Row } from '../bench.ts'
import type { Own } from './figures.ts'
import type { Checked } from './targets.ts'

/** A row of bench/limits, under the name of its target. */
export type Limit = Row & Required<Pick<Row, 'statements' | 'raw' | 'better'>>

const isLimit = (row: Row): row is Limit =>
  row.statements !== undefined && row.raw !== undefined && row.better !== undefined

const benchOf = (own: Own | undefined) => own?.benches.find(({ bench }) => bench === 'limits')

/** It may be measured with the others or by itself: the newer of both, where it was not in vain. */
export function newestLimits(...all: readonly (Own | undefined)[]): Own | undefined {
  const measured = all.filter((own) => own !== undefined && (benchOf(own)?.rows.length ?? 0) > 0) as Own[]
  return measured.toSorted((a, b) => b.date.localeCompare(a.date))[0]
}

export const limitsOf = (own: Own | undefined): Limit[] => (benchOf(own)?.rows ?? []).filter(isLimit)

export const limitsTable = (limits: readonly Limit[]): string =>
  table(
    ['', 'the product', 'its statements alone', 'raw rows', 'statements to raw', 'product to statements'],
    limits.map(({ name, unit, value, statements, raw }) => [
      name,
      withUnit(value, unit),
      shown(statements),
      shown(raw),
      shown(statements / raw),
      shown(value / statements),
    ]),
  )

/** What the targets that one figure misses would be to its statements alone. */
export function againstLimit(missed: readonly Checked[], limit: Limit, between: string): string {
  const { measured = Number.NaN, unit, engine } = missed[0]!
  const isHigh = limit.better === 'high'
  const times = limit.statements / limit.value
  // An engine that costs nothing that can be seen: the statements alone are not slower.
  const isFree = isHigh ? times <= 1 : times >= 1
  const best = isFree ? measured : measured * times
  const reach = withUnit(best, unit)
  const isReached = ({ needs = Number.NaN }: Checked) => (isHigh ? best >= needs : best <= needs)
  const [reached, beyond] = [missed.filter(isReached), missed.filter((row) => !isReached(row))]
  const which = (rows: readonly Checked[]) =>
    rows.length === missed.length ? 'the target' : `“${rows.map(({ target }) => target).join('”, “')}”`
  const found = isFree
    ? 'Its statements without the engine take as long ([limits](#limits)).'
    : `Its statements without the engine come to ${isHigh ? `${shown(times)} times as many` : `${shown(times)} of that`} ([limits](#limits)): here to ${reach}.`
  const outOfReach = `Out of reach with these rows is ${which(beyond)}: it asks for ${asked(beyond)}, which even without an engine is not to be had.`
  const inReach = `The statements alone would reach ${which(reached)} (${asked(reached)}); between them and the product are ${between}.`
  const bound = isHigh ? 'less' : 'more'
  const asBusy = isHigh && engine === 'PostgreSQL' ? ', with as much under way at once' : ''
  return [
    found,
    ...(reached.length > 0 ? [inReach] : []),
    ...(beyond.length > 0 ? [outOfReach] : []),
    isFree ? 'The best to be had is what is measured.' : `The best to be had is ${bound} than ${reach}${asBusy}.`,
  ].join(' ')
}

/** What the targets that one figure misses would be to its rows by hand, which are measured beside the others. */
export function againstHand(missed: readonly Checked[], id: string, what: string, value: number): string {
  const { measured = Number.NaN, unit } = missed[0]!
  const ratios = missed.flatMap(({ beside }) =>
    beside === undefined ? [] : [`${shown(value / beside.value)} times ${beside.id}`],
  )
  return `The same rows by hand (\`${id}\` below, in the same run: ${what}) come to ${withUnit(value, unit)}: ${ratios.join(', ')}. The product reaches ${shown(measured / value)} of that.`
}

/** What a peer would be that tells as much as the others do. */
export function againstSameEnd(missed: readonly Checked[], id: string, what: string, value: number): string {
  const { measured = Number.NaN, unit } = missed[0]!
  return `${what} (\`${id}\` below, in the same run) it comes to ${withUnit(value, unit)}, ${shown(value / measured)} times ours.`
}

const asked = (rows: readonly Checked[]) =>
  rows.map(({ needs = Number.NaN, unit }) => withUnit(needs, unit)).join(' and ')
