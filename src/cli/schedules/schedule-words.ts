import { formatDuration } from '../../base/duration.ts'
import { shellWord } from '../../base/text.ts'
import { DEFAULT_OPTIONS } from '../../schedule/schedule.ts'
import { ruleIn } from '../../schedule/view.ts'
import { describeWhen as describeStored, fromNow, shownTime } from '../../schedule/words.ts'
import { visibleLine } from '../words/output.ts'
import type { ScheduleView } from '../words/views.ts'

export const describeWhen = ({ rule }: Pick<ScheduleView, 'rule'>): string => describeStored(ruleIn(rule))

const LONGEST = 60

/** What it does, in one line. */
export function describeTarget(target: ScheduleView['target']): string {
  switch (target.kind) {
    case 'message':
      return `tells ${target.threadId}: ${brief(target.text)}`
    case 'agent':
      return `asks ${target.agent}: ${brief(target.text)}`
    case 'command':
      return `runs ${brief(target.argv.map(shellWord).join(' '))}`
    case 'call':
      return `calls the function ${target.function}`
    case 'webhook':
      return `calls ${brief(target.url)}`
  }
}

export function brief(text: string, most = LONGEST): string {
  const line = visibleLine(text)
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`
}

const describeMisfire = (misfire: ScheduleView['options']['misfire']) => {
  if ('limit' in misfire) return `the last ${misfire.limit} missed instants fire`
  return misfire.policy === 'once' ? 'the last missed instant fires late' : 'missed instants are skipped'
}

const OVERLAPS = {
  skip: 'skips while one is at work',
  queue: 'one waits while one is at work',
  cancel: 'cancels the one that is at work',
} as const

const STOPPED = {
  hold: 'waits for a stopped thread',
  drop: 'is dropped for a stopped thread',
  wake: 'wakes a stopped thread',
} as const

/** Those that are as always go without saying, but for the two that people ask about. */
export function describeOptions(options: ScheduleView['options'], zone: string): string[] {
  const { misfire, graceMs, overlap, retry, pauseAfter, stopped, jitterMs, until, maxFirings } = options
  const { tries, baseMs, factor } = retry
  const usual = DEFAULT_OPTIONS
  return [
    `${describeMisfire(misfire)}${graceMs === usual.graceMs ? '' : ` (missed is later than ${formatDuration(graceMs)})`}`,
    OVERLAPS[overlap],
    ...(retry === usual.retry || JSON.stringify(retry) === JSON.stringify(usual.retry)
      ? []
      : [tries === 0 ? 'never retries' : `${tries} retries from ${formatDuration(baseMs)}, times ${factor}`]),
    ...(options.transient.length === 0 ? [] : [`retries ${options.transient.join(', ')} too`]),
    ...(pauseAfter === usual.pauseAfter
      ? []
      : [pauseAfter === 0 ? 'never pauses' : `pauses after ${pauseAfter} failures`]),
    ...(stopped === usual.stopped ? [] : [STOPPED[stopped]]),
    ...(jitterMs === 0 ? [] : [`up to ${formatDuration(jitterMs)} later`]),
    ...(options.deleteAfterRun ? ['is removed after its run'] : []),
    ...(until === undefined ? [] : [`until ${shownTime(Date.parse(until), zone)}`]),
    ...(maxFirings === undefined ? [] : [`${maxFirings} firings at most`]),
    ...(options.maxCostUsd === undefined ? [] : [`${options.maxCostUsd} USD a firing at most`]),
    ...(options.maxCostUsdADay === undefined ? [] : [`${options.maxCostUsdADay} USD a day at most`]),
  ]
}

export const describeState = ({ state, failures }: ScheduleView) =>
  failures === 0 ? state : `${state}, ${failures} failed`

export function nextOf({ nextAt, state }: Pick<ScheduleView, 'nextAt' | 'state'>, now: number): string {
  if (nextAt === undefined) return '–'
  if (state === 'paused') return 'paused'
  const at = Date.parse(nextAt)
  return at <= now ? 'due' : fromNow(at, now)
}
