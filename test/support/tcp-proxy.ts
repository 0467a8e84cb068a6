import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

/**
 * What happens to a COMMIT on its way. `cut before`: it never reaches the server. `cut after`: the server has answered
 * it, and nobody hears the answer. `deny after`: instead of that answer an error is heard, and then nothing. `cut while`: nobody can say. `hold`: it is kept here until `deliver`, alone or with
 * everything that was sent together with it. `swallow`: neither it nor anything after it arrives, and nobody is told.
 */
export type CommitFate =
  | 'pass'
  | 'cut before'
  | 'cut after'
  | 'deny after'
  | 'cut while'
  | 'hold'
  | 'hold all'
  | 'swallow'

const COMMITTED = { commit: Buffer.from('COMMIT\0'), statement: Buffer.from('SELECT 1\0') }
/** In a statement that ends a transaction, or is one. */
const ENDS = 'as marked from mark'

/** A network of our own between an engine and its PostgreSQL, that fails exactly where a test wants it to. */
export class TcpProxy {
  readonly #server: Server
  readonly #target: { readonly host: string; readonly port: number }
  readonly #links = new Set<Link>()
  /** Asked at each COMMIT. */
  atCommit: () => CommitFate = () => 'pass'
  /** The SQLSTATE of the error that `deny after` puts in the place of an answer. */
  denial = 'XX000'
  /** The first request with this in it is held, with whatever comes after it. */
  holdAt: RegExp | undefined
  /** Each way, for what is sent from now on. */
  delayMs = 0
  /** New connections are refused. */
  refusing = false
  /** How often somebody waited for an answer. */
  roundTrips = 0

