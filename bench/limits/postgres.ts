/**
 * Everything that a store asks of PostgreSQL, from opening it to closing it, by connection: what was sent together, and what had not been
 * answered by then. Replayed with the bare driver on an empty database and as many connections. A transaction begins as soon as all is
 * answered that was answered when the store began it, and goes on with its own answers. So as much is under way at once as in the
 * product, and nobody thinks in between.
 */
import pg from 'pg'
import type { QueryConfig, QueryResult } from 'pg'

import { parsePostgresUrl } from '../../src/store/postgres/settings.ts'
import { pause } from '../product.ts'
import { AnotherWay } from './watch.ts'
import type { Mark, Watch } from './watch.ts'

interface Request {
  readonly text: string
  readonly values?: readonly unknown[]
  readonly name?: string
  /** As the server counted them. */
  rows?: number
  /** The runs that it got, where it took what was next. */
  claimed?: readonly Claimed[]
}

interface Claimed {
  readonly seq: string
  readonly id: string
}

interface Packet {
  readonly kind: 'packet'
  readonly connection: number
  readonly requests: Request[]
}

type Entry = (Mark | Packet) & {
  /** The how-manieth it was. */
  readonly id: number
  /** Packets that were not answered yet. */
  readonly open: readonly number[]
}

export interface PostgresRecording {
  readonly entries: readonly Entry[]
  readonly connections: number
}

type Query = (this: pg.Client, ...args: unknown[]) => unknown
type Answer = (error: unknown, result?: QueryResult | QueryResult[]) => void

/** Several statements in one text have several answers. */
const rowsOf = (result: QueryResult | QueryResult[] | undefined): number =>
  [result ?? []].flat().reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0)

/** Passes over what others hold just then, and takes what is next. */
const isClaim = ({ text }: Request): boolean => text.includes('skip locked')
const claimedBy = (result: QueryResult | QueryResult[] | undefined): Claimed[] =>
  [result ?? []].flat().flatMap(({ rows }) => rows.map(({ seq, id }: Claimed) => ({ seq, id })))

class Recorder implements Watch {
  readonly entries: Entry[] = []
  readonly #open = new Set<number>()
  readonly #connections = new Map<pg.Client, number>()
  /** What is being sent, by its connection: until whoever sends it is done. */
  readonly #sending = new Map<pg.Client, { readonly packet: Packet; readonly id: number; left: number }>()
  #isAside = false
  failure: unknown

  get connections(): number {
    return this.#connections.size
  }

  begin(): void {
    this.#mark({ kind: 'begin' })
  }

  end(): void {
    this.#mark({ kind: 'end' })
  }

  rest(ms: number): Promise<void> {
    this.#mark({ kind: 'rest', ms })
    return pause(ms)
  }

  aside<T>(look: () => T): T {
    this.#isAside = true
    try {
      return look()
    } finally {
      this.#isAside = false
    }
  }

