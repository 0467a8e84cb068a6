import { Cron } from 'croner'

import { formatDuration } from '../base/duration.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { checkZone } from '../base/zone.ts'

/**
 * When something is due. Instants come from the rule alone, never from when the last one was acted on: `every` keeps its
 * distance to its anchor, whatever was late.
 *
 * Daylight saving, as croner has it: one fixed time a day ("30 2 * * *") that a night leaves out comes at the end of the gap; if
 * a night has it twice, it comes the first time. A pattern with `*`, a step, a list or a range in its minutes or hours follows the
 * clock on the wall: what is left out does not come, what comes twice comes twice.
 */
export type Rule =
  | { readonly kind: 'once'; readonly at: number }
  | { readonly kind: 'every'; readonly everyMs: number; readonly anchor: number }
  | { readonly kind: 'cron'; readonly expression: string; readonly zone: string }

/** When, as one asks for it: a delay counts from when it is stored, and so does an interval without an anchor. */
export type NewRule =
  | Rule
  | { readonly kind: 'in'; readonly delayMs: number }
  | { readonly kind: 'every'; readonly everyMs: number; readonly anchor?: number }

/** As it is stored at this instant. */
export function settledFor(rule: NewRule, at: number): Rule {
  if (rule.kind === 'in') return { kind: 'once', at: at + rule.delayMs }
  if (rule.kind === 'every') return { ...rule, anchor: rule.anchor ?? at + rule.everyMs }
  return rule
}

/** The first instant of the rule after this one; undefined: there is none. */
export function nextAfter(rule: Rule, instant: number): number | undefined {
  switch (rule.kind) {
    case 'once':
      return rule.at > instant ? rule.at : undefined
    case 'every': {
      const passed = Math.floor((instant - rule.anchor) / rule.everyMs)
      return rule.anchor + Math.max(passed + 1, 0) * rule.everyMs
    }
    case 'cron':
      return cronOf(rule).nextRun(new Date(instant))?.getTime()
  }
}

/** The last so many instants from `first`, which is one of them, up to `until`; oldest first. */
export function lastInstants(rule: Rule, first: number, until: number, count: number): readonly number[] {
  switch (rule.kind) {
    case 'once':
      return [rule.at]
    case 'every': {
      const last = rule.anchor + Math.floor((until - rule.anchor) / rule.everyMs) * rule.everyMs
      const all = Math.floor((last - first) / rule.everyMs) + 1
      return Array.from({ length: Math.min(count, all) }, (_, back) => last - back * rule.everyMs).toReversed()
    }
    case 'cron': {
      // One more than the instant itself: croner looks strictly before.
      const before = cronOf(rule).previousRuns(count, new Date(until + 1_000))
      const instants = before.map((date) => date.getTime()).filter((at) => at > first && at <= until)
      return [...(instants.length < count ? [first] : []), ...instants.toReversed()]
    }
  }
}

/** How many instants from `first` to `last`, both included; counted up to a limit. */
export function countInstants(rule: Rule, first: number, last: number): number {
  if (rule.kind === 'once' || last <= first) return 1
  if (rule.kind === 'every') return Math.floor((last - first) / rule.everyMs) + 1
  let count = 1
  for (let at = nextAfter(rule, first); at !== undefined && at <= last; at = nextAfter(rule, at)) {
    count += 1
    if (count >= LIMITS.instantsCounted) break
  }
  return count
}

/** Refuses a rule that says nothing or nonsense, in words that say what to write. */
export function checkRule(rule: Rule): void {
  if (rule.kind === 'once') return checkInstant(rule.at)
  if (rule.kind === 'cron') return checkCron(rule)
  checkInstant(rule.anchor)
  if (!Number.isSafeInteger(rule.everyMs))
    throw usage(`every ${rule.everyMs} is not a number of milliseconds`, 'write a duration: 90s, 15m, 2h')
  if (rule.everyMs < LIMITS.everyLeastMs)
    throw usage(
      `every ${formatDuration(rule.everyMs)} is too often`,
      `at most every ${formatDuration(LIMITS.everyLeastMs)}`,
    )
}

function checkInstant(at: number): void {
  if (!Number.isSafeInteger(at) || Math.abs(at) > 8.64e15)
    throw usage('this is not an instant', 'write a date and a time')
}

function checkCron(rule: Extract<Rule, { kind: 'cron' }>): void {
  const fields = rule.expression.trim().split(/\s+/).length
  if (fields !== 5 && fields !== 6 && !rule.expression.startsWith('@'))
    throw usage(`"${rule.expression}" has ${fields} fields`, 'a cron expression has 5, or 6 with seconds first')
  checkZone(rule.zone)
  try {
    if (nextAfter(rule, 0) !== undefined) return
  } catch (cause) {
    const words = cause instanceof Error ? cause.message.replace(/^Cron\w*: /, '') : String(cause)
    throw usage(`"${rule.expression}" is no cron expression: ${words}`, 'write as in crontab(5): "30 2 * * 1-5"', cause)
  }
  throw usage(`"${rule.expression}" never comes`, 'choose a day that exists')
}

const usage = (message: string, remedy: string, cause?: unknown) =>
  new HoldfastError('usage/schedule', message, { remedy, ...(cause === undefined ? {} : { cause }) })

/** Parsing costs a fifth of a millisecond, and a schedule comes again and again. */
const parsed = new Map<string, Cron>()

function cronOf({ expression, zone }: Extract<Rule, { kind: 'cron' }>): Cron {
  const key = `${zone} ${expression}`
  const known = parsed.get(key)
  if (known !== undefined) return known
  const made = new Cron(expression, { timezone: zone, paused: true })
  if (parsed.size >= LIMITS.cronsParsed) parsed.clear()
  parsed.set(key, made)
  return made
}

/** As one would say it. */
export function describeRule(rule: Rule): string {
  switch (rule.kind) {
    case 'once':
      return `once at ${new Date(rule.at).toISOString()}`
    case 'every':
      return `every ${formatDuration(rule.everyMs)}`
    case 'cron':
      return `cron "${rule.expression}" in ${rule.zone}`
  }
}

/** The next so many instants after this one. */
export function nextInstants(rule: Rule, after: number, count: number): readonly number[] {
  const instants: number[] = []
  for (let at = nextAfter(rule, after); at !== undefined && instants.length < count; at = nextAfter(rule, at)) {
    instants.push(at)
  }
  return instants
}
