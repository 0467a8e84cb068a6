import type { FetchLike, JSONRPCMessage, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { HoldfastError } from '../../base/errors.ts'
import { MCP_LIMITS } from './limits.ts'

/** The code of an answer that we give ourselves, when the connection of a request ended before its answer came. */
export const CONNECTION_LOST = -32_099

/** Streamable HTTP with our limits. Redirects stay within the origin, which the library sees to. */
export async function httpTransport(
  url: string,
  headers: Readonly<Record<string, string>>,
  onRefused: () => void,
): Promise<StreamableHTTPClientTransport> {
  const { StreamableHTTPClientTransport: Http } = await import('@modelcontextprotocol/client')
  const transport = new Http(new URL(url), { fetch: boundedFetch, requestInit: { headers: { ...headers } } })
  answerCutStreams(transport, onRefused)
  return transport
}

/** Without this a request whose stream was cut would wait for its timeout: the library tells only its transport. */
function answerCutStreams(transport: StreamableHTTPClientTransport, onRefused: () => void): void {
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    if (Array.isArray(message) || !('id' in message) || !('method' in message)) return send(message, options)
    const { id } = message
    const lost = { jsonrpc: '2.0', id, error: { code: CONNECTION_LOST, message: 'the connection was cut' } }
    const onRequestStreamEnd = () => transport.onmessage?.(lost as JSONRPCMessage)
    return send(message, { ...options, onRequestStreamEnd }).catch((error: unknown) => {
      if (((error as { data?: { status?: number } }).data?.status ?? 0) >= 400) onRefused()
      throw error
    })
  }
}

const boundedFetch: FetchLike = async (url, init) => {
  // A stream for what the server has to say by itself. Nothing of that is of use here, and it would stay open for ever;
  // one that goes on with a cut answer names the last event it saw.
  const method = init?.method ?? 'GET'
  if (method === 'GET' && !new Headers(init?.headers).has('last-event-id')) return new Response(null, { status: 405 })
  const response = await fetch(url, init)
  if (response.body === null) return response
  const { status, statusText, headers } = response
  return new Response(response.body.pipeThrough(limiter()), { status, statusText, headers })
}

function limiter(): TransformStream<Uint8Array, Uint8Array> {
  let size = 0
  return new TransformStream({
    transform(chunk, controller) {
      size += chunk.byteLength
      if (size <= MCP_LIMITS.messageBytes) controller.enqueue(chunk)
      else controller.error(tooLarge())
    },
  })
}

const tooLarge = () =>
  new HoldfastError('tools/mcp-too-large', `it sent an answer of more than ${MCP_LIMITS.messageBytes} bytes`, {
    remedy: 'ask it for less at a time',
  })
