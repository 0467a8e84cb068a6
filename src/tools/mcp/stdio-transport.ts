import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { HoldfastError } from '../../base/errors.ts'
import type { Supervised } from '../../processes/supervised.ts'
import { MCP_LIMITS } from './limits.ts'

/** What puts an action's key into a call, for servers that honour it, and for finding the call again to cancel it. */
export const ACTION_KEY = 'holdfast/action-key'

/** The code of a message of which not a byte was sent. */
export const NOT_SENT = 'tools/mcp-not-sent'

/**
 * JSON-RPC over the pipes of a supervised command, one message a line. What is not a message is not answered with a
 * failure: servers print to standard output what they should not, and go on to work.
 */
export class StdioTransport implements Transport {
  // By these two the protocol library tells a pipe from HTTP: a server that says nothing there is of the older kind.
  readonly stderr = null
  readonly pid = null
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** Called once with why, when the server says what nobody can take. */
  onBreach: (why: string) => void = () => {}
  #command: Supervised | undefined
  /** The keys of the calls that are not answered yet. */
  readonly #calls = new Map<string | number, string>()
  #parts: Buffer[] = []
  #size = 0

  attach(command: Supervised): void {
    this.#command = command
    command.input?.on('error', () => {})
  }

  async start(): Promise<void> {}

  /** The end of its processes is the connection's business; here it only means that nothing more is said. */
  async close(): Promise<void> {
    this.onclose?.()
  }

  send(message: JSONRPCMessage): Promise<void> {
    this.#remember(message)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const input = this.#command?.input
    if (input === undefined || input.destroyed) reject(new HoldfastError(NOT_SENT, 'the server does not read any more'))
    else input.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()))
    return promise
  }

  /** The number under which a call went out; undefined as long as it has not. */
  requestOf(key: string): string | number | undefined {
    return [...this.#calls].find(([, each]) => each === key)?.[0]
  }

  #remember(message: JSONRPCMessage): void {
    if (!('id' in message) || !('method' in message) || message.method !== 'tools/call') return
    const key = message.params?.['_meta']?.[ACTION_KEY]
    if (typeof key === 'string' && message.id !== undefined) this.#calls.set(message.id, key)
  }

  /** A message may come in any number of pieces, and one piece may hold many. */
  take(chunk: Buffer): void {
    for (let from = 0; from < chunk.length;) {
      const end = chunk.indexOf(0x0a, from)
      const piece = chunk.subarray(from, end === -1 ? chunk.length : end)
      if (this.#size + piece.length > MCP_LIMITS.messageBytes) return this.#breach()
      this.#parts.push(piece)
      this.#size += piece.length
      if (end === -1) return
      this.#deliver()
      from = end + 1
    }
  }

  #breach(): void {
    ;[this.#parts, this.#size] = [[], 0]
    this.onBreach(`it sent a message of more than ${MCP_LIMITS.messageBytes} bytes`)
  }

  #deliver(): void {
    const line = Buffer.concat(this.#parts).toString('utf8').trim()
    ;[this.#parts, this.#size] = [[], 0]
    const message = asMessage(line)
    if (message === undefined) return
    if (!('method' in message) && message.id !== undefined) this.#calls.delete(message.id)
    this.onmessage?.(message)
  }
}

function asMessage(line: string): JSONRPCMessage | undefined {
  try {
    const value = JSON.parse(line) as { jsonrpc?: unknown } | null
    return value?.jsonrpc === '2.0' ? (value as JSONRPCMessage) : undefined
  } catch {
    return undefined
  }
}
