import type { Context } from 'hono'

import { HoldfastError, viewError } from '../base/errors.ts'
import { answerJson } from './headers.ts'

const STATUS_OF: Readonly<Record<string, number>> = {
  'auth/no-token': 401,
  'auth/wrong-token': 401,
  'auth/wrong-code': 401,
  'usage/body-too-large': 413,
  'usage/not-json': 415,
  'approvals/no-tool': 409,
  'approvals/no-rule': 409,
  'capacity/streams': 503,
  'store/busy': 503,
}

/** What the first word of a code means where no other status was given to it. */
const STATUS_OF_NOUN: Readonly<Record<string, number>> = {
  auth: 403,
  usage: 400,
  'not-found': 404,
  // Somebody else was faster, or it is not in the state that this needs.
  runs: 409,
  messages: 409,
  threads: 409,
  approvals: 409,
  doubts: 409,
  actions: 409,
  tokens: 409,
  schedules: 409,
  workspace: 409,
  git: 409,
  events: 409,
  capacity: 429,
}

export function statusOf({ code, retry }: HoldfastError): number {
  return STATUS_OF[code] ?? STATUS_OF_NOUN[code.slice(0, code.indexOf('/'))] ?? (retry === undefined ? 500 : 503)
}

/** Every failure has one shape. What nobody foresaw is told to the operator, and not to the caller. */
export function answerError(c: Context, error: unknown, warn: (text: string) => void): Response {
  if (!(error instanceof HoldfastError)) {
    warn(`${c.req.method} ${c.req.path} failed: ${viewError(error).message}`)
    const message = 'something went wrong in Holdfast; its log says what'
    return answerJson(c, { error: { code: 'internal/unexpected', message } }, 500)
  }
  const status = statusOf(error)
  if (status === 401) c.header('WWW-Authenticate', 'Bearer')
  if (error.retry !== undefined) c.header('Retry-After', String(Math.ceil(error.retry.afterMs / 1_000)))
  return answerJson(c, { error: viewError(error) }, status)
}
