import { Hono } from 'hono'
import type { Context, MiddlewareHandler } from 'hono'

import { API } from '../api/endpoint.ts'
import type { Endpoint } from '../api/endpoint.ts'
import { ENDPOINTS, ENDPOINT_NAMES } from '../api/endpoints.ts'
import type { EndpointName } from '../api/endpoints.ts'
import { ROUTES } from '../api/routes.ts'
import type { Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { veiled } from '../base/visible.ts'
import { Desk } from '../control/desk.ts'
import { handle } from '../control/handlers.ts'
import type { Handled, ServersOwn } from '../control/handlers.ts'
import { metrics } from '../control/metrics.ts'
import { isTerminal } from '../runs/run.ts'
import type { RunState } from '../runs/run.ts'
import type { Env } from './env.ts'
import { answerError } from './errors.ts'
import type { EventStreams } from './event-stream.ts'
import { atMostAtOnce, refuseNarrow, signedIn } from './guard.ts'
import { answerJson, securityHeaders } from './headers.ts'
import { hearClient, hearTold } from './hooks.ts'
import { openApiDocument } from './openapi.ts'
import { readPage, servePage } from './page.ts'
import { bodyOfAtMost } from './body.ts'
import { askOf, resumePoint } from './parse.ts'
import { closeSession, makeCode, openSession, showSession } from './session.ts'
import type { Doors } from './session.ts'

export interface AppOptions extends Doors {
  /** Tells this daemon from another that has its port later; no secret. */
  readonly instance: string
  readonly streams: EventStreams
  readonly warn: (text: string) => void
}

/**
 * Everything behind the gate. Each route of the table: who asks, whether they may, what they ask for, the answer. Only health,
 * signing in and the files of the page need no token.
 */
export function makeApp(options: AppOptions): Hono<Env> {
  const { warn, keys } = options
  const app = new Hono<Env>()
  app.use(securityHeaders)
  const known = signedIn(keys)
  const counted = atMostAtOnce()
  for (const name of ENDPOINT_NAMES) {
    const endpoint: Endpoint = ENDPOINTS[name]
    const gates = [...(endpoint.scope === 'nobody' ? [] : [known, allowed(endpoint)]), limitOf(name)]
    const last: MiddlewareHandler<Env> = (c) => answerOf(c, name, options)
    app.on(endpoint.method, [`${API}${endpoint.path}`], ...gates, ...(isPatient(name) ? [] : [counted]), last)
  }
  app.get('/metrics', known, allowed(ENDPOINTS.metrics), (c) => answerOf(c, 'metrics', options))
  // Without a token nobody learns what is not there.
  app.use('/api/*', known)
  servePage(app, readPage(), warn)
  app.notFound((c) =>
    answerError(
      c,
      new HoldfastError('not-found/route', `there is no ${c.req.path}`, {
        remedy: 'GET /api/v1/openapi.json lists what there is',
      }),
      warn,
    ),
  )
  app.onError((error, c) => answerError(c, error, warn))
  return app
}

const allowed = (endpoint: Endpoint): MiddlewareHandler<Env> =>
  async function checkScope(c, next) {
    refuseNarrow(c, endpoint)
    await next()
  }

/** Health must answer, streams have a limit of their own, and a client waits at the end of its turn for the hooks. */
const isPatient = (name: EndpointName) => name === 'health' || name === 'events' || name.startsWith('hooks.')

/** An event of a hook may be larger than any other request: escaped in JSON, an input can take several times its length. */
function limitOf(name: EndpointName): MiddlewareHandler<Env> {
  const maxSize = name === 'hooks.hear' || name === 'hooks.client' ? 2 * LIMITS.hookBytes : LIMITS.requestBytes
  return bodyOfAtMost(maxSize)
}

async function answerOf(c: Context<Env>, name: EndpointName, options: AppOptions): Promise<Response> {
  if (name in SERVERS_OWN) return SERVERS_OWN[name as ServersOwn](c, options)
  const ask = { ...(await askOf(c, ROUTES[name].ask)), ...c.req.param() } as unknown as Ask<Handled>
  const answer = await handle(options.house, c.get('who'), name as Handled, ask as never)
  return answerJson(c, answer, statusFor(name, answer))
}

/** A run that its worker is still stopping has been promised an end, and not had it. */
function statusFor(name: EndpointName, answer: unknown): number {
  if (name === 'runs.cancel') return isTerminal((answer as { readonly state: RunState }).state) ? 200 : 202
  const { status = 200 }: { readonly status?: number } = ENDPOINTS[name] as Endpoint
  return status
}

type Own = (c: Context<Env>, options: AppOptions) => Response | Promise<Response>

/** What only a server has. */
const SERVERS_OWN: { readonly [N in ServersOwn]: Own } = {
  health: (c, { instance }) => answerJson(c, { status: 'ok', instance }),
  openapi: (c) => answerJson(c, openApiDocument()),
  'session.open': async (c, options) => {
    const { code } = (await askOf(c, ROUTES['session.open'].ask)) as { readonly code?: string }
    return openSession(c, options, code)
  },
  'session.show': (c) => showSession(c),
  'session.close': (c, options) => closeSession(c, options),
  'session.code': (c, options) => makeCode(c, options),
  metrics: async (c, { house, streams }) => {
    const text = await metrics(new Desk(house, c.get('who'), 'metrics'), streams.count)
    return c.body(veiled(text), 200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' })
  },
  events: (c, { streams }) => {
    const who = c.get('who')
    return streams.open(
      resumePoint(c),
      () => c.env.outgoing.destroy(),
      () => who.isGood(),
    )
  },
  'hooks.hear': (c, { house, warn }) => hearTold(c, house.runtime, warn),
  'hooks.client': (c, { house }) => hearClient(c, house.runtime),
}
