import type { Instant } from '../base/clock.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import type { ModelUsage } from '../loop/ports.ts'

/** What can go wrong with a model call, and what a person can do about it. */
const REMEDIES = {
  'model/rate-limit': 'wait, or ask the provider for a higher limit',
  'model/overloaded': 'try again later, or use another model',
  'model/auth': 'check the API key and what it may use',
  'model/connection': 'check the network and the address of the provider',
  'model/bad-request': 'the provider does not accept this request; see its message',
  'model/script': 'correct the script',
  'model/no-provider': 'install what is missing, or name a model that is known',
} as const
export type ModelErrorCode = keyof typeof REMEDIES

export interface ModelErrorDetails {
  readonly status?: number
  /** How long the provider wants to be left alone. */
  readonly retryAfterMs?: number
  /** What the failed call cost all the same. */
  readonly usage?: ModelUsage
  readonly remedy?: string
  readonly cause?: unknown
}

export class ModelError extends HoldfastError {
  declare readonly code: ModelErrorCode
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined
  readonly usage: ModelUsage | undefined

  constructor(code: ModelErrorCode, message: string, details: ModelErrorDetails = {}) {
    const { status, retryAfterMs, usage, remedy = REMEDIES[code], cause } = details
    super(code, message, { remedy, cause, ...(retryAfterMs === undefined ? {} : { retry: { afterMs: retryAfterMs } }) })
    this.name = 'ModelError'
    this.status = status
    this.retryAfterMs = retryAfterMs
    this.usage = usage
  }
}

const RETRIED = new Set([408, 409, 425, 429, 500, 502, 503, 504, 529])

/** Whether the same request may succeed later. */
export function isRetried(error: unknown): boolean {
  if (!(error instanceof ModelError)) return false
  return error.status === undefined ? error.code === 'model/connection' : RETRIED.has(error.status)
}

/** Whether the refusal is about the account, not about this request: everyone who shares it had better wait. */
export const isAboutQuota = (error: ModelError): boolean => error.status === 429 || error.status === 529

/** Each provider has its own words for it, and most of them the same status as for any other mistake. */
const TOO_LONG =
  /context.{0,20}(length|window|limit)|prompt is too long|too many (input )?tokens|maximum.{0,20}tokens|input is too long|request_too_large/i

/** Whether the conversation is too long for the model: it need not be tried again, but shortened. */
export const isTooLong = (error: ModelError): boolean =>
  error.code === 'model/bad-request' && (error.status === 413 || TOO_LONG.test(error.message))

export function codeOfStatus(status: number): ModelErrorCode {
  if (status === 429) return 'model/rate-limit'
  if (status === 401 || status === 403) return 'model/auth'
  return RETRIED.has(status) || status >= 500 ? 'model/overloaded' : 'model/bad-request'
}

export type HeaderFields = Headers | Readonly<Record<string, string | undefined>>

/** The error of an HTTP answer that is not a success. */
export function errorOfResponse(
  response: { readonly status: number; readonly headers: HeaderFields; readonly message: string },
  now: Instant,
  details: Pick<ModelErrorDetails, 'usage' | 'cause'> = {},
): ModelError {
  const { status, headers, message } = response
  const retryAfterMs = parseRetryAfter(headers, now)
  return new ModelError(codeOfStatus(status), `the provider answered ${status}: ${message}`, {
    status,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...details,
  })
}

/**
 * How long the provider wants to be left alone, a floor for the wait: `retry-after-ms`, or `retry-after` in seconds or
 * as an HTTP date. Blank, zero, negative and garbage say nothing.
 */
export function parseRetryAfter(headers: HeaderFields, now: Instant): number | undefined {
  const exact = decimal(field(headers, 'retry-after-ms'))
  const told = field(headers, 'retry-after')
  return [exact, seconds(told), untilDate(told, now)].map(believable).find((ms) => ms !== undefined)
}

function field(headers: HeaderFields, name: string): string {
  if (headers instanceof Headers) return headers.get(name)?.trim() ?? ''
  return (
    Object.entries(headers)
      .find(([key]) => key.toLowerCase() === name)?.[1]
      ?.trim() ?? ''
  )
}

const decimal = (text: string) => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined)

function seconds(text: string): number | undefined {
  const value = decimal(text)
  return value === undefined ? undefined : value * 1_000
}

// The three forms of RFC 9110. The runtime's own parser would also take "-5" for a date, and a time without a zone for
// local time; every HTTP date is in GMT.
const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*\d\d:\d\d:\d\d/

function untilDate(text: string, now: Instant): number | undefined {
  return HTTP_DATE.test(text) ? Date.parse(text.endsWith('GMT') ? text : `${text} GMT`) - now : undefined
}

function believable(ms: number | undefined): number | undefined {
  return ms !== undefined && ms > 0 ? Math.min(Math.ceil(ms), LIMITS.retryAfterMs) : undefined
}
