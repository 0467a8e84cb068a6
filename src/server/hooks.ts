import type { Context, Hono, MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'

import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { Unreadable, isClient } from '../hooks/event.ts'
import { hear } from '../hooks/hear.ts'
import type { Listener } from '../hooks/hear.ts'
import { shownIn } from '../hooks/notes.ts'
import { replaySpool } from '../hooks/spool.ts'
import { readTold } from '../hooks/told.ts'
import type { Runtime } from '../runtime.ts'
import type { Env } from './guard.ts'
import { wrong } from './parse.ts'

/**
 * Two doors for the same events: `/hooks` for our own command, which knows more than the client says and wants our answer,
 * and `/hooks/CLIENT` for what a client sends by itself and reads as its hook's answer. They come before the other routes,
 * because an event may be larger than any other request.
 */
export function addHookRoutes(
  app: Hono<Env>,
  runtime: Runtime,
  { allowed, warn }: { readonly allowed: MiddlewareHandler<Env>; readonly warn: (text: string) => void },
): void {
  // Escaped in JSON, an input can take several times its length.
  const limit = bodyLimit({ maxSize: 2 * LIMITS.hookBytes, onError: refuseBody })
  app.post('/api/v1/hooks', allowed, limit, async (c) => {
    const told = readTold(await c.req.json().catch(() => undefined))
    if (told instanceof Unreadable) throw wrong(told.why, 'use the hook command of this version')
    // What was spooled before it happened before it.
    await replaySpool({ ...runtime, warn }, LIMITS.spoolTogether)
    return c.json(await hear(listenerOf(runtime), told))
  })
  app.post('/api/v1/hooks/:client', allowed, limit, (c) => hearClient(c, runtime))
}

/** A daemon knows the rules; one without a configuration has none beside those that are stored. */
const listenerOf = ({ store, random, config }: Runtime): Listener => ({
  store,
  random,
  policy: config?.policy ?? [],
  approvalMs: config?.approvalMs,
})

async function hearClient(c: Context<Env>, runtime: Runtime): Promise<Response> {
  const client = c.req.param('client') ?? ''
  if (!isClient(client)) throw new HoldfastError('not-found/client', `there is no client "${client}"`)
  const input = await c.req.text()
  const shown = shownIn(runtime.home, client, input)
  const { output } = await hear(listenerOf(runtime), { client, input, ...(shown === undefined ? {} : { shown }) })
  return c.body(output === '' ? '{}' : output, 200, { 'Content-Type': 'application/json' })
}

function refuseBody(): never {
  throw new HoldfastError('usage/body-too-large', `an event has at most ${LIMITS.hookBytes} bytes`)
}
