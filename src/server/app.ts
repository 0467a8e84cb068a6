import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'

import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import type { Runtime } from '../runtime.ts'
import { addDecisions } from './decisions.ts'
import { answerError } from './errors.ts'
import type { EventStreams } from './event-stream.ts'
import { ownHostOnly, plainJson, securityHeaders, tokenNeeded } from './guard.ts'
import type { Env } from './guard.ts'
import { addHookRoutes } from './hooks.ts'
import { readPage, servePageFile } from './page.ts'
import { resumePoint } from './parse.ts'
import { addRoutes } from './routes.ts'

export interface AppOptions {
  readonly token: string
  /** Tells this daemon from another that has its port later; no secret. */
  readonly instance: string
  readonly streams: EventStreams
  readonly warn: (text: string) => void
}

/** Every request passes the same gates: our own name, our own page, the token. Only health and the page need none. */
export function makeApp(runtime: Runtime, { token, instance, streams, warn }: AppOptions): Hono<Env> {
  const app = new Hono<Env>()
  app.use(securityHeaders, plainJson, ownHostOnly)
  app.get('/api/v1/health', (c) => c.json({ status: 'ok', instance }))
  addHookRoutes(app, runtime, { allowed: tokenNeeded(token), warn })
  app.use('/api/*', tokenNeeded(token), bodyLimit({ maxSize: LIMITS.requestBytes, onError: refuseBody }))
  const api = new Hono<Env>()
  addRoutes(api, runtime)
  addDecisions(api, runtime)
  api.get('/events', (c) => streams.open(resumePoint(c), () => c.env.outgoing.destroy()))
  app.route('/api/v1', api)
  for (const [path, file] of readPage()) app.get(path, (c) => servePageFile(c, file))
  app.notFound((c) => answerError(c, new HoldfastError('not-found/route', `there is no ${c.req.path}`), warn))
  app.onError((error, c) => answerError(c, error, warn))
  return app
}

function refuseBody(): never {
  throw new HoldfastError('usage/body-too-large', `a body has at most ${LIMITS.requestBytes} bytes`, {
    remedy: 'put large input into a file and send its name',
  })
}
