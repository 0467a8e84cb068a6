import type { HttpBindings } from '@hono/node-server'
import type { MiddlewareHandler } from 'hono'

import { HoldfastError } from '../base/errors.ts'
import { escapeUnseen } from '../base/visible.ts'
import { isToken } from './token.ts'

/** What a handler knows of its request: the sockets under it. */
export interface Env {
  Bindings: HttpBindings
}

const HEADERS: Readonly<Record<string, string>> = {
  // Nothing but our own files, and no way from a text to a script: what an agent said is shown, never interpreted.
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
}

export const securityHeaders: MiddlewareHandler<Env> = async (c, next) => {
  await next()
  for (const [name, value] of Object.entries(HEADERS)) c.res.headers.set(name, value)
  if (!c.res.headers.has('Cache-Control')) c.res.headers.set('Cache-Control', 'no-store')
}

/** Whoever prints an answer as it comes is steered by nothing in it: what is unseen is escaped, which is the same JSON. */
export const plainJson: MiddlewareHandler<Env> = async (c, next) => {
  await next()
  if (c.res.headers.get('Content-Type')?.startsWith('application/json') !== true) return
  c.res = new Response(escapeUnseen(await c.res.text()), c.res)
}

/** Names under which a browser on this machine reaches us. With any other a foreign page has pointed its own name here. */
function ownNames(port: number | undefined): string[] {
  const names = ['127.0.0.1', 'localhost', '[::1]']
  return [...names.map((name) => `${name}:${port}`), ...(port === 80 ? names : [])]
}

export const ownHostOnly: MiddlewareHandler<Env> = async (c, next) => {
  const names = ownNames(c.env.incoming.socket.localPort)
  if (!names.includes(c.req.header('host')?.toLowerCase() ?? '')) {
    throw new HoldfastError('auth/foreign-host', 'this name is not one of mine', {
      remedy: `use http://${names[0]}/ or http://${names[1]}/`,
    })
  }
  const origin = c.req.header('origin')
  const harmless = c.req.method === 'GET' || c.req.method === 'HEAD'
  if (!harmless && origin !== undefined && !names.some((name) => origin.toLowerCase() === `http://${name}`)) {
    throw new HoldfastError('auth/foreign-origin', 'a page of another origin may not do this', {
      remedy: 'use the page that this daemon serves, or a program without an Origin header',
    })
  }
  await next()
}

export const tokenNeeded = (token: string): MiddlewareHandler<Env> =>
  async function checkToken(c, next) {
    const given = /^Bearer +(\S+) *$/i.exec(c.req.header('authorization') ?? '')?.[1]
    if (given === undefined || !isToken(given, token)) {
      throw new HoldfastError(given === undefined ? 'auth/no-token' : 'auth/wrong-token', 'you are not signed in', {
        remedy: 'send "Authorization: Bearer TOKEN"; the token is in the file `token` of the home folder',
      })
    }
    await next()
  }
