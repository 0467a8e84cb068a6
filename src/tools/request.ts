import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import type { Clock } from '../base/clock.ts'
import { formatDuration } from '../base/duration.ts'
import { checkedAddress } from './addresses.ts'
import type { Address, Resolve } from './addresses.ts'
import { TOOL_LIMITS } from './limits.ts'
import { reasonOf } from './supervised-command.ts'

export interface HttpRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export interface HttpResponse {
  readonly status: number
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly truncated?: true
}

export interface HttpNetwork {
  /** Hosts (`name` or `name:port`) whose private addresses may be reached all the same. */
  readonly allowed: (host: string) => boolean
  readonly resolve: Resolve
  readonly clock: Clock
  readonly timeoutMs: number
}

/** `sent`: it had a connection, so that the other side may have got it. */
export type Answer =
  | { readonly kind: 'response'; readonly response: HttpResponse; readonly location: string | undefined }
  | { readonly kind: 'broken'; readonly sent: boolean; readonly error: string }

/** One request to one address that was checked: the name is not looked up a second time, when it could say another. */
export async function sendRequest(request: HttpRequest, network: HttpNetwork, signal: AbortSignal): Promise<Answer> {
  const { url } = request
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return broken(`${url.protocol} is not supported`)
  if (url.username !== '' || url.password !== '') return broken('a URL must not hold a password; use a header')
  const limit = timeLimit(network, signal)
  try {
    const found = checkedAddress(url, network.allowed, network.resolve)
    const address = await Promise.race([found, limit.over])
    return 'refused' in address ? broken(address.refused) : await exchange(request, address, limit.signal)
  } catch (error) {
    return broken(error instanceof Error ? error.message : String(error))
  } finally {
    limit.clear()
  }
}

const broken = (error: string, sent = false): Answer => ({ kind: 'broken', sent, error })

/** The turn's signal and the time of this request, as one. */
function timeLimit({ clock, timeoutMs }: HttpNetwork, outer: AbortSignal) {
  const inner = new AbortController()
  const cancel = clock.after(timeoutMs, () => inner.abort(`timed out after ${formatDuration(timeoutMs)}`))
  const signal = AbortSignal.any([outer, inner.signal])
  const over = new Promise<never>((_, reject) => {
    const end = () => reject(new Error(reasonOf(signal)))
    if (signal.aborted) end()
    signal.addEventListener('abort', end, { once: true })
  })
  over.catch(() => {})
  return { signal, over, clear: cancel }
}

async function exchange(request: HttpRequest, address: Address, signal: AbortSignal): Promise<Answer> {
  const { url } = request
  // Loaded here: few commands ask anybody, and these take as long to load as Node takes to start.
  const { request: send } = url.protocol === 'https:' ? await import('node:https') : await import('node:http')
  return new Promise((resolve) => {
    let sent = false
    const fail = (error: Error) => {
      resolve(broken(signal.aborted ? reasonOf(signal) : error.message, sent))
      client.destroy()
    }
    const client: ClientRequest = send(url, optionsOf(request, address, signal), (message) => {
      readBody(message).then((body) => resolve(responseOf(url, message, body)), fail)
    })
    client.once('error', fail)
    client.once('socket', (socket) => {
      const event = url.protocol === 'https:' ? 'secureConnect' : 'connect'
      socket.once(event, () => (sent = true))
    })
    client.end(request.body)
  })
}

function optionsOf({ method, headers, body }: HttpRequest, { address, family }: Address, signal: AbortSignal) {
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  return {
    method,
    headers: { 'user-agent': 'holdfast', 'accept-encoding': 'identity', ...headers, ...length },
    signal,
    // No connection is shared: it would lead to an address that was checked for another request.
    agent: false,
    lookup: (_host, options, found) =>
      options.all === true ? found(null, [{ address, family }]) : found(null, address, family),
  } satisfies RequestOptions
}

interface Body {
  readonly text: string
  readonly truncated: boolean
}

async function readBody(message: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of message as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    // Leaving the loop destroys the connection, so an endless answer costs no more.
    if (bytes > TOOL_LIMITS.responseBytes) break
  }
  const truncated = bytes > TOOL_LIMITS.responseBytes
  return { text: Buffer.concat(chunks).toString('utf8', 0, TOOL_LIMITS.responseBytes), truncated }
}

function responseOf(url: URL, message: IncomingMessage, { text, truncated }: Body): Answer {
  const headers = Object.entries(message.headers).map(([name, value]) => [name, String(value)] as const)
  const response: HttpResponse = {
    status: message.statusCode ?? 0,
    url: url.href,
    headers: Object.fromEntries(headers),
    body: text,
    ...(truncated ? { truncated: true } : {}),
  }
  return { kind: 'response', response, location: message.headers.location }
}