  private constructor(server: Server, target: { readonly host: string; readonly port: number }) {
    this.#server = server
    this.#target = target
    server.on('connection', (client) => this.#accept(client))
  }

  /** Before the server that this URL names. */
  static async before(url: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(url)
    const server = createServer({ noDelay: true })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
    return new TcpProxy(server, { host: hostname, port: Number(port) })
  }

  /** The same database, by this way. */
  through(url: string): string {
    const parsed = new URL(url)
    parsed.hostname = '127.0.0.1'
    parsed.port = String((this.#server.address() as AddressInfo).port)
    return parsed.href
  }

  /** Connections on which something like this was said. */
  links(said = /(?:)/): readonly Link[] {
    return [...this.#links].filter((link) => said.test(link.said))
  }

  async close(): Promise<void> {
    for (const link of this.#links) link.reset()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(client: Socket): void {
    if (this.refusing) return void client.resetAndDestroy()
    const link = new Link(this, client, connect({ ...this.#target, noDelay: true }))
    this.#links.add(link)
    link.server.once('close', () => this.#links.delete(link))
  }
}

/** One connection. Whole messages are passed on, so that a cut is never in the middle of one. */
export class Link {
  readonly server: Socket
  readonly #client: Socket
  readonly #proxy: TcpProxy
  readonly #requests = new Messages()
  #held: Buffer[] | undefined
  #swallowed: Buffer | undefined
  #awaited = COMMITTED.commit
  #denies = false
  #asked = false
  #blackHole = false
  #inTransaction = false
  readonly #ending = new Set<string>()
  readonly #delayed: (() => void)[] = []
  /** The simple queries of this connection. */
  said = ''

  constructor(proxy: TcpProxy, client: Socket, server: Socket) {
    this.#proxy = proxy
    this.#client = client
    this.server = server
    client.on('data', (chunk: Buffer) => this.#later(() => this.#fromClient(chunk)))
    server.on('data', (chunk: Buffer) => this.#later(() => this.#fromServer(chunk)))
    for (const socket of [client, server]) socket.on('error', () => {})
    client.on('close', () => this.#later(() => this.#clientGone()))
    server.on('close', () => this.#later(() => this.#blackHole || client.destroy()))
  }

  /** From now on nothing arrives on either side, and nobody is told. */
  blackHole(): void {
    this.#blackHole = true
  }

  reset(): void {
    this.#client.resetAndDestroy()
    this.server.resetAndDestroy()
  }

  /** The engine's side is gone; the server does not know, and what is held is still on its way. */
  resetClient(): void {
    this.#client.resetAndDestroy()
  }

  get holds(): boolean {
    return this.#held !== undefined
  }

  /** What is held goes on its way, all of it or only what comes before this. */
  deliver(before?: RegExp): void {
    const held = this.#held ?? []
    const at = before === undefined ? -1 : held.findIndex((message) => before.test(message.toString('latin1')))
    this.#held = at === -1 ? undefined : held.slice(at)
    this.server.write(Buffer.concat(at === -1 ? held : held.slice(0, at)))
  }

  /** What was sent first arrives first, also when the delay gets shorter meanwhile. */
  #later(act: () => void): void {
    if (this.#proxy.delayMs === 0 && this.#delayed.length === 0) return act()
    this.#delayed.push(act)
    setTimeout(() => this.#delayed.shift()?.(), this.#proxy.delayMs)
  }

  #clientGone(): void {
    if (!this.holds && !this.#blackHole && this.#swallowed === undefined) this.server.destroy()
  }

  #fromClient(chunk: Buffer): void {
    if (this.#blackHole) return
    this.#asked = true
    const messages = this.#requests.take(chunk)
    for (const message of messages) this.said += queryText(message) ?? ''
    if (this.#held !== undefined) return void this.#held.push(...messages)
    if (messages.some((message) => this.#proxy.holdAt?.test(message.toString('latin1')))) {
      this.#proxy.holdAt = undefined
      this.#held = messages
      return
    }
    const at = messages.findIndex((message) => this.#commits(message))
    const fate = at === -1 ? 'pass' : this.#proxy.atCommit()
    this.#pass(messages, at, fate)
  }

  /** Whether a transaction is over with it: a commit, or a statement that is all of one. */
  #commits(message: Buffer): boolean {
    const text = queryText(message)?.toLowerCase()
    if (text === 'begin') this.#inTransaction = true
    if (text === 'commit' || text === 'rollback') this.#inTransaction = false
    const [kind, ...parts] = [message.toString('latin1', 0, 1), ...message.toString('latin1', 5).split('\0')]
    if (kind === 'P' && parts[1]!.includes(ENDS)) this.#ending.add(parts[0]!)
    return text === 'commit' || (kind === 'B' && !this.#inTransaction && this.#ending.has(parts[1]!))
  }

  #pass(messages: readonly Buffer[], at: number, fate: CommitFate): void {
    const until = { 'cut before': at, hold: at, swallow: at, 'hold all': 0 }[fate as string] ?? messages.length
    this.server.write(Buffer.concat(messages.slice(0, until)))
    if (fate === 'hold' || fate === 'hold all') this.#held = messages.slice(until)
    if (fate === 'cut after' || fate === 'deny after') this.#swallowed = Buffer.alloc(0)
    this.#awaited =
      messages[at] !== undefined && queryText(messages[at]) === undefined ? COMMITTED.statement : COMMITTED.commit
    this.#denies = fate === 'deny after'
    if (fate === 'cut while') this.reset()
    if (fate === 'swallow') this.blackHole()
    if (fate !== 'cut before') return
    // The server is to execute what came before, and then to find its client gone.
    this.server.end()
    this.#client.resetAndDestroy()
  }

  #fromServer(chunk: Buffer): void {
    if (this.#blackHole) return
    if (this.#asked) this.#proxy.roundTrips += 1
    this.#asked = false
    if (this.#swallowed === undefined) return void this.#client.write(chunk)
    this.#swallowed = Buffer.concat([this.#swallowed, chunk])
    const at = this.#swallowed.indexOf(this.#awaited)
    if (at === -1) return
    if (!this.#denies) return this.reset()
    this.#blackHole = true
    // The letter and the length of that answer come before it.
    this.#client.end(Buffer.concat([this.#swallowed.subarray(0, at - 5), fatal(this.#proxy.denial)]))
    this.server.destroy()
  }
}

/** The last word of a server, or of a pooler whose server is gone. */
function fatal(state: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${state}\0Mthe server is gone\0\0`)
  const head = Buffer.from('E\0\0\0\0')
  head.writeUInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}

/** PostgreSQL's framing: a letter and a length, except for the first message, which has no letter. */
class Messages {
  #rest: Buffer = Buffer.alloc(0)
  #lettered = false

  take(chunk: Buffer): Buffer[] {
    this.#rest = Buffer.concat([this.#rest, chunk])
    const messages: Buffer[] = []
    for (let size = this.#size(); size !== undefined && size <= this.#rest.length; size = this.#size()) {
      messages.push(this.#rest.subarray(0, size))
      this.#rest = this.#rest.subarray(size)
      this.#lettered = true
    }
    return messages
  }

  #size(): number | undefined {
    const before = this.#lettered ? 1 : 0
    return this.#rest.length < before + 4 ? undefined : before + this.#rest.readUInt32BE(before)
  }
}

function queryText(message: Buffer): string | undefined {
  return message[0] === 0x51 ? message.toString('utf8', 5, message.length - 1) : undefined
}
