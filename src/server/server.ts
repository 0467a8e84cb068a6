import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

import { createAdaptorServer } from '@hono/node-server'

import type { Clock } from '../base/clock.ts'
import { HoldfastError } from '../base/errors.ts'
import { errorCode } from '../base/files.ts'
import { LIMITS } from '../base/limits.ts'
import type { Runtime } from '../runtime.ts'
import { makeApp } from './app.ts'
import { EventStreams } from './event-stream.ts'
import { LiveTexts } from './live-text.ts'

/** Only this machine: whoever wants more puts a proxy with TLS in front. */
const HOST = '127.0.0.1'
export const USUAL_PORT = 4780

export interface ServerOptions {
  /** 0 picks one that is free; undefined is the usual one, or a free one when that is taken. */
  readonly port: number | undefined
  readonly token: string
  readonly warn: (text: string) => void
}

export interface RunningServer {
  /** `http://127.0.0.1:4780` */
  readonly url: string
  readonly instance: string
  /** The usual port belonged to somebody else. */
  readonly moved: boolean
  readonly streams: EventStreams
  /** No new connections; streams end, requests under way are answered, and who does not take the answer is cut off. */
  close(): Promise<void>
}

export async function startServer(runtime: Runtime, options: ServerOptions): Promise<RunningServer> {
  const { store, clock, random } = runtime
  const { token, warn, port } = options
  const texts = new LiveTexts()
  const streams = new EventStreams({ store, clock, texts, warn })
  const instance = random.hex(8)
  const app = makeApp(runtime, { token, instance, streams, warn })
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server
  server.maxConnections = LIMITS.connections
  const moved = await listen(server, port)
  const unwatch = runtime.watch((event) => texts.hear(event))
  let closing: Promise<void> | undefined
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    instance,
    moved,
    streams,
    close: () => (closing ??= closeAll(server, streams, clock).finally(unwatch)),
  }
}

async function closeAll(server: Server, streams: EventStreams, clock: Clock): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  streams.end()
  server.closeIdleConnections()
  const disarm = clock.after(LIMITS.windowCloseMs, () => server.closeAllConnections(), { ref: true })
  await closed
  disarm()
}

/** Says whether it had to go elsewhere. A port that was asked for by its number is that one or none. */
async function listen(server: Server, port: number | undefined): Promise<boolean> {
  try {
    await listenOn(server, port ?? USUAL_PORT)
    return false
  } catch (error) {
    if (port === undefined && errorCode(error) === 'EADDRINUSE') {
      await listenOn(server, 0)
      return true
    }
    throw new HoldfastError('daemon/port', `cannot listen on port ${port ?? USUAL_PORT}: ${reasonOf(error)}`, {
      remedy: 'give another one with --port, or --port 0 for any that is free',
      cause: error,
    })
  }
}

function reasonOf(error: unknown): string {
  if (errorCode(error) === 'EADDRINUSE') return 'another program has it'
  return errorCode(error) === 'EACCES' ? 'this user may not have it' : String(error)
}

async function listenOn(server: Server, port: number): Promise<void> {
  server.listen(port, HOST)
  await once(server, 'listening')
}