  #mark(mark: Mark): void {
    this.entries.push({ ...mark, id: this.entries.length, open: [...this.#open] })
  }

  /** Listens to the driver; returns how to stop. */
  listen(): () => void {
    const { query } = pg.Client.prototype as unknown as { query: Query }
    const note = (client: pg.Client, request: Request) => (this.#isAside ? undefined : this.#note(client, request))
    pg.Client.prototype.query = function noted(this: pg.Client, ...args: unknown[]) {
      const answered = note(this, requestOf(args))
      if (answered === undefined) return query.apply(this, args)
      const told = args.at(-1)
      if (typeof told === 'function') {
        const both: Answer = (error, result) => (answered(error, result), (told as Answer)(error, result))
        return query.apply(this, [...args.slice(0, -1), both])
      }
      const answer = query.apply(this, args) as Promise<QueryResult>
      answer.then(
        (result) => answered(undefined, result),
        (error: unknown) => answered(error),
      )
      return answer
    } as never
    return () => void (pg.Client.prototype.query = query as never)
  }

  #note(client: pg.Client, request: Request): Answer {
    const sending = this.#sending.get(client) ?? this.#send(client)
    sending.packet.requests.push(request)
    sending.left += 1
    return (error, result) => {
      this.failure ??= error ?? undefined
      request.rows = rowsOf(result)
      if (isClaim(request)) request.claimed = claimedBy(result)
      if ((sending.left -= 1) === 0) this.#open.delete(sending.id)
    }
  }

  #send(client: pg.Client) {
    const connection = this.#connections.get(client) ?? this.#connections.size
    this.#connections.set(client, connection)
    const packet: Packet = { kind: 'packet', connection, requests: [] }
    const sending = { packet, id: this.entries.length, left: 0 }
    this.entries.push({ ...packet, id: sending.id, open: [...this.#open] })
    this.#open.add(sending.id)
    this.#sending.set(client, sending)
    queueMicrotask(() => this.#sending.delete(client))
    return sending
  }
}

function requestOf([given, values]: readonly unknown[]): Request {
  if (typeof given !== 'string') return { ...(given as Request) }
  return Array.isArray(values) ? { text: given, values } : { text: given }
}

export async function recordPostgres(work: (watch: Watch) => Promise<void>): Promise<PostgresRecording> {
  const recorder = new Recorder()
  const stop = recorder.listen()
  try {
    await work(recorder)
  } finally {
    stop()
  }
  if (recorder.failure !== undefined)
    throw new Error('a statement was refused while it was recorded', { cause: recorder.failure })
  return { entries: recorder.entries, connections: recorder.connections }
}

export async function replayPostgres(recording: PostgresRecording, url: string, watch: Watch): Promise<void> {
  const clients = Array.from({ length: recording.connections }, () => new pg.Client(parsePostgresUrl(url).pool))
  for (const client of clients) client.on('error', () => {})
  await Promise.all(clients.map((client) => client.connect()))
  try {
    const others = new Others()
    const order = new Order()
    const all = recording.entries.map((entry) =>
      entry.kind === 'packet'
        ? order.packet(entry, () => send(clients[entry.connection]!, entry, others))
        : order.mark(entry, () => perform(entry, watch)),
    )
    await Promise.all(all)
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
}

const perform = async (mark: Mark, watch: Watch): Promise<void> =>
  mark.kind === 'rest' ? watch.rest(mark.ms) : watch[mark.kind]()

/** What has to be over before something is done. Whoever fails makes all that come after it fail. */
class Order {
  readonly #answers = new Map<number, Promise<void>>()
  /** Of those that had been answered, all. */
  #answered: Promise<unknown> = Promise.resolve()
  #marked: Promise<unknown> = Promise.resolve()
  readonly #last = new Map<number, Promise<void>>()
  readonly #inTransaction = new Set<number>()

  mark({ open }: Entry, work: () => Promise<void>): Promise<void> {
    const done = Promise.all([this.#allBut(open), this.#marked]).then(work)
    this.#marked = done
    return done
  }

  packet({ id, open, connection, requests }: Entry & Packet, work: () => Promise<void>): Promise<void> {
    const last = this.#last.get(connection)
    // What goes on would otherwise wait for whoever waits for what it holds.
    const before = this.#inTransaction.has(connection) ? last : this.#allBut(open)
    const answer = Promise.all([before, last, this.#marked]).then(work)
    answer.catch(() => {})
    this.#answers.set(id, answer)
    this.#last.set(connection, answer)
    for (const { text } of requests)
      if (text.startsWith('begin')) this.#inTransaction.add(connection)
      else if (text === 'commit' || text === 'rollback') this.#inTransaction.delete(connection)
    return answer
  }

  #allBut(open: readonly number[]): Promise<unknown> {
    const answered = [...this.#answers].filter(([id]) => !open.includes(id))
    for (const [id] of answered) this.#answers.delete(id)
    this.#answered = Promise.all([this.#answered, ...answered.map(([, answer]) => answer)])
    this.#answered.catch(() => {})
    return this.#answered
  }
}

/**
 * Of two claims under way at once, now the one and now the other is served first, or they share what is next row by row. What was
 * asked about a run that a claim got is asked about the one that it gets now: those that wait are all alike.
 */
class Others {
  readonly #ids = new Map<string, string>()
  readonly #seqs = new Map<number, number>()
  readonly #seqsIn = new Map<string, readonly number[]>()

  learn(recorded: readonly Claimed[], now: readonly Claimed[]): void {
    for (const [index, { seq, id }] of recorded.entries()) {
      const other = now[index]
      if (other === undefined || (other.id === id && other.seq === seq)) continue
      this.#ids.set(id, other.id)
      this.#seqs.set(Number(seq), Number(other.seq))
    }
  }

  valuesOf({ text, values }: Request): readonly unknown[] | undefined {
    if (values === undefined || this.#ids.size === 0) return values
    let seqs = this.#seqsIn.get(text)
    if (seqs === undefined) this.#seqsIn.set(text, (seqs = seqsOf(text)))
    return values.map((value, index) => {
      const other = (each: unknown) =>
        seqs.includes(index) ? this.#seqs.get(each as number) : this.#ids.get(each as string)
      return Array.isArray(value) ? value.map((each: unknown) => other(each) ?? each) : (other(value) ?? value)
    })
  }
}

/** Which of the values that a statement is given are, or have, the numbers of runs. */
function seqsOf(text: string): number[] {
  const alone = [...text.matchAll(/\$(\d+)::bigint as seq\b/g)].map(([, parameter]) => Number(parameter) - 1)
  const lists = text.matchAll(/unnest\(([^)]*)\) with ordinality as given \(([^)]*)\)/g)
  const inLists = [...lists].flatMap(([, arrays = '', names = '']) => {
    const place = names.split(', ').indexOf('seq')
    return place === -1 ? [] : [Number(/\d+/.exec(arrays.split(', ')[place] ?? '')?.[0]) - 1]
  })
  return [...alone, ...inLists]
}

const isLook = (text: string) => /^select\b/i.test(text) && !/\bfor (?:no key )?(?:update|share)\b/i.test(text)

async function send(client: pg.Client, { requests }: Packet, others: Others): Promise<void> {
  const { stream } = (client as unknown as { connection: { stream: { cork(): void; uncork(): void } } }).connection
  stream.cork()
  const sent = requests.map((request) => {
    const { text, name } = request
    return client.query({ text, name, values: others.valuesOf(request) } as QueryConfig)
  })
  stream.uncork()
  const answers = await Promise.all(sent)
  for (const [index, answer] of answers.entries()) {
    const { text, rows, claimed } = requests[index]!
    // A look of its own may come sooner or later than it did; what it finds changes nothing.
    if (rowsOf(answer) !== rows && !isLook(text)) throw new AnotherWay(text, rows ?? Number.NaN, rowsOf(answer))
    if (claimed !== undefined) others.learn(claimed, claimedBy(answer))
  }
}
