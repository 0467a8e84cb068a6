import { formatDuration, parseDuration } from '../base/duration.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { checkZone, parseInstant } from '../base/zone.ts'
import type { Thread } from '../threads/thread.ts'
import { checkRule, settledFor } from './rule.ts'
import type { NewRule } from './rule.ts'
import type { Misfire, Retry, ScheduleOptions, Target } from './schedule.ts'

/*
 * What people and programs ask for, in their words: durations as `30m`, instants as ISO 8601, money in US dollars. Every door
 * reads it here, so that each takes the same and says the same about a mistake.
 */

type Instant = string | Date

/** One of `in`, `at`, `every` and `cron`. */
export interface WhenRequest {
  readonly in?: string
  readonly at?: Instant
  readonly every?: string
  /** An instant of `every`; without it the first comes one interval from now. */
  readonly anchor?: Instant
  /** 5 fields, or 6 with seconds first. */
  readonly cron?: string
  /** IANA: of `cron`, and of instants without an offset. By default the machine's. */
  readonly zone?: string
}

/** `null` takes a limit away. */
export interface OptionsRequest {
  /** `once`, `skip` or `each:N`. */
  readonly misfire?: string
  readonly grace?: string
  readonly overlap?: ScheduleOptions['overlap']
  readonly retries?: number
  readonly retryBase?: string
  readonly retryFactor?: number
  readonly retryJitter?: number
  readonly transient?: readonly string[]
  readonly pauseAfter?: number
  readonly stopped?: ScheduleOptions['stopped']
  readonly jitter?: string
  readonly deleteAfterRun?: boolean
  readonly until?: Instant | null
  readonly maxFirings?: number | null
  readonly maxCostUsd?: number | null
  readonly maxCostUsdADay?: number | null
  readonly why?: string
}

const wrong = (message: string, remedy: string) => new HoldfastError('usage/schedule', message, { remedy })

/** Where and when it is asked. */
export interface Place {
  readonly now: number
  readonly zone: string
}

const WHENS = ['in', 'at', 'every', 'cron'] as const

export function readRule(when: WhenRequest, place: Place): NewRule {
  const given = WHENS.filter((key) => when[key] !== undefined)
  const [only, second] = given
  if (only === undefined) throw wrong('it does not say when', 'give one of in, at, every and cron')
  if (second !== undefined) throw wrong(`${given.join(' and ')} are two answers to when`, 'give one of them')
  if (when.anchor !== undefined && only !== 'every')
    throw wrong('an anchor is an instant of every', `leave it out, or say every instead of ${only}`)
  const zone = when.zone ?? place.zone
  if (when.zone !== undefined) checkZone(zone)
  const rule = ruleOf(when, zone)
  checkRule(settledFor(rule, place.now))
  return rule
}

function ruleOf({ in: delay, at, every, anchor, cron }: WhenRequest, zone: string): NewRule {
  if (delay !== undefined) return { kind: 'in', delayMs: parseDuration(delay) }
  if (at !== undefined) return { kind: 'once', at: readInstant(at, zone) }
  if (cron !== undefined) return { kind: 'cron', expression: cron.trim(), zone }
  const everyMs = parseDuration(every ?? '')
  return { kind: 'every', everyMs, ...(anchor === undefined ? {} : { anchor: readInstant(anchor, zone) }) }
}

const readInstant = (given: Instant, zone: string): number =>
  given instanceof Date ? given.getTime() : parseInstant(given, zone).at

/** Only what is asked for; `current` is what is there, of which a retry keeps the rest. */
export function readOptions(request: OptionsRequest, current: ScheduleOptions, zone: string): Partial<ScheduleOptions> {
  const { overlap, stopped, transient, deleteAfterRun, why } = request
  const read = {
    ...given(request.misfire, (text) => ({ misfire: readMisfire(text) })),
    ...given(request.grace, (text) => ({ graceMs: parseDuration(text) })),
    ...given(overlap, () => ({ overlap: oneOf('overlap', overlap, ['skip', 'queue', 'cancel'] as const) })),
    ...given(readRetry(request, current.retry), (retry) => ({ retry })),
    ...given(transient, (codes) => ({ transient: codes.map(readCode) })),
    ...given(request.pauseAfter, (count) => ({ pauseAfter: whole('pauseAfter', count, 0) })),
    ...given(stopped, () => ({ stopped: oneOf('stopped', stopped, ['hold', 'drop', 'wake'] as const) })),
    ...given(request.jitter, (text) => ({ jitterMs: parseDuration(text) })),
    ...given(deleteAfterRun, (yes) => ({ deleteAfterRun: yes })),
    ...given(request.until, (at) => ({ until: at === null ? undefined : readInstant(at, zone) })),
    ...given(request.maxFirings, (count) => ({
      maxFirings: count === null ? undefined : whole('maxFirings', count, 1),
    })),
    ...given(request.maxCostUsd, (usd) => ({ firingMicrousd: usd === null ? undefined : money('maxCostUsd', usd) })),
    ...given(request.maxCostUsdADay, (usd) => ({
      dayMicrousd: usd === null ? undefined : money('maxCostUsdADay', usd),
    })),
    ...given(why, (words) => ({ why: words })),
  }
  // What is taken away is undefined here, and absent in what is stored.
  return read as Partial<ScheduleOptions>
}

