import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { onTestFinished } from 'vitest'

/** What the server does with one request. */
export type Behaviour = (response: ServerResponse, request: IncomingMessage) => void

export interface ProviderServer {
  readonly url: string
  /** How many requests reached it, and when. */
  readonly requests: () => number
  readonly arrivals: readonly number[]
  /** How many of their connections the caller gave up. */
  readonly abandoned: () => number
}

/** A provider on loopback that speaks Anthropic's events. The last behaviour is kept for all further requests. */
export async function providerServer(behaviours: readonly Behaviour[]): Promise<ProviderServer> {
  let [requests, abandoned] = [0, 0]
  const arrivals: number[] = []
  const server = createServer((request, response) => {
    const behaviour = behaviours[Math.min(requests, behaviours.length - 1)]!
    requests += 1
    arrivals.push(performance.now())
    response.on('close', () => (abandoned += response.writableEnded ? 0 : 1))
    request.resume().on('end', () => behaviour(response, request))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/v1`, requests: () => requests, arrivals, abandoned: () => abandoned }
}

export const refuses =
  (status: number, headers: Readonly<Record<string, string>> = {}): Behaviour =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify({ type: 'error', error: { type: 'api_error', message: `this is ${status}` } }))
  }

export const INPUT_TOKENS = 25
export const OUTPUT_TOKENS = 7

const usage = { input_tokens: INPUT_TOKENS, output_tokens: 1 }
const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', content: [], usage }
const BEGIN = [
  { type: 'message_start', message: { ...message, stop_reason: null, stop_sequence: null } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hel' } },
]
const END = [
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'lo' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: OUTPUT_TOKENS },
  },
  { type: 'message_stop' },
]

const event = (value: { readonly type: string }) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`

function begin(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(BEGIN.map(event).join(''))
}

export const replies: Behaviour = (response) => {
  begin(response)
  response.end(END.map(event).join(''))
}

/** One byte at a time, so that every event is torn apart somewhere. */
export const drips: Behaviour = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const bytes = Buffer.from([...BEGIN, ...END].map(event).join(''))
  const next = (at: number): void => {
    if (at === bytes.length) response.end()
    else response.write(bytes.subarray(at, at + 1), () => setImmediate(next, at + 1))
  }
  next(0)
}

export const hangsInTheMiddle: Behaviour = (response) => begin(response)
export const neverAnswers: Behaviour = () => {}

export const cutsTheConnection: Behaviour = (response) => {
  begin(response)
  setTimeout(() => response.destroy(), 20)
}

export const endsTooEarly: Behaviour = (response) => {
  begin(response)
  response.end()
}

export const talksNonsense: Behaviour = (response) => {
  begin(response)
  response.end('event: content_block_delta\ndata: {"type":"content_block_delta","ind\n\n')
}

export const breaksOffOverloaded: Behaviour = (response) => {
  begin(response)
  response.end(event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } as { type: string }))
}
