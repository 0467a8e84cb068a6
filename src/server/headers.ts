import type { Context, MiddlewareHandler } from 'hono'

import { jsonText } from '../base/visible.ts'

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  // Nothing but our own files, and no way from a text to a script: what an agent said is shown, never interpreted.
  'Content-Security-Policy':
    "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
}

export const securityHeaders: MiddlewareHandler = async (c, next) => {
  await next()
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) c.res.headers.set(name, value)
  if (!c.res.headers.has('Cache-Control')) c.res.headers.set('Cache-Control', 'no-store')
}

/** Whoever prints an answer as it comes is steered by nothing in it: what is unseen is escaped, which is the same JSON. */
export const answerJson = (c: Context, value: unknown, status = 200): Response =>
  c.body(jsonText(value), status as never, { 'Content-Type': 'application/json' })
