import type { JsonSchema, Tool, ToolContext, ToolOutcome } from '../loop/ports.ts'
import { resolveHost } from './addresses.ts'
import { WEBHOOK_TOOL } from './built-in-names.ts'
import type { HttpOptions } from './http.ts'
import { TOOL_LIMITS } from './limits.ts'
import { sendRequest } from './request.ts'
import type { Answer, HttpRequest } from './request.ts'
import { validateInput } from './schema.ts'
import { reasonOf } from './supervised-command.ts'

/* What a schedule with a webhook does: one request, an action like any other, with its decision and its doubt. */

export interface WebhookOptions extends HttpOptions {
  /** The headers that prove who sent this body, if a secret is configured. */
  readonly sign?: (body: string) => Readonly<Record<string, string>>
  readonly timeoutMs?: number
}

/** Everything that is sent, so that whoever is asked sees it. */
export interface WebhookInput {
  readonly url: string
  readonly method: string
  readonly body: {
    readonly schedule: string
    readonly occurrence: string
    readonly dueAt: string
    readonly attempt: number
    /** What the schedule's maker wants to be told there. */
    readonly data?: unknown
  }
  readonly madeBy: string
  /** A person named this address, and may mean one that is not on the public internet. */
  readonly mayBePrivate: boolean
}

const SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    url: { type: 'string', pattern: '^https?://', maxLength: 8_000 },
    method: { enum: ['POST', 'PUT', 'PATCH', 'GET', 'DELETE'] },
    body: {
      type: 'object',
      properties: {
        schedule: { type: 'string' },
        occurrence: { type: 'string' },
        dueAt: { type: 'string' },
        attempt: { type: 'integer', minimum: 1 },
      },
      required: ['schedule', 'occurrence', 'dueAt', 'attempt'],
    },
    madeBy: { type: 'string' },
    mayBePrivate: { type: 'boolean' },
  },
  required: ['url', 'method', 'body', 'madeBy', 'mayBePrivate'],
  additionalProperties: false,
}

/** How the errors of those begin that would only repeat themselves. */
export const REFUSED = 'refused: '

export const webhookTool = (options: WebhookOptions): Tool => ({
  name: WEBHOOK_TOOL,
  description: 'Tells an address that a schedule is due.',
  inputSchema: SCHEMA,
  effect: 'write',
  repeat: 'each',
  timeoutMs: TOOL_LIMITS.requestMs,
  idempotent: false,
  identity: (input) => input,
  agreedBy: (input) => {
    const { madeBy, body } = input as WebhookInput
    return { by: `${madeBy}, who made the schedule ${body.schedule}`, via: 'schedule' }
  },
  validate: (input) => validateInput(SCHEMA, input),
  perform: async (input, context) => {
    const call = input as WebhookInput
    const url = URL.parse(call.url)
    if (url === null) return { kind: 'failed', error: `${REFUSED}${call.url} is not an address` }
    if (context.signal.aborted) return { kind: 'failed', error: `${reasonOf(context.signal)} before it was sent` }
    const { allowPrivate = [], resolve = resolveHost, timeoutMs = TOOL_LIMITS.requestMs } = options
    const allowed = (host: string) => call.mayBePrivate || allowPrivate.includes(host)
    const network = { allowed, resolve, clock: context.clock, timeoutMs }
    return outcomeOf(await sendRequest(requestOf(call, url, options, context), network, context.signal))
  },
})

/**
 * The key is the occurrence's, not the action's: each retry of the schedule is an action of its own, and a receiver that did
 * what it was asked and then broke must know the next one as the same.
 */
function requestOf(
  { method, body }: WebhookInput,
  url: URL,
  { sign }: WebhookOptions,
  { key }: ToolContext,
): HttpRequest {
  const text = method === 'GET' ? undefined : JSON.stringify(body)
  const headers = {
    ...(text === undefined ? {} : { 'content-type': 'application/json' }),
    'idempotency-key': body.occurrence,
    'x-holdfast-occurrence': body.occurrence,
    'x-holdfast-due': body.dueAt,
    'x-holdfast-attempt': String(body.attempt),
    'x-holdfast-action': key,
    ...sign?.(text ?? ''),
  }
  return { method, url, headers, ...(text === undefined ? {} : { body: text }) }
}

/** Answers that say "not now": the receiver did nothing, and may do it a moment later. */
const NOT_NOW = [408, 425, 429]

function outcomeOf(answer: Answer): ToolOutcome {
  if (answer.kind === 'broken') {
    const { error, sent } = answer
    return sent ? { kind: 'in-doubt', error: `${error}, after it was sent` } : { kind: 'failed', error }
  }
  const { status, body } = answer.response
  if (status >= 200 && status < 300) return { kind: 'done', result: { status, ...saidIn(body) } }
  const where = answer.location === undefined ? '' : `, to ${answer.location}, which is not followed`
  const error = `status ${status}${where}${body === '' ? '' : `: ${saidIn(body).said ?? ''}`}`
  return { kind: 'failed', error: status >= 500 || NOT_NOW.includes(status) ? error : `${REFUSED}${error}` }
}

const MOST_SAID = 500

const saidIn = (body: string) => (body === '' ? {} : { said: body.slice(0, MOST_SAID) })
