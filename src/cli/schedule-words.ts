import { formatDuration } from '../base/duration.ts'
import { localTime, machineZone } from '../base/zone.ts'
import { describeRule } from '../schedule/rule.ts'
import type { Rule } from '../schedule/rule.ts'
import { DEFAULT_OPTIONS } from '../schedule/schedule.ts'
import type { Misfire, Schedule, ScheduleOptions, Target } from '../schedule/schedule.ts'
import { visibleLine } from './output.ts'
import type { ScheduleView } from './views.ts'

/** In which zone a schedule's times are shown. */
export const zoneOf = (rule: Rule) => (rule.kind === 'cron' ? rule.zone : machineZone())

const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']

/** `Sun 2026-03-29 03:00:00 +02:00`. */
export function shownTime(at: number, zone: string): string {
  const local = localTime(at, zone)
  const weekday = WEEKDAYS[new Date(`${local.slice(0, 10)}T00:00:00Z`).getUTCDay()] ?? ''
  return `${weekday} ${local.slice(0, 10)} ${local.slice(11, 19)} ${local.slice(19)}`
}

/** `in 9h`, or `5m ago`. */
export function fromNow(at: number, now: number): string {
  const ms = Math.abs(at - now)
  const size = rounded(ms)
  return at >= now ? `in ${size}` : `${size} ago`
}

export function rounded(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`
  if (ms < 120_000) return `${Math.round(ms / 1_000)}s`
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)}m`
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)}h` : `${Math.round(ms / 86_400_000)}d`
}

export function describeWhen(rule: Rule, zone = zoneOf(rule)): string {
  return rule.kind === 'once' ? `once at ${shownTime(rule.at, zone)}` : describeRule(rule)
}

const LONGEST = 60

/** What it does, in one line. */
export function describeTarget(target: Target | ScheduleView['target']): string {
  switch (target.kind) {
    case 'message':
      return `tells ${target.threadId}: ${brief(target.text)}`
    case 'agent':
      return `asks ${target.agent}: ${brief(target.text)}`
    case 'command':
      return `runs ${brief(target.argv.map(quoted).join(' '))}`
    case 'webhook':
      return `calls ${brief(target.url)}`
  }
}

/** As one would type it. */
const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

export function brief(text: string, most = LONGEST): string {
  const line = visibleLine(text)
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`
}

const describeMisfire = (misfire: Misfire) => {
  if (misfire.policy === 'once') return 'the last missed instant fires late'
  return misfire.policy === 'skip' ? 'missed instants are skipped' : `the last ${misfire.limit} missed instants fire`
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
export function describeOptions(options: ScheduleOptions, zone: string): string[] {
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
    ...(until === undefined ? [] : [`until ${shownTime(until, zone)}`]),
    ...(maxFirings === undefined ? [] : [`${maxFirings} firings at most`]),
    ...(options.firingMicrousd === undefined ? [] : [`${options.firingMicrousd / 1e6} USD a firing at most`]),
    ...(options.dayMicrousd === undefined ? [] : [`${options.dayMicrousd / 1e6} USD a day at most`]),
  ]
}

export const describeState = ({ state, failures }: Schedule) =>
  failures === 0 ? state : `${state}, ${failures} failed`

export const nextOf = ({ nextAt, state }: Pick<Schedule, 'nextAt' | 'state'>, now: number) =>
  nextAt === null ? '–' : state === 'paused' ? 'paused' : nextAt <= now ? 'due' : fromNow(nextAt, now)
