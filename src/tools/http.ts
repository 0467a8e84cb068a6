import { createHash } from 'node:crypto'
import type { JsonSchema, Tool, ToolContext, ToolOutcome } from '../loop/ports.ts'
import { resolveHost } from './addresses.ts'
import type { Resolve } from './addresses.ts'
import { TOOL_LIMITS } from './limits.ts'
import { sendRequest } from './request.ts'
import type { Answer, HttpNetwork, HttpRequest, HttpResponse } from './request.ts'
import { validateInput } from './schema.ts'
import { reasonOf } from './supervised-command.ts'

/*
 * Two tools, because one call has one effect: `http_get` reads, several at once, and follows redirects; `http_send`
 * writes, one request for one action, so that "in doubt" says of what. It follows no redirect: where it leads is told,
 * and to send it there is another action.
 */

export interface HttpOptions {
  /** Hosts whose private addresses may be reached all the same, as `localhost:8080` or `intranet`. */
  readonly allowPrivate?: readonly string[]
  readonly resolve?: Resolve
}

export const httpTools = (options: HttpOptions = {}): Tool[] => [getTool(options), sendTool(options)]

const HEADERS: JsonSchema = { type: 'object', additionalProperties: { type: 'string' } }
const URL_TEXT: JsonSchema = { type: 'string', pattern: '^https?://', maxLength: 8_000 }
const TIMEOUT: JsonSchema = { type: 'integer', minimum: 1, maximum: 300, description: 'Default 30.' }

function networkOf({ allowPrivate = [], resolve = resolveHost }: HttpOptions, seconds: number | undefined) {
  const timeoutMs = seconds === undefined ? TOOL_LIMITS.requestMs : seconds * 1_000
  return ({ clock }: ToolContext): HttpNetwork => ({
    allowed: (host) => allowPrivate.includes(host),
    resolve,
    clock,
    timeoutMs,
  })
}

interface GetInput {
  readonly requests: readonly {
    readonly url: string
    readonly method?: 'GET' | 'HEAD'
    readonly headers?: Readonly<Record<string, string>>
  }[]
  readonly timeout_seconds?: number
}

const GET_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    requests: {
      type: 'array',
      minItems: 1,
      maxItems: TOOL_LIMITS.requests,
      items: {
        type: 'object',
        properties: { url: URL_TEXT, method: { enum: ['GET', 'HEAD'] }, headers: HEADERS },
        required: ['url'],
        additionalProperties: false,
      },
    },
    timeout_seconds: TIMEOUT,
  },
  required: ['requests'],
  additionalProperties: false,
}

const getTool = (options: HttpOptions): Tool => ({
  name: 'http_get',
  description: `Fetches up to ${TOOL_LIMITS.requests} URLs at once; the answers come in the same order, each a status with headers and body, or an error.`,
  inputSchema: GET_SCHEMA,
  effect: 'read',
  repeat: 'each',
  timeoutMs: 300_000,
  idempotent: true,
  identity: (input) => input,
  validate: (input) => validateInput(GET_SCHEMA, input),
  perform: async (input, context) => {
    const { requests, timeout_seconds: seconds } = input as GetInput
    const network = networkOf(options, seconds)(context)
    const answers = await Promise.all(requests.map((each) => get(each, network, context.signal)))
    if (context.signal.aborted) return { kind: 'failed', error: reasonOf(context.signal) }
    return { kind: 'done', result: answers }
  },
})

async function get(
  { url, method = 'GET', headers = {} }: GetInput['requests'][number],
  network: HttpNetwork,
  signal: AbortSignal,
): Promise<HttpResponse | { readonly url: string; readonly error: string }> {
  let at = URL.parse(url)
  let given = headers
  for (let hops = 0; at !== null; hops += 1) {
    const answer = await sendRequest({ method, url: at, headers: given }, network, signal)
    if (answer.kind === 'broken') return { url: at.href, error: answer.error }
    const { response, location } = answer
    if (location === undefined || ![301, 302, 303, 307, 308].includes(response.status)) return response
    if (hops === TOOL_LIMITS.redirects) return { url: at.href, error: `more than ${hops} redirects` }
    const next = URL.parse(location, at)
    // What was meant for one host is not told to another.
    if (next?.origin !== at.origin) given = withoutSecrets(given)
    at = next
  }
  return { url, error: 'is not a URL, or was redirected to something that is none' }
}

const withoutSecrets = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => /^(accept|user-agent|range|if-)/i.test(name)))

interface SendInput {
  readonly method: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeout_seconds?: number
}

const SEND_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    method: { enum: ['POST', 'PUT', 'PATCH', 'DELETE'] },
    url: URL_TEXT,
    headers: HEADERS,
    body: { type: 'string' },
    timeout_seconds: TIMEOUT,
  },
  required: ['method', 'url'],
  additionalProperties: false,
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

const sendTool = (options: HttpOptions): Tool => ({
  name: 'http_send',
  description:
    'Sends one request that changes something. Any answer is returned with its status; redirects are not followed.',
  inputSchema: SEND_SCHEMA,
  effect: 'write',
  repeat: 'once',
  timeoutMs: 300_000,
  idempotent: false,
  identity: (input) => {
    const { method, url, body = '' } = input as SendInput
    return { method, url: requestedUrl(url), body: sha256(body) }
  },
  validate: (input) => validateInput(SEND_SCHEMA, input),
  perform: async (input, context) => {
    const sending = input as SendInput
    const url = URL.parse(sending.url)
    if (url === null) return { kind: 'failed', error: `${sending.url} is not a URL` }
    if (context.signal.aborted) return { kind: 'failed', error: `${reasonOf(context.signal)} before it was sent` }
    const network = networkOf(options, sending.timeout_seconds)(context)
    return outcomeOfSend(await sendRequest(requestOf(sending, url, context), network, context.signal))
  },
})

/** What is behind `#` is not sent: two addresses that differ in it are one. */
function requestedUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null) return text
  url.hash = ''
  return url.href
}

/** The key goes along under the name that many services honour; whether this one does, we cannot know. */
function requestOf({ method, headers = {}, body }: SendInput, url: URL, { key }: ToolContext): HttpRequest {
  const named = { 'idempotency-key': key, ...headers }
  return { method, url, headers: named, ...(body === undefined ? {} : { body }) }
}

// Somebody on the way lost the one who knows.
const LOST_ON_THE_WAY = [408, 502, 504]

function outcomeOfSend(answer: Answer): ToolOutcome {
  if (answer.kind === 'broken') {
    return answer.sent
      ? { kind: 'in-doubt', error: `${answer.error}, after it may have been sent` }
      : { kind: 'failed', error: answer.error }
  }
  const { response } = answer
  return LOST_ON_THE_WAY.includes(response.status)
    ? { kind: 'in-doubt', error: `status ${response.status}: ${response.body.slice(0, TOOL_LIMITS.errorCharacters)}` }
    : { kind: 'done', result: response }
}
