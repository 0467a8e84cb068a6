import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'

import type { Bucket } from '../api/shapes.ts'
import { count, money } from '../look/words.ts'
import { repaint } from '../state/theme.ts'

const HEIGHT = 180

interface Props {
  readonly from: number
  readonly to: number
  readonly bucketMs: number
  readonly buckets: readonly Bucket[]
}

type Series = [number[], number[], number[], number[]]

/** Every slot between the two ends, also those in which nothing ended. */
function seriesOf({ from, to, bucketMs, buckets }: Props): Series {
  const byTime = new Map(buckets.map((bucket) => [Date.parse(bucket.at), bucket]))
  const first = Math.floor(from / bucketMs) * bucketMs
  const series: Series = [[], [], [], []]
  for (let at = first; at <= to; at += bucketMs) {
    const bucket = byTime.get(at)
    const ended = bucket === undefined ? 0 : bucket.succeeded + bucket.failed + bucket.cancelled
    series[0].push(at / 1000)
    series[1].push(ended)
    series[2].push(bucket?.failed ?? 0)
    series[3].push(bucket?.costUsd ?? 0)
  }
  return series
}

const colour = (name: string) => {
  const probe = document.createElement('span')
  probe.style.color = `var(--${name})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

const hour = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const dayOfMonth = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })

/** The hour; at midnight the day that begins. */
function tickWord(seconds: number): string {
  const instant = new Date(seconds * 1000)
  return instant.getHours() + instant.getMinutes() === 0 ? dayOfMonth.format(instant) : hour.format(instant)
}

function optionsOf(
  plot: typeof uPlot,
  {
    width,
    bucketMs,
    onHover,
  }: { readonly width: number; readonly bucketMs: number; readonly onHover: (index: number | null) => void },
): uPlot.Options {
  const [line, quiet, accent, bad, warn] = ['line', 'quiet', 'accent', 'bad', 'warn'].map(colour) as [
    string,
    string,
    string,
    string,
    string,
  ]
  const bars = plot.paths.bars?.({ size: [0.7, 24], align: 1 })
  const steps = plot.paths.stepped?.({ align: 1 })
  const font = '11px system-ui, sans-serif'
  const axis = { stroke: quiet, font, grid: { stroke: line, width: 1 }, ticks: { show: false } }
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { setScale: false, x: false, y: false } },
    scales: {
      // The last slot has a width, too.
      x: { time: true, range: (_, min, max) => [min, max + bucketMs / 1000] },
      y: { range: (_, __, max) => [0, Math.max(4, max * 1.15)] },
      usd: { range: (_, __, max) => [0, Math.max(0.01, max * 1.15)] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 26, space: 70, values: (_, instants) => instants.map(tickWord) },
      { ...axis, size: 38, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] },
      {
        ...axis,
        scale: 'usd',
        side: 1,
        grid: { show: false },
        size: 52,
        values: (_, all) => all.map((each) => money(each)),
      },
    ],
    series: [
      {},
      {
        label: 'Ended',
        fill: accent,
        width: 0,
        ...(bars === undefined ? {} : { paths: bars }),
        points: { show: false },
      },
      { label: 'Failed', fill: bad, width: 0, ...(bars === undefined ? {} : { paths: bars }), points: { show: false } },
      {
        label: 'Cost',
        scale: 'usd',
        stroke: warn,
        width: 1.5,
        ...(steps === undefined ? {} : { paths: steps }),
        points: { show: false },
      },
    ],
    hooks: { setCursor: [({ cursor }) => onHover(cursor.idx ?? null)] },
  }
}

const when = new Intl.DateTimeFormat(undefined, { weekday: 'short', hour: '2-digit', minute: '2-digit' })

/** What ended when, and what it cost. The library comes when the chart does. */
export function Chart(props: Props) {
  const box = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | undefined>(undefined)
  const [hovered, setHovered] = useState<number | null>(null)
  const data = seriesOf(props)
  const latest = useRef(data)
  latest.current = data
  const painted = repaint.value
  useEffect(() => {
    let gone = false
    const draw = async () => {
      const { default: plot } = await import('uplot')
      if (gone || box.current === null) return
      chart.current = new plot(
        optionsOf(plot, { width: box.current.clientWidth, bucketMs: props.bucketMs, onHover: setHovered }),
        latest.current,
        box.current,
      )
    }
    void draw()
    const watch = new ResizeObserver(([entry]) => {
      if (entry !== undefined) chart.current?.setSize({ width: entry.contentRect.width, height: HEIGHT })
    })
    if (box.current !== null) watch.observe(box.current)
    return () => {
      gone = true
      watch.disconnect()
      chart.current?.destroy()
      chart.current = undefined
    }
  }, [painted])
  useEffect(() => chart.current?.setData(latest.current), [props.buckets, props.from, props.bucketMs])
  const sum = (of: readonly number[]) => of.reduce((total, each) => total + each, 0)
  const [times, ended, failed, cost] = data
  const shown =
    hovered === null
      ? [sum(ended), sum(failed), sum(cost)]
      : [ended[hovered] ?? 0, failed[hovered] ?? 0, cost[hovered] ?? 0]
  const [runs = 0, lost = 0, spent = 0] = shown
  return (
    <figure
      class="panel px-3 pt-2 pb-1"
      role="group"
      aria-label={`${sum(ended)} runs ended, ${sum(failed)} of them failed, for ${money(sum(cost))}`}
    >
      <figcaption class="text-quiet flex min-h-6 flex-wrap items-center gap-x-5 text-xs">
        <Legend colour="bg-accent" word="Ended" value={count(runs)} />
        <Legend colour="bg-bad" word="Failed" value={count(lost)} />
        <Legend colour="bg-warn" word="Cost" value={money(spent)} />
        <span class="ml-auto">{hovered === null ? 'in all' : when.format(new Date((times[hovered] ?? 0) * 1000))}</span>
      </figcaption>
      <div ref={box} class="h-[180px] overflow-hidden" />
    </figure>
  )
}

const Legend = ({
  colour: look,
  word,
  value,
}: {
  readonly colour: string
  readonly word: string
  readonly value: string
}) => (
  <span class="flex items-center gap-1.5">
    <span class={`size-2.5 rounded-sm ${look}`} />
    {word} <strong class="text-ink font-semibold">{value}</strong>
  </span>
)
