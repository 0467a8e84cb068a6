import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One request of a client's model, as far as tests look at it. */
export interface Asked {
  readonly number: number
  /** Everything that was sent, as text: what stands in it reached the model. */
  readonly text: string
  readonly body: AskedBody
}

interface AskedBody {
  readonly model?: string
  readonly messages?: readonly { readonly role: string; readonly content: unknown }[]
  readonly tools?: readonly unknown[]
}

export type Reply =
  | { readonly text: string }
  | { readonly bash: string }
  | { readonly tool: string; readonly input: object }
  /** The connection stays open and nothing comes. */
  | { readonly silence: true }
  | { readonly status: number; readonly error: string }

/** Decides what the model says; whoever wants to hold a client in its turn waits in here. */
export type Script = (asked: Asked) => Reply | Promise<Reply>

export interface ModelServer {
  readonly url: string
  readonly asked: readonly Asked[]
  readonly close: () => void
}

/** A model behind the Messages interface, on loopback, that says what a test wants to hear. */
export async function openModelServer(script: Script): Promise<ModelServer> {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    answer(request, response, asked, script).catch((error: unknown) => response.destroy(error as Error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, close }
}

async function answer(request: IncomingMessage, response: ServerResponse, asked: Asked[], script: Script) {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  if (request.method !== 'POST' || !request.url?.startsWith('/v1/messages')) return void response.end()
  if (request.url.startsWith('/v1/messages/count_tokens')) return void json(response, { input_tokens: 10 })
  const body = JSON.parse(text) as AskedBody
  // Side calls (a title, a probe of the quota) have no tools; the conversation has.
  if ((body.tools ?? []).length === 0) return stream(response, { text: 'ok' }, 0)
  const question = { number: asked.length + 1, text, body }
  asked.push(question)
  stream(response, await script(question), question.number)
}

function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

function stream(response: ServerResponse, reply: Reply, number: number): void {
  if ('silence' in reply) return
  if ('status' in reply)
    return json(response, { type: 'error', error: { type: reply.error, message: reply.error } }, reply.status)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of eventsOf(reply, number)) {
    response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  }
  response.end()
}

type Said = Extract<Reply, { readonly text: string } | { readonly bash: string } | { readonly tool: string }>

function callOf(reply: Said): { readonly name: string; readonly input: object } | undefined {
  if ('tool' in reply) return { name: reply.tool, input: reply.input }
  if ('text' in reply) return undefined
  return { name: 'Bash', input: { command: reply.bash, description: 'a step', timeout: 100_000 } }
}

function eventsOf(reply: Said, number: number) {
  const id = `msg_${number}`
  const usage = { input_tokens: 100, output_tokens: 20, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
  const message = { id, type: 'message', role: 'assistant', model: 'claude-sonnet-4-5', content: [], stop_reason: null }
  const call = callOf(reply)
  const block =
    call === undefined
      ? { type: 'text', text: '' }
      : { type: 'tool_use', id: `toolu_${number}`, name: call.name, input: {} }
  const delta =
    call === undefined
      ? { type: 'text_delta', text: 'text' in reply ? reply.text : '' }
      : { type: 'input_json_delta', partial_json: JSON.stringify(call.input) }
  return [
    { type: 'message_start', message: { ...message, stop_sequence: null, usage } },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: call === undefined ? 'end_turn' : 'tool_use', stop_sequence: null },
      usage: { output_tokens: 20 },
    },
    { type: 'message_stop' },
  ]
}
