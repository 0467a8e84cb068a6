import type { Bar, Scale } from '../look/timeline.ts'
import { scaleOf } from '../look/timeline.ts'
import { exact, span } from '../look/words.ts'
import { narrow } from '../state/theme.ts'
import { Mark } from './small.tsx'

const COLOURS: Readonly<Record<Bar['kind'], string>> = {
  queue: 'bg-line-strong',
  wait: 'bg-warn-soft border border-dashed border-warn',
  model: 'bg-accent',
  action: 'bg-busy',
  command: 'bg-busy',
}

const STATES: Readonly<Record<string, string>> = {
  failed: 'bg-bad',
  denied: 'bg-bad',
  in_doubt: 'bg-doubt',
  repeat: 'bg-line-strong',
}

const LEGEND: readonly (readonly [string, string])[] = [
  ['bg-accent', 'model'],
  ['bg-busy', 'tool'],
  ['bg-warn-soft border border-dashed border-warn', 'waiting'],
  ['bg-line-strong', 'queue'],
]

/** Where the time went: one line each, from left to right. */
export function Waterfall({
  bars,
  hasEnded,
  onPick,
}: {
  readonly bars: readonly Bar[]
  readonly hasEnded: boolean
  readonly onPick: (action: string) => void
}) {
  if (bars.length === 0)
    return <p class="text-quiet">{hasEnded ? 'It did nothing that is recorded.' : 'Nothing has happened yet.'}</p>
  const scale = scaleOf(bars, narrow.value ? 2 : 5)
  return (
    <div class="panel overflow-hidden">
      <div class="border-line bg-sunken text-quiet relative flex h-7 items-center border-b text-xs">
        <div class="flex w-36 shrink-0 gap-2 px-3 md:w-56">Step</div>
        <div class="relative h-full flex-1">
          {scale.ticks.map(({ place, word }) => (
            <span key={place} class="absolute top-1.5 whitespace-nowrap" style={{ left: `${place * 100}%` }}>
              {word}
            </span>
          ))}
        </div>
        <div class="w-24 shrink-0 px-3 text-right">Took</div>
      </div>
      <ol>
        {bars.map((bar) => (
          <li key={bar.key} class="row-line last:border-0">
            <Line bar={bar} scale={scale} onPick={onPick} />
          </li>
        ))}
      </ol>
      <div class="border-line text-quiet flex flex-wrap gap-4 border-t px-3 py-1.5 text-xs">
        {LEGEND.map(([colour, word]) => (
          <span key={word} class="flex items-center gap-1.5">
            <span class={`h-2.5 w-4 rounded-sm ${colour}`} />
            {word}
          </span>
        ))}
        {scale.cut.size > 0 && <span class="ml-auto">waiting is drawn shorter than it was</span>}
      </div>
    </div>
  )
}

interface LineProps {
  readonly bar: Bar
  readonly scale: Scale
  readonly onPick: (action: string) => void
}

function Line({ bar, scale, onPick }: LineProps) {
  const { label, note, action, from, to, open } = bar
  const left = scale.place(from)
  const width = scale.place(to) - left
  const colour = (bar.state === undefined ? undefined : STATES[bar.state]) ?? COLOURS[bar.kind]
  const content = (
    <>
      <span class="flex w-36 shrink-0 items-center gap-2 px-3 md:w-56">
        {bar.state === undefined ? <span class="w-4" /> : <Mark state={bar.state} />}
        <span class={`truncate text-sm ${bar.kind === 'action' ? 'font-mono text-xs' : ''}`}>{label}</span>
      </span>
      <span class="relative h-full min-w-0 flex-1">
        <span
          class={`absolute top-2 h-4 min-w-[3px] rounded-sm ${colour} ${open ? 'breathe' : ''}`}
          style={{ left: `${left * 100}%`, width: `${width * 100}%` }}
        />
        <Note note={note} left={left} right={left + width} />
      </span>
      <span class="w-24 shrink-0 truncate px-3 text-right text-xs">{span(to - from)}</span>
    </>
  )
  const title = `${label}: ${note}\n${exact(new Date(from).toISOString())}`
  const look = 'flex h-8 w-full items-center text-left'
  if (action === undefined)
    return (
      <div class={look} title={title}>
        {content}
      </div>
    )
  return (
    <button type="button" class={`${look} hover:bg-hover`} title={title} onClick={() => onPick(action)}>
      {content}
    </button>
  )
}

/** Beside its bar, where there is room for it. */
const ROOM = 0.15

function Note({ note, left, right }: { readonly note: string; readonly left: number; readonly right: number }) {
  const percent = (share: number) => `${share * 100}%`
  const after = { left: percent(right), maxWidth: percent(1 - right) }
  const before = { right: percent(1 - left), maxWidth: percent(left) }
  if (1 - right < ROOM && left < ROOM) return null
  return (
    <span
      class="text-quiet absolute inset-y-0 truncate px-1.5 text-xs leading-8 max-md:hidden"
      style={1 - right >= left ? after : before}
    >
      {note}
    </span>
  )
}