// Partial, not a union with nothing: fourteen of those spread into one object are 16,384 types to the compiler.
const given = <T, R extends object>(value: T | undefined, read: (value: T) => R): Partial<R> =>
  value === undefined ? {} : read(value)

function readMisfire(text: string): Misfire {
  if (text === 'once' || text === 'skip') return { policy: text }
  const count = /^each:(\d+)$/.exec(text)?.[1]
  if (count === undefined) throw wrong(`"${text}" is no answer to a misfire`, 'write once, skip, or each:10')
  const limit = Number(count)
  if (limit < 1 || limit > LIMITS.catchUpMost)
    throw wrong(`each:${count} is out of bounds`, `from each:1 to each:${LIMITS.catchUpMost}`)
  return { policy: 'each', limit }
}

/** More than this is no retry any more. */
const LONGEST_WAIT_MS = 30 * 86_400_000

function readRetry(request: OptionsRequest, current: Retry): Retry | undefined {
  const { retries, retryBase, retryFactor, retryJitter } = request
  if ([retries, retryBase, retryFactor, retryJitter].every((value) => value === undefined)) return undefined
  const retry = {
    tries: retries === undefined ? current.tries : whole('retries', retries, 0),
    baseMs: retryBase === undefined ? current.baseMs : parseDuration(retryBase),
    factor: retryFactor === undefined ? current.factor : between('retryFactor', retryFactor, 1, 10),
    jitter: retryJitter === undefined ? current.jitter : between('retryJitter', retryJitter, 0, 1),
  }
  const longest = retry.baseMs * retry.factor ** Math.max(retry.tries - 1, 0)
  if (retry.tries === 0 || longest <= LONGEST_WAIT_MS) return retry
  const remedy = `fewer retries, or a smaller base or factor: at most ${formatDuration(LONGEST_WAIT_MS)}`
  throw wrong('the wait before the last retry would be too long', remedy)
}

function readCode(code: string): string {
  if (/^(exit:\d{1,3}|[a-z][a-z_]*)$/.test(code)) return code
  throw wrong(`"${code}" is no failure of a run`, 'write a code as timeout or tool, or a status as exit:3')
}

const oneOf = <T extends string>(name: string, value: string | undefined, known: readonly T[]): T => {
  const found = known.find((each) => each === value)
  if (found === undefined) throw wrong(`"${value ?? ''}" is no answer to ${name}`, `write ${known.join(', ')}`)
  return found
}

function whole(name: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least && value <= 1e9) return value
  throw wrong(`${name} is no whole number from ${least} on`, `as in ${Math.max(least, 3)}`)
}

function between(name: string, value: number, least: number, most: number): number {
  if (value >= least && value <= most) return value
  throw wrong(`${name} is no number from ${least} to ${most}`, `as in ${most / 2}`)
}

function money(name: string, usd: number): number {
  if (Number.isFinite(usd) && usd > 0 && usd <= 1e9) return Math.max(1, Math.round(usd * 1e6))
  throw wrong(`${name} is no amount in US dollars, more than 0`, 'as in 0.50')
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/

/** A name is typed, and must not be taken for an id. */
export function readName(name: string): string {
  if (NAME.test(name) && name.length <= LIMITS.nameLength && !name.startsWith('sch_')) return name
  throw wrong(
    `"${name}" is no name for a schedule`,
    'write letters, digits, dots, dashes and colons, not sch_ in front',
  )
}

function readText(text: string): string {
  if (text.trim() !== '') return text.trim()
  throw wrong('there is nothing to say', 'write the message behind it')
}

export function messageTo({ id, generation, state }: Thread, text: string): Extract<Target, { kind: 'message' }> {
  if (state === 'removed')
    throw new HoldfastError('threads/already-removed', `${id} has been removed`, { remedy: 'name another thread' })
  return { kind: 'message', threadId: id, generation, text: readText(text) }
}

export const newThreadOf = (agent: string, text: string): Target => ({ kind: 'agent', agent, text: readText(text) })

export interface CommandRequest {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly timeout?: string
}

export function commandOf({ argv, cwd, env, timeout }: CommandRequest): Target {
  const [program, ...rest] = argv
  if (program === undefined || program.trim() === '') throw wrong('there is no command', 'write it behind --')
  return {
    kind: 'command',
    argv: [program, ...rest],
    cwd,
    ...(env === undefined ? {} : { env }),
    ...(timeout === undefined ? {} : { timeoutMs: parseDuration(timeout) }),
  }
}

export const WEBHOOK_METHODS = ['POST', 'PUT', 'PATCH', 'GET', 'DELETE'] as const

export interface WebhookRequest {
  readonly url: string
  readonly method?: string
  readonly body?: unknown
}

export function webhookTo({ url, method, body }: WebhookRequest): Target {
  const parsed = URL.parse(url)
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    throw wrong(`"${url}" is no address of a webhook`, 'write it as https://example.org/hook')
  if (method !== undefined) oneOf('method', method, WEBHOOK_METHODS)
  return {
    kind: 'webhook',
    url: parsed.href,
    ...(method === undefined ? {} : { method }),
    ...(body === undefined ? {} : { body }),
  }
}
