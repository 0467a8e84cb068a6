/** Bars as SVG text: legible on light and on dark, each with its value beside it. */
import { withUnit } from './numbers.ts'

/** Whose bar it is, which is its colour. */
export type Kind = 'ours' | 'raw' | 'peer'

export interface Bar {
  readonly label: string
  /** Undefined: there is none, and `note` says why. */
  readonly value: number | undefined
  readonly kind: Kind
  /** After the value. */
  readonly note?: string
  /** Bars of one group stand together, under its name. */
  readonly group?: string
}

export interface Chart {
  readonly title: string
  readonly subtitle: string
  readonly unit: string
  readonly scale: 'log' | 'linear'
  readonly bars: readonly Bar[]
  /** Without: all of them are ours, and there is nobody beside us. */
  readonly legend?: false
}

const [WIDTH, LABELS, VALUES, LINE, TOP] = [860, 230, 150, 26, 82] as const
const AREA = WIDTH - LABELS - VALUES

const STYLE = `<style>
  text { font: 13px system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 }
  .quiet { fill: #59636e; font-size: 12px }
  .group { font-weight: 600 }
  .value { font-variant-numeric: tabular-nums }
  .grid { stroke: #d1d9e0; stroke-width: 1 }
  .ours { fill: #0969da }
  .raw { fill: #afb8c1 }
  .peer { fill: #bf8700 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .quiet { fill: #9198a1 }
    .grid { stroke: #3d444d }
    .ours { fill: #4493f8 }
    .raw { fill: #656c76 }
    .peer { fill: #d29922 }
  }
</style>`

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const at = (value: number) => Number(value.toFixed(1))

interface Axis {
  readonly place: (value: number) => number
  readonly ticks: readonly number[]
}

/** A logarithmic axis begins a decade below the smallest bar, so that it has a length to see. */
function axisFor({ bars, scale }: Chart): Axis {
  const values = bars.flatMap(({ value }) => (value === undefined || value <= 0 ? [] : [value]))
  const [least, most] = [Math.min(...values), Math.max(...values)]
  if (scale === 'log') {
    const [from, to] = [Math.floor(Math.log10(least) - 0.3), Math.ceil(Math.log10(most))]
    const ticks = Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index))
    return { ticks, place: (value) => (value <= 0 ? 0 : (AREA * (Math.log10(value) - from)) / (to - from)) }
  }
  const step = niceStep(most)
  const top = Math.ceil(most / step) * step
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step)
  return { ticks, place: (value) => (AREA * value) / top }
}

function niceStep(most: number): number {
  const decade = 10 ** Math.floor(Math.log10(most))
  return [0.2, 0.25, 0.5, 1, 2].map((part) => part * decade).find((step) => most / step <= 6) ?? decade
}

/** Where each line stands: a bar, or the name of a group. */
function linesOf(bars: readonly Bar[]): (Bar | string)[] {
  const lines: (Bar | string)[] = []
  for (const bar of bars) {
    if (bar.group !== undefined && !lines.includes(bar.group)) lines.push(bar.group)
    lines.push(bar)
  }
  return lines
}

function barAt(bar: Bar, y: number, { place }: Axis, unit: string): string {
  const { label, value, kind, note } = bar
  const [words, length] = [note === undefined ? '' : ` ${note}`, value === undefined ? 0 : Math.max(place(value), 1.5)]
  const text = value === undefined ? (note ?? 'not measured') : `${withUnit(value, unit)}${words}`
  return [
    `<text x="${LABELS - 10}" y="${y + 17}" text-anchor="end"${kind === 'ours' ? ' class="group"' : ''}>${escaped(label)}</text>`,
    value === undefined
      ? ''
      : `<rect class="${kind}" x="${LABELS}" y="${y + 4}" width="${at(length)}" height="${LINE - 8}" rx="2"/>`,
    `<text class="value${value === undefined ? ' quiet' : ''}" x="${at(LABELS + length + 7)}" y="${y + 17}">${escaped(text)}</text>`,
  ].join('')
}

const LEGEND: readonly (readonly [Kind, string])[] = [
  ['ours', 'Holdfast'],
  ['raw', 'the limit of the store itself'],
  ['peer', 'others'],
]

function legend(bars: readonly Bar[]): string {
  let x = LABELS
  return LEGEND.filter(([kind]) => bars.some((bar) => bar.kind === kind))
    .map(([kind, words]) => {
      const entry = `<rect class="${kind}" x="${x}" y="55" width="12" height="12" rx="2"/><text class="quiet" x="${x + 18}" y="65">${words}</text>`
      x += 40 + words.length * 7
      return entry
    })
    .join('')
}

export function drawBars(chart: Chart): string {
  const { title, subtitle, unit, bars, scale } = chart
  const [axis, lines] = [axisFor(chart), linesOf(bars)]
  const bottom = TOP + lines.length * LINE
  const grid = axis.ticks.map((tick) => {
    const x = at(LABELS + axis.place(tick === 0 ? 0 : tick))
    return `<line class="grid" x1="${x}" x2="${x}" y1="${TOP}" y2="${bottom + 4}"/><text class="quiet" x="${x}" y="${bottom + 20}" text-anchor="middle">${tick.toLocaleString('en-US')}</text>`
  })
  const drawn = lines.map((line, index) => {
    const y = TOP + index * LINE
    return typeof line === 'string'
      ? `<text class="group" x="8" y="${y + 18}">${escaped(line)}</text>`
      : barAt(line, y, axis, unit)
  })
  const how = `${subtitle}${scale === 'log' ? '; logarithmic' : ''}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 32}" width="${WIDTH}" height="${bottom + 32}" role="img" aria-label="${escaped(title)}">
${STYLE}
<text class="title" x="8" y="22">${escaped(title)}</text>
<text class="quiet" x="8" y="41">${escaped(how)}</text>
${chart.legend === false ? '' : legend(bars)}
${grid.join('\n')}
${drawn.join('\n')}
</svg>
`
}
