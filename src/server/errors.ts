import type { Context } from 'hono'

import { HoldfastError, viewError } from '../base/errors.ts'

type Status = 400 | 401 | 403 | 404 | 409 | 413 | 415 | 429 | 500 | 503

const STATUS_OF: Readonly<Record<string, Status>> = {
  'auth/no-token': 401,
  'auth/wrong-token': 401,
  'auth/foreign-host': 403,
  'auth/foreign-origin': 403,
  'usage/body-too-large': 413,
  'usage/not-json': 415,
  'runs/already-terminal': 409,
  'runs/key-conflict': 409,
  'messages/key-conflict': 409,
  'approvals/too-late': 409,
  'approvals/changed': 409,
  'doubts/not-in-doubt': 409,
  'doubts/run-ended': 409,
  'events/ahead': 409,
  'capacity/backlog-full': 429,
  'capacity/streams': 503,
  'store/busy': 503,
}

function statusOf({ code, retry }: HoldfastError): Status {
  const own = STATUS_OF[code]
  if (own !== undefined) return own
  if (code.startsWith('not-found/')) return 404
  if (code.startsWith('usage/')) return 400
  return retry === undefined ? 500 : 503
}

/** Every failure has one shape. What nobody foresaw is told to the operator, and not to the caller. */
export function answerError(c: Context, error: unknown, warn: (text: string) => void): Response {
  if (!(error instanceof HoldfastError)) {
    warn(`${c.req.method} ${c.req.path} failed: ${viewError(error).message}`)
    const message = 'something went wrong in Holdfast; its log says what'
    return c.json({ error: { code: 'internal/unexpected', message } }, 500)
  }
  const status = statusOf(error)
  if (status === 401) c.header('WWW-Authenticate', 'Bearer')
  if (error.retry !== undefined) c.header('Retry-After', String(Math.ceil(error.retry.afterMs / 1_000)))
  return c.json({ error: viewError(error) }, status)
}
