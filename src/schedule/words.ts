import { localTime, machineZone } from '../base/zone.ts'
import { describeRule } from './rule.ts'
import type { Rule } from './rule.ts'

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
