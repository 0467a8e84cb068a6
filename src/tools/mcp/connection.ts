import type { CallToolResult, Client } from '@modelcontextprotocol/client'
import type { Clock } from '../../base/clock.ts'
import { formatDuration } from '../../base/duration.ts'
import type { JsonSchema } from '../../loop/ports.ts'
import { reasonOf } from '../supervised-command.ts'
import { MCP_LIMITS } from './limits.ts'
import { ACTION_KEY } from './stdio-transport.ts'

/** What a server says about one of its tools: all of it hints of a stranger. */
export interface ServerTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema: JsonSchema
  readonly annotations?: Readonly<Record<string, unknown>>
}

export interface Call {
  readonly tool: ServerTool
  readonly input: unknown
  readonly key: string
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

/** How a request ended, as far as this side of the wire knows. */
export type Called =
  | { readonly kind: 'answered'; readonly result: CallToolResult }
  | { readonly kind: 'error'; readonly error: unknown }
  /** It was stopped by us before it was answered. */
  | { readonly kind: 'stopped'; readonly why: string }

type Settled = Exclude<Called, { kind: 'stopped' }>

/** What pipes and HTTP do differently. */
export interface Wire {
  /**
   * Tells the server that nobody waits for this call any more. Resolves when that is certain: with an answer that came
   * all the same, or with nothing once the call cannot go on here.
   */
  stopCall(call: Call, answer: Promise<Settled>, giveUp: (why: string) => void): Promise<Settled | undefined>
  /** Ends it; resolves when all of its processes are dead. */
  end(why: string): Promise<void>
  /** Resolves when it is over and nothing of it is left. */
  readonly ended: Promise<Ending>
  /** Neither over nor about to be. */
  readonly usable: boolean
}

export interface Ending {
  readonly why: string
  /** It was we who ended it. */
  readonly told: boolean
}

// The library sets a timer for every request and cannot hold a longer one; our own clock decides before that.
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** One client of one server: a process of its own, or an address. */
export class Connection {
  readonly #client: Client
  readonly #wire: Wire
  readonly #clock: Clock
  #listing: Promise<readonly ServerTool[]> | undefined

  constructor(client: Client, wire: Wire, clock: Clock) {
    this.#client = client
    this.#wire = wire
    this.#clock = clock
    client.setNotificationHandler('notifications/tools/list_changed', () => void (this.#listing = undefined))
  }

  get ended(): Promise<Ending> {
    return this.#wire.ended
  }

  get usable(): boolean {
    return this.#wire.usable
  }

  end(why: string): Promise<void> {
    return this.#wire.end(why)
  }

  /** The tools as the server describes them now; without `afresh` as it did when it was last asked. */
  listing(afresh = false): Promise<readonly ServerTool[]> {
    if (afresh) this.#listing = undefined
    this.#listing ??= this.#list().catch((error: unknown) => {
      this.#listing = undefined
      throw error
    })
    return this.#listing
  }

  async #list(): Promise<readonly ServerTool[]> {
    // Asked for tools that a server does not offer, the library would print a remark to standard output.
    if (this.#client.getServerCapabilities()?.tools === undefined) return []
    const options = { cacheMode: 'refresh', timeout: MCP_LIMITS.handshakeMs } as const
    const { tools } = await this.#client.listTools(undefined, options)
    return tools.map(({ name, description, inputSchema, annotations }) => ({
      name,
      inputSchema: inputSchema as JsonSchema,
      ...(description === undefined ? {} : { description }),
      ...(annotations === undefined ? {} : { annotations }),
    }))
  }

  async call(call: Call): Promise<Called> {
    const giveUp = new AbortController()
    const answer = this.#request(call, giveUp.signal)
    const told = new AbortController()
    const stopped = whenToStop(call, this.#clock, told.signal)
    const first = await Promise.race([answer, stopped])
    told.abort()
    if (typeof first !== 'string') return first
    const late = await this.#wire.stopCall(call, answer, (why) => giveUp.abort(why))
    return late ?? { kind: 'stopped', why: first }
  }

  #request({ tool, input, key }: Call, signal: AbortSignal): Promise<Settled> {
    const params = { name: tool.name, arguments: input as Record<string, unknown>, _meta: { [ACTION_KEY]: key } }
    // With a definition of ours, which has no schema for the output, the library neither refuses an answer after the
    // effect nor sends a request twice.
    const toolDefinition = { name: tool.name, inputSchema: tool.inputSchema as { type: 'object' } }
    const answer = this.#client.callTool(params, { signal, timeout: LONGEST_TIMER_MS, toolDefinition })
    return answer.then(
      (result): Settled => ({ kind: 'answered', result }),
      (error: unknown): Settled => ({ kind: 'error', error }),
    )
  }
}

/** Resolves with the reason when the caller's signal or the time says so; never, once `over`. */
function whenToStop({ signal, timeoutMs }: Call, clock: Clock, over: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const onAbort = () => resolve(reasonOf(signal))
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    const disarm = clock.after(timeoutMs, () => resolve(`timed out after ${formatDuration(timeoutMs)}`), { ref: true })
    over.addEventListener('abort', () => {
      signal.removeEventListener('abort', onAbort)
      disarm()
    })
  })
}
