import { mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

import { createRuntime } from '../../src/runtime.ts'
import type { Runtime } from '../../src/runtime.ts'
import { loadConfig } from '../../src/config/load.ts'
import { startServer } from '../../src/server/server.ts'
import type { RunningServer } from '../../src/server/server.ts'
import type { Dice } from '../simulation/seeded.ts'
import { polluted } from './config.ts'
import { requestOf } from './http-request.ts'
import type { Keys, Who } from './http-request.ts'
import { changed, stateOf } from './state.ts'
import type { State } from './state.ts'
import { showsStack } from './surface.ts'
import type { Input, OpenSurface, Surface } from './surface.ts'

const OWNER = 'the-token-of-the-owner'
const DEMO = new URL('../../examples/demo/holdfast.config.json', import.meta.url).pathname
/** After so long a silence a server waits for more, or has said all. */
const SILENCE_MS = 15
/** After that a whole request counts as not answered. */
const ANSWER_MS = 3_000
const BATCHES_OF_A_STORE = 30
const SIGN_IN = ['tokens', 'acts', 'events']

/** A window on a store in which there is something of everything, and nobody who carries anything out. */
class Window {
  readonly runtime: Runtime
  readonly server: RunningServer
  readonly keys: Keys
  readonly database: string
  /** What the operator was told: the cause of what a caller only hears that it went wrong. */
  readonly warnings: string[]

  constructor(runtime: Runtime, server: RunningServer, keys: Keys, database: string, warnings: string[]) {
    this.warnings = warnings
    this.runtime = runtime
    this.server = server
    this.keys = keys
    this.database = database
  }

  static async open(home: string): Promise<Window> {
    mkdirSync(home, { recursive: true })
    const runtime = await createRuntime({ home, config: await loadConfig(DEMO), warn: () => {} })
    const kept = [{ by: 'the owner', scopes: ['admin' as const], read: () => Promise.resolve(OWNER) }]
    const warnings: string[] = []
    const server = await startServer({ runtime, port: 0, kept, warn: (text) => void warnings.push(text) })
    const port = Number(new URL(server.url).port)
    const ask = (method: string, path: string, body?: unknown) => asked(server.url, method, path, body)
    const { threadId, message } = await ask('POST', '/messages', { agent: 'clerk', text: 'hello', key: 'first' })
    const { threadId: another } = await ask('POST', '/messages', { agent: 'clerk', text: 'hello', key: 'second' })
    const { id: schedule } = await ask('POST', '/schedules', { name: 'daily', every: '24h', threadId, text: 'wake up' })
    await ask('POST', '/followups', { threadId, text: 'later', in: '10h' })
    const told = {
      hook_event_name: 'PreToolUse',
      session_id: 's1',
      tool_name: 'Bash',
      tool_input: { command: 'ls' },
      cwd: home,
    }
    await ask('POST', '/hooks', { client: 'claude', input: JSON.stringify(told), id: 'e1', role: 'permit' })
    const lists = await Promise.all(['/runs', '/approvals', '/actions', '/tokens'].map((path) => ask('GET', path)))
    const ids = lists.flatMap((list) => (list['items'] as { readonly id: string }[]).map(({ id }) => id))
    const [reader, guest] = await Promise.all([
      ask('POST', '/tokens', { scopes: ['read'] }),
      ask('POST', '/tokens', { scopes: ['record'], threadId }),
    ])
    const words = [
      ...ids,
      threadId,
      another,
      schedule,
      (message as { readonly id?: string } | undefined)?.id,
      'clerk',
      'daily',
      'approve',
      'text',
      '10s',
    ].filter((each) => typeof each === 'string')
    const tokens = { owner: OWNER, reader: String(reader['token']), guest: String(guest['token']) }
    const keys = { port, ...tokens, thread: String(threadId), words }
    return new Window(runtime, server, keys, join(home, 'holdfast.db'), warnings)
  }

  async close(): Promise<void> {
    await this.server.close()
    await this.runtime.close()
  }
}

async function asked(
  url: string,
  method: string,
  path: string,
  body: unknown,
): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${OWNER}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`there is nothing to work on: ${path}: ${await response.text()}`)
  return (await response.json()) as Readonly<Record<string, unknown>>
}

