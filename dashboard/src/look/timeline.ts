import type { Action, Event, Step, WholeRun } from '../api/shapes.ts'
import { shownAction } from './states.ts'
import { asText, brief, span, visible } from './words.ts'

/** One bar of the waterfall. */
export interface Bar {
  readonly key: string
  readonly kind: 'queue' | 'model' | 'action' | 'wait' | 'command'
  readonly label: string
  readonly note: string
  readonly from: number
  readonly to: number
  /** It goes on. */
  readonly open: boolean
  readonly state?: string
  /** The action that it stands for. */
  readonly action?: string
}

const at = (iso: string) => Date.parse(iso)

/** What a run did with its time, in the order in which it began. */
export function timelineOf(run: WholeRun, events: readonly Event[], now: number): Bar[] {
  const waits = waitsOf(run, events, now)
  const bars = [
    ...waits,
    ...(run.request.kind === 'agent'
      ? [...modelBars(run, waits, now), ...actionBars(run, now)]
      : commandBars(run, now)),
  ]
  return bars.toSorted((a, b) => a.from - b.from || a.to - b.to)
}

/** In the queue, or parked: from the event that began it to the next start. */
function waitsOf(run: WholeRun, events: readonly Event[], now: number): Bar[] {
  const end = run.endedAt === undefined ? now : at(run.endedAt)
  const waits: Bar[] = []
  let since: { readonly from: number; readonly kind: 'queue' | 'wait'; readonly why: string } | undefined = {
    from: at(run.createdAt),
    kind: 'queue',
    why: 'in the queue',
  }
  const close = (to: number, open: boolean) => {
    if (since === undefined || (to - since.from < 5 && !open)) return
    const { from, kind, why } = since
    waits.push({ key: `wait ${from}`, kind, label: kind === 'queue' ? 'Queue' : 'Wait', note: why, from, to, open })
  }
  for (const { type, at: when, data } of events) {
    if (type === 'run.started' && since !== undefined) {
      close(at(when), false)
      since = undefined
    } else if (type === 'run.parked') {
      since = { from: at(when), kind: 'wait', why: visible(`for ${asText(data['waitsFor'] ?? 'something')}`) }
    } else if (type === 'run.requeued') since = { from: at(when), kind: 'queue', why: 'in the queue again' }
  }
  const isWaiting = run.state === 'queued' || run.state === 'parked'
  if (since !== undefined && (isWaiting || run.startedAt === undefined || since.kind === 'wait')) {
    close(end, run.endedAt === undefined)
  }
  return waits
}

/** A model call ends when its step is recorded; it began when the thing before it had ended. */
function modelBars(run: WholeRun, waits: readonly Bar[], now: number): Bar[] {
  const actions = run.actions ?? []
  const ends = [
    ...waits.filter(({ open }) => !open).map(({ to }) => to),
    ...actions.flatMap(({ settledAt }) => (settledAt === undefined ? [] : [at(settledAt)])),
    ...(run.startedAt === undefined ? [] : [at(run.startedAt)]),
  ]
  const steps = ((run.steps ?? []) as readonly Step[]).filter(({ kind }) => kind !== 'user')
  const bars = steps.map((step, index): Bar => {
    const to = at(step.at)
    const before = [...ends, ...steps.slice(0, index).map((each) => at(each.at))].filter((end) => end < to)
    const { inputTokens = 0, outputTokens = 0 } = step.usage ?? {}
    return {
      key: `step ${step.seq}`,
      kind: 'model',
      label: step.kind === 'summary' ? 'Summary' : 'Model',
      note: `${inputTokens} → ${outputTokens} tokens`,
      from: Math.max(...before, at(run.createdAt)),
      to,
      open: false,
    }
  })
  const busy = actions.some(({ state }) => state === 'started' || state === 'waiting')
  if (run.state !== 'running' || busy) return bars
  const from = Math.max(...ends, ...bars.map(({ to }) => to), at(run.startedAt ?? run.createdAt))
  return [...bars, { key: 'now', kind: 'model', label: 'Model', note: 'at work', from, to: now, open: true }]
}

const actionBars = (run: WholeRun, now: number): Bar[] =>
  (run.actions ?? []).flatMap((action) => {
    const began = action.startedAt ?? action.decision?.at
    if (began === undefined) return []
    return [barOf(action, at(began), now)]
  })

function barOf(action: Action, from: number, now: number): Bar {
  const { id, tool, state, settledAt, input } = action
  const open = state === 'started'
  return {
    key: id,
    kind: 'action',
    label: visible(tool),
    note: brief(input, 80),
    from,
    to: settledAt === undefined ? (open ? now : from) : Math.max(from, at(settledAt)),
    open,
    state: shownAction(action),
    action: id,
  }
}

/** Of a command only its attempts are known. */
const commandBars = (run: WholeRun, now: number): Bar[] =>
  run.attempts.map(({ id, number, claimedAt, endedAt, outcome }) => ({
    key: id,
    kind: 'command',
    label: `Attempt ${number}`,
    note: outcome ?? 'at work',
    from: at(claimedAt),
    to: endedAt === undefined ? now : at(endedAt),
    open: endedAt === undefined,
  }))

/** From an instant to a place between 0 and 1. */
export interface Scale {
  readonly place: (instant: number) => number
  readonly ticks: readonly { readonly place: number; readonly word: string }[]
  /** Waits that are drawn shorter than they were. */
  readonly cut: ReadonlySet<string>
}

const STEPS = [1, 2, 5, 10, 15, 30].flatMap((step) => [step, step * 1000, step * 60_000, step * 3_600_000])
const STEP_SIZES = [...STEPS, 20, 50, 100, 200, 500, 86_400_000].toSorted((a, b) => a - b)

/** The last part of the width, in which a word would not have room. */
const EDGE = 0.9

/** Round numbers, so many of them at most. */
function ticksOf(whole: number, most: number): Scale['ticks'] {
  const shown = whole * EDGE
  const step = STEP_SIZES.find((each) => shown / each <= most) ?? Math.ceil(shown / most)
  return Array.from({ length: Math.ceil(shown / step) }, (_, index) => ({
    place: (index * step) / whole,
    word: tickWord(index * step),
  }))
}

const tickWord = (ms: number) =>
  ms === 0
    ? '0'
    : span(ms)
        .replace('.0 s', ' s')
        .replace(/ 0 (s|min|h)$/, '')

/** The most that waiting may take of the width, as a multiple of the work. */
const WAIT_SHARE = 0.4

/** Time from left to right; a wait that would leave no room for the work is drawn short. */
export function scaleOf(bars: readonly Bar[], mostTicks: number): Scale {
  const from = Math.min(...bars.map((bar) => bar.from))
  const to = Math.max(...bars.map((bar) => bar.to), from + 1)
  const waits = bars.filter(({ kind }) => kind === 'wait' || kind === 'queue')
  const waited = waits.reduce((sum, bar) => sum + bar.to - bar.from, 0)
  const worked = to - from - waited
  const allowed = waits.length === 0 || worked <= 0 ? waited : Math.max(worked * WAIT_SHARE, 1)
  const shrink = waited > allowed ? allowed / waited : 1
  const moved = (instant: number) => {
    let place = instant - from
    for (const bar of waits) place -= (1 - shrink) * Math.max(0, Math.min(instant, bar.to) - bar.from)
    return place
  }
  const whole = moved(to)
  return {
    place: (instant) => Math.max(0, Math.min(1, moved(instant) / whole)),
    ticks: shrink === 1 ? ticksOf(to - from, mostTicks) : [],
    cut: new Set(shrink === 1 ? [] : waits.map(({ key }) => key)),
  }
}
