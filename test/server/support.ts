import { once } from 'node:events'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { createServer } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { onTestFinished } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { record } from '../../src/events/event.ts'
import type { LiveEvent, Runtime } from '../../src/runtime.ts'
import type { EventView } from '../../src/runs/view.ts'
import type { KeptToken } from '../../src/server/credentials.ts'
import { startServer } from '../../src/server/server.ts'
import type { RunningServer } from '../../src/server/server.ts'
import type { Store } from '../../src/store/store.ts'
import type { Transition } from '../../src/store/transition.ts'
import { openWorkspaceDesk } from '../../src/workers/workspace/desk.ts'
import { temporaryFolder } from '../support/engines.ts'
import type { Installation, Running } from '../support/holdfast.ts'
import { until } from '../support/holdfast.ts'

export const TOKEN = 'a-token-of-the-tests'
export const DEMO = fileURLToPath(new URL('../../examples/demo/holdfast.config.json', import.meta.url))

export interface Served extends RunningServer {
  readonly store: Store
  /** Tells the watchers of this process' agents. */
  readonly live: (event: LiveEvent) => void
  readonly warnings: string[]
}

/** The window of a process that has agents but carries nothing out: what is stored stays as it is. */
export async function serve(store: Store, options: { readonly clock?: Clock } = {}): Promise<Served> {
  const watchers = new Set<(event: LiveEvent) => void>()
  const runtime: Partial<Runtime> = {
    home: temporaryFolder(),
    store,
    clock: options.clock ?? systemClock,
    random,
    agents: ['clerk'],
    toolsOf: async () => undefined,
    toolOf: () => Promise.resolve(undefined),
    workspaces() {
      const registerWorker = () => Promise.reject(new Error('nobody carries anything out here'))
      const env = { PATH: process.env['PATH'] ?? '' }
      return Promise.resolve(openWorkspaceDesk({ store, clock: systemClock, home: runtime.home!, env, registerWorker }))
    },
    watch(listener) {
      watchers.add(listener)
      return () => watchers.delete(listener)
    },
  }
  const warnings: string[] = []
  const warn = (text: string) => void warnings.push(text)
  const owner: KeptToken = { by: 'the owner', scopes: ['admin'], read: () => Promise.resolve(TOKEN) }
  const server = await startServer({ runtime: runtime as Runtime, port: 0, kept: [owner], warn })
  onTestFinished(() => server.close())
  return { ...server, store, warnings, live: (event) => watchers.forEach((watcher) => watcher(event)) }
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: unknown
}

interface Asking extends RequestOptions {
  readonly body?: string
}

/** A plain client: a browser's `fetch` would not let a test lie about Host and Origin. */
export async function ask(url: string, { body, ...options }: Asking = {}): Promise<Answer> {
  const sent = request(url, { agent: false, ...options })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  const isJson = response.headers['content-type']?.startsWith('application/json') === true
  return { status: response.statusCode!, headers: response.headers, body: isJson ? JSON.parse(text) : text }
}

export const bearer = (token = TOKEN) => ({ authorization: `Bearer ${token}` })

export const get = (url: string, token = TOKEN) => ask(url, { headers: bearer(token) })

export const post = (url: string, body: unknown, token = TOKEN) =>
  ask(url, {
    method: 'POST',
    headers: { ...bearer(token), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

/** A reader of server-sent events, by the letter of their format and without any of our code. */
export class Reader {
  readonly response: IncomingMessage
  readonly events: EventView[] = []
  readonly ids: number[] = []
  readonly texts: { readonly at: number; readonly delta: string; readonly ended?: true }[] = []
  comments = 0
  /** `clean`: the other side said that this is all. */
  ended: 'clean' | 'cut' | undefined
  #rest = ''

  constructor(response: IncomingMessage) {
    this.response = response
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => this.#take(chunk))
    response.on('end', () => (this.ended ??= response.complete ? 'clean' : 'cut'))
    response.on('error', () => (this.ended ??= 'cut'))
    response.on('close', () => (this.ended ??= 'cut'))
    onTestFinished(() => void response.destroy())
  }

  #take(chunk: string): void {
    const frames = (this.#rest + chunk).split('\n\n')
    this.#rest = frames.pop() ?? ''
    for (const frame of frames) this.#frame(frame.split('\n'))
  }

  #frame(lines: readonly string[]): void {
    const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
    if (lines[0]?.startsWith(':') === true) this.comments += 1
    const [id, data] = [field('id'), field('data')]
    if (field('event') === 'text') this.texts.push(JSON.parse(data!))
    else if (data !== undefined) {
      this.ids.push(Number(id))
      this.events.push(JSON.parse(data))
    }
  }

  cut(): void {
    this.response.destroy()
  }

  has(count: number): Promise<true> {
    return until(`${count} events were read`, () => Promise.resolve(this.ids.length >= count ? true : undefined))
  }
}

export async function openStream(url: string, after: number | 'header', token = TOKEN, last = 0): Promise<Reader> {
  const query = after === 'header' ? '' : `?after=${after}`
  const headers = { ...bearer(token), ...(after === 'header' ? { 'last-event-id': String(last) } : {}) }
  const sent = request(`${url}/api/v1/events${query}`, { agent: false, headers })
  sent.end()
  sent.on('error', () => {})
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`no stream: ${response.statusCode}`)
  return new Reader(response)
}

/** Events that tell nothing, as many as a test wants. */
export function* happen(count: number, data: Readonly<Record<string, unknown>> = {}): Transition<void> {
  for (let index = 0; index < count; index++) yield* record({ type: 'breaker.reset', data })
}

export const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

/** The demo agent with its pauses cut short. */
export function quickDemo(streamMs = 0): string {
  const folder = temporaryFolder()
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, never>
  cpSync(dirname(DEMO), folder, { recursive: true })
  const script = read(join(folder, 'clerk.json')) as unknown as { replies: readonly object[] }
  const replies = script.replies.map((reply) => ({ ...reply, delayMs: 0, streamMs }))
  writeFileSync(join(folder, 'clerk.json'), JSON.stringify({ ...script, replies }))
  const config = join(folder, basename(DEMO))
  writeFileSync(config, JSON.stringify({ ...read(config), lease: '2s' }))
  return config
}

/** A port that is free and stays so for a while: below those that the system gives to whoever does not ask for one. */
export async function quietPort(): Promise<string> {
  for (;;) {
    const port = 20_000 + (Number.parseInt(random.hex(4), 16) % 10_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    })
    if (isFree) return String(port)
  }
}

export interface Daemon {
  readonly process: Running
  readonly url: string
  readonly token: string
}

/** `holdfast up` with the agent of `npm start`, or with another configuration. */
export async function demoDaemon(place: Installation, config = DEMO, port = '0'): Promise<Daemon> {
  const process = place.start(['up', '--config', config, '--port', port])
  await process.said('holdfast: window:')
  const { url } = JSON.parse(readFileSync(join(place.home, 'daemon.json'), 'utf8')) as { url: string }
  return { process, url, token: readFileSync(join(place.home, 'token'), 'utf8').trim() }
}