class Http implements OpenSurface {
  readonly width = 10
  readonly #folder: string
  #window: Window
  #who: Who = 'owner'
  #before: State = new Map()
  #isChanged = false
  /** Whoever may look may make a cookie that may, too. */
  #isSignedIn = false
  #batches = 0

  constructor(folder: string, window: Window) {
    this.#folder = folder
    this.#window = window
  }

  static open = async (folder: string): Promise<Http> => new Http(folder, await Window.open(join(folder, 'home-0')))

  async begin(dice: Dice): Promise<void> {
    if (++this.#batches % BATCHES_OF_A_STORE === 0) {
      await this.#window.close()
      this.#window = await Window.open(join(this.#folder, `home-${this.#batches}`))
    }
    this.#who = dice.pick(['owner', 'owner', 'owner', 'stranger', 'stranger', 'guest'])
    this.#before = stateOf(this.#window.database)
    this.#isChanged = false
    this.#isSignedIn = false
  }

  draw = (dice: Dice): Input => requestOf(dice, this.#window.keys, this.#who)

  async feed(input: Input): Promise<readonly string[]> {
    const bytes = Buffer.from(input.join(''), 'latin1')
    const { text, isSilent } = await patientAnswer(this.#window.keys.port, bytes)
    const statuses = Array.from(text.matchAll(/^HTTP\/1\.1 (\d{3})/gm), ([, code]) => Number(code))
    const isDone = statuses.some((code) => code < 300)
    // Who may is judged of each request by itself. Of what is not whole, an answer may come when nobody listens any more.
    const isPost = input.join('').startsWith('POST ')
    if (isDone ? isPost && this.#who !== 'stranger' : this.#who === 'owner' && !isWhole(bytes)) this.#isChanged = true
    if (isDone && input.join('').startsWith('POST /api/v1/session ')) this.#isSignedIn = true
    return [
      ...(statuses.some((code) => code === 500)
        ? [`it was answered with 500: ${this.#window.warnings.at(-1) ?? text.slice(-300)}`]
        : []),
      ...(isSilent && isWhole(bytes) ? [`it was not answered within ${ANSWER_MS} ms, three times in a row`] : []),
      ...(showsStack(text) ? [`its answer shows a stack: ${text.slice(-500)}`] : []),
      ...(isDone ? trusted(input.join(''), this.#window.keys) : []),
      ...(statuses.some((code) => code >= 400) && !isExplained(text)
        ? [`its refusal has no code: ${text.slice(-300)}`]
        : []),
      ...polluted(),
    ]
  }

  /** A change needs a request that was let in, and answered as done. */
  async settle(): Promise<readonly string[]> {
    const { status } = await fetch(`${this.#window.server.url}/api/v1/health`)
    const differing = this.#isChanged ? [] : changed(this.#before, stateOf(this.#window.database))
    const touched = differing.filter((table) => !(this.#isSignedIn && SIGN_IN.includes(table)))
    return [
      ...(status === 200 ? [] : [`it is not well afterwards: ${status}`]),
      ...(touched.length === 0 ? [] : [`nothing was done, and ${touched.join(', ')} changed`]),
    ]
  }

  close(): Promise<void> {
    return this.#window.close()
  }
}

/** Read by the letter of the protocol, and without any of our code: who was let in, although nobody should be. */
function trusted(request: string, keys: Keys): readonly string[] {
  const { port, owner, reader, guest } = keys
  const head = request.split('\r\n\r\n')[0] ?? ''
  const values = (name: string) =>
    Array.from(head.matchAll(new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*\\r?$`, 'gim')), ([, value]) => value!)
  const hosts = values('host')
  const own = ['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`)
  if (request.includes('\r\n\r\nGET ') || request.includes('\r\n\r\nPOST ') || request.includes(']POST ')) return []
  const [, method = '', path = ''] = /^(\S+) (\S+)/.exec(request) ?? []
  const isOpen = !path.startsWith('/api/') || /^\/api\/v1\/(health|session)\b/.test(path)
  const shown = values('authorization').map((value) => value.replace(/^bearer +/i, ''))
  const mayRead = shown.some((token) => [owner, reader, guest].includes(token))
  return [
    ...(hosts.length === 1 && own.includes(hosts[0]!.toLowerCase())
      ? []
      : [`it was let in under the name ${hosts.join(' and ')}`]),
    ...(values('origin').every((origin) => own.includes(origin.replace('http://', '')))
      ? []
      : [`a page of ${values('origin').join()} was let in`]),
    ...(isOpen || mayRead ? [] : [`${method} ${path} was done without a token`]),
    ...(isOpen || method !== 'POST' || shown.includes(owner) || isHarmless(path)
      ? []
      : shown.includes(guest)
        ? beyond(keys, path, request)
        : [`POST ${path} was done with a token that may only look`]),
  ]
}

/** What only looks, although it is asked in a body. */
const isHarmless = (path: string) => /^\/api\/v1\/(schedule-previews|policy\/explain)$/.test(path)

/** Whoever has the token for one thread takes from its inbox, and speaks in its name or in none. */
function beyond({ thread }: Keys, path: string, request: string): readonly string[] {
  const [, inbox] = /^\/api\/v1\/threads\/([^/]+)\/inbox\/drain$/.exec(path) ?? []
  if (inbox !== undefined && decodeURIComponent(inbox) === thread) return []
  if (/^\/api\/v1\/deliveries\/[^/]+\/(ack|release)$/.test(path)) return []
  const body = request.slice(request.indexOf('\r\n\r\n') + 4)
  const { from = thread } = path === '/api/v1/messages' ? (JSON.parse(body) as { readonly from?: string }) : {}
  if (path === '/api/v1/messages' && from === thread) return []
  return [`POST ${path} was done with a token for another thread: ${body.slice(0, 200)}`]
}

/** Ours say why; Node's own, for what is no request at all, has no body. */
const isExplained = (text: string) =>
  /\{"error":\{"code":"[\w-]+\/[\w-]+"/.test(text) ||
  /^HTTP\/1\.1 4\d\d [^\r]+\r\nConnection: close\r\n\r\n/m.test(text) ||
  !text.includes('application/json')

/** One request, all of it there, so that nothing is left to wait for. */
function isWhole(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  const end = text.indexOf('\r\n\r\n')
  if (
    !/^(GET|POST) \/\S* HTTP\/1\.1\r\n/.test(text) ||
    end < 0 ||
    /transfer-encoding|expect|upgrade/i.test(text.slice(0, end))
  )
    return false
  const lengths = Array.from(text.slice(0, end).matchAll(/^content-length:(.*)$/gim), ([, value]) => value!.trim())
  const rest = text.length - end - 4
  return lengths.length === 0
    ? rest === 0
    : lengths.length === 1 && /^\d{1,9}$/.test(lengths[0]!) && Number(lengths[0]) === rest
}

interface Answered {
  readonly text: string
  /** Nothing came, and it was not hung up either. */
  readonly isSilent: boolean
}

/** On a busy machine one of three is quick, unless it is the request's doing. */
async function patientAnswer(port: number, bytes: Buffer): Promise<Answered> {
  for (let attempt = 1; ; attempt++) {
    const answered = await answerTo(port, bytes)
    if (!answered.isSilent || !isWhole(bytes) || attempt === 3) return answered
  }
}

/** What comes back until the other side hangs up, or falls silent. */
function answerTo(port: number, bytes: Buffer): Promise<Answered> {
  const whole = isWhole(bytes)
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const chunks: Buffer[] = []
    const end = (isSilent: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text: Buffer.concat(chunks).toString('latin1'), isSilent })
    }
    let timer = setTimeout(() => end(true), whole ? ANSWER_MS : 10 * SILENCE_MS)
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      clearTimeout(timer)
      timer = setTimeout(() => end(false), SILENCE_MS)
    })
    // What was refused in the middle is hung up on.
    socket.on('error', () => end(false))
    socket.on('close', () => end(false))
    socket.write(bytes)
  })
}

export const http: Surface = { name: 'HTTP', open: (folder) => Http.open(folder) }
