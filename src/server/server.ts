import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'

import { getRequestListener } from '@hono/node-server'

import type { Clock } from '../base/clock.ts'
import { LIMITS } from '../base/limits.ts'
import type { House } from '../control/desk.ts'
import { Admission } from './admission.ts'
import { makeApp } from './app.ts'
import type { KeptToken } from './credentials.ts'
import { EventStreams } from './event-stream.ts'
import { refusalOf, turnAway } from './gate.ts'
import { listenEverywhere } from './listen.ts'
import type { AnyServer, Place, Tls } from './listen.ts'
import { LiveTexts } from './live-text.ts'
import { signInUrl } from './session.ts'
import { SignInCodes } from './sign-in.ts'

export { USUAL_PORT } from './usual-port.ts'

export interface ServerOptions extends House {
  /** 0 picks one that is free; undefined is the usual one, or a free one when that is taken. */
  readonly port: number | undefined
  /** Beside those in the database. */
  readonly kept: readonly KeptToken[]
  readonly warn: (text: string) => void
  /** An address that others can reach, beside this machine's own. */
  readonly bind?: string
  /** Names under which it is reached there. */
  readonly names?: readonly string[]
  readonly tls?: Tls
  /** A unix socket too, for this user only. */
  readonly socket?: string
}

export interface RunningServer {
  /** `http://127.0.0.1:4780` */
  readonly url: string
  readonly instance: string
  /** The usual port belonged to somebody else. */
  readonly moved: boolean
  readonly streams: EventStreams
  /** An address that signs one browser in, for the next ten minutes. */
  signInUrl(): string
  /** No new connections; streams end, requests under way are answered, and who does not take the answer is cut off. */
  close(): Promise<void>
}

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { runtime, warn, kept, tls, names = [], bind } = options
  const { store, clock, random } = runtime
  const texts = new LiveTexts()
  const streams = new EventStreams({ store, clock, texts, warn })
  const instance = random.hex(8)
  const codes = new SignInCodes({ clock, random })
  const own = {
    more: bind === undefined ? names : [...names, bind.includes(':') ? `[${bind}]` : bind],
    tls: tls !== undefined,
  }
  const found: { place?: Place } = {}
  const keys = { store, kept, cookieName: () => `holdfast_${found.place?.port ?? 0}` }
  const url = () => found.place?.url ?? ''
  const app = makeApp({ house: options, keys, codes, tls: tls !== undefined, url, instance, streams, warn })
  const behindTheGate = getRequestListener(app.fetch, { overrideGlobalObjects: false })
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const refused = refusalOf(request, own)
    if (refused === undefined) void behindTheGate(request, response)
    else turnAway(request, response, refused)
  }
  const admission = new Admission()
  const place = await listenEverywhere(options, listener, (server) => admission.attach(server))
  found.place = place
  const { servers, moved } = place
  const unwatch = runtime.watch((event) => texts.hear(event))
  let closing: Promise<void> | undefined
  return {
    url: url(),
    instance,
    moved,
    streams,
    signInUrl: () => signInUrl(url(), codes.make().code),
    close: () => (closing ??= closeAll(servers, streams, clock).finally(unwatch)),
  }
}

async function closeAll(servers: readonly AnyServer[], streams: EventStreams, clock: Clock): Promise<void> {
  const closed = Promise.all(servers.map((server) => once(server, 'close')))
  for (const server of servers) server.close()
  streams.end()
  for (const server of servers) server.closeIdleConnections()
  const cut = () => servers.forEach((server) => server.closeAllConnections())
  const disarm = clock.after(LIMITS.windowCloseMs, cut, { ref: true })
  await closed
  disarm()
}
