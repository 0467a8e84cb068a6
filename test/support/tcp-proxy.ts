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

/** What a server says when it has committed: to a commit, and to a statement that is all of a transaction. */
const COMMITTED = { commit: 'COMMIT', statement: 'INSERT 0 1' }
const [READY, KEY, DONE] = [0x5a, 0x4b, 0x43]
/** In a statement that ends a transaction, or is one. */
const ENDS = 'insert into writers as w '

/** A network of our own between an engine and its PostgreSQL, that fails exactly where a test wants it to. */
export class TcpProxy {
  readonly #server: Server
  readonly #target: { readonly host: string; readonly port: number }
  readonly #links = new Set<Link>()
  /** Asked at each COMMIT. */
  atCommit: () => CommitFate = () => 'pass'
  /** Told when a COMMIT has met its fate: one that the server refused, or a rollback, was not cut. */
  onCut: (fate: CommitFate) => void = () => {}
  /** Asked at each request; it is held here until the promise is over. */
  atRequest: (link: Link) => Promise<void> | undefined = () => undefined
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
  readonly #requests = new Messages(false)
  readonly #answers = new Messages(true)
  #held: Buffer[] | undefined
  /** A commit whose answer is not to be heard: what it would be, and the how manieth it is. */
  #doomed: { readonly fate: CommitFate; readonly tag: string; readonly nth: number } | undefined
  readonly #unheard: Buffer[] = []
  /** Requests that the server answers with a "ready", and how often it said so; the first is for the greeting. */
  #sent = 1
  #ready = 0
  #asked = false
  #blackHole = false
  #inTransaction = false
  readonly #ending = new Set<string>()
  readonly #delayed: (() => void)[] = []
  /** The simple queries of this connection. */
  said = ''
  /** Of the server's process. */
  pid: number | undefined

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

  /** Somebody waits for an answer on it. */
  get isBusy(): boolean {
    return this.#ready > 0 && this.#sent > this.#ready
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
    if (!this.holds && !this.#blackHole && this.#doomed === undefined) this.server.destroy()
  }

  #fromClient(chunk: Buffer): void {
    if (this.#blackHole) return
    this.#asked = true
    const messages = this.#requests.take(chunk)
    const before = this.#sent
    for (const message of messages) {
      this.said += queryText(message) ?? ''
      if (endsRequest(message)) this.#sent += 1
    }
    if (this.#held !== undefined) return void this.#held.push(...messages)
    if (messages.some((message) => this.#proxy.holdAt?.test(message.toString('latin1')))) {
      this.#proxy.holdAt = undefined
      this.#held = messages
      return
    }
    const wait = this.#ready > 0 ? this.#proxy.atRequest(this) : undefined
    if (wait !== undefined) {
      this.#held = messages
      return void wait.finally(() => this.deliver())
    }
    const at = messages.findIndex((message) => this.#commits(message))
    const fate = at === -1 ? 'pass' : this.#proxy.atCommit()
    const nth = before + messages.slice(0, at).filter(endsRequest).length + 1
    this.#pass(messages, { at, nth, fate })
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

  #pass(messages: readonly Buffer[], { at, nth, fate }: { at: number; nth: number; fate: CommitFate }): void {
    const until = { 'cut before': at, hold: at, swallow: at, 'hold all': 0 }[fate as string] ?? messages.length
    this.server.write(Buffer.concat(messages.slice(0, until)))
    if (fate === 'hold' || fate === 'hold all') this.#held = messages.slice(until)
    if (fate === 'cut after' || fate === 'deny after') {
      const tag = queryText(messages[at]!) === undefined ? COMMITTED.statement : COMMITTED.commit
      this.#doomed = { fate, tag, nth }
    }
    if (fate === 'cut while') this.reset()
    if (fate === 'swallow') this.blackHole()
    if (fate === 'cut while' || fate === 'swallow' || fate === 'cut before') this.#proxy.onCut(fate)
    if (fate !== 'cut before') return
    // The server is to execute what came before, and then to find its client gone.
    this.server.end()
    this.#client.resetAndDestroy()
  }

  #fromServer(chunk: Buffer): void {
    if (this.#blackHole) return
    if (this.#asked) this.#proxy.roundTrips += 1
    this.#asked = false
    for (const message of this.#answers.take(chunk)) {
      if (this.#isCommitted(message)) return this.#cut(this.#doomed!.fate)
      this.#unheard.push(message)
      if (message[0] === KEY) this.pid = message.readUInt32BE(5)
      if (message[0] === READY) this.#ready += 1
      // It was refused, or nothing was left to commit: that is heard as it is.
      if (this.#ready === this.#doomed?.nth) this.#doomed = undefined
    }
    if (this.#doomed === undefined) this.#client.write(Buffer.concat(this.#unheard.splice(0)))
  }

  /** What its client is not to hear. */
  #isCommitted(message: Buffer): boolean {
    if (this.#doomed === undefined || message[0] !== DONE || this.#ready !== this.#doomed.nth - 1) return false
    return message.toString('latin1', 5, message.length - 1) === this.#doomed.tag
  }

  #cut(fate: CommitFate): void {
    this.#proxy.onCut(fate)
    if (fate === 'cut after') return this.reset()
    this.#blackHole = true
    this.#client.end(Buffer.concat([...this.#unheard, fatal(this.#proxy.denial)]))
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
  #lettered: boolean

  constructor(lettered: boolean) {
    this.#lettered = lettered
  }

  take(chunk: Buffer): Buffer[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
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

/** A query, or the end of a row of statements. */
const endsRequest = (message: Buffer): boolean => message[0] === 0x51 || message[0] === 0x53

function queryText(message: Buffer): string | undefined {
  return message[0] === 0x51 ? message.toString('utf8', 5, message.length - 1) : undefined
}
