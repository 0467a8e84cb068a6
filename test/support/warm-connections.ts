/* oxlint-disable eslint/no-underscore-dangle -- the driver's own names. */
import pg from 'pg'
import type { PoolConfig } from 'pg'

/**
 * A connection that is new costs PostgreSQL 20 ms until it knows the tables, and most tests are over in less. So those of a
 * store that was closed are kept, and given to the next store on the same schema.
 */
let parked: readonly WarmClient[] = []

/** Of each worker: the server has 200 connections for all of them, and for every process that they start. */
const MOST_PARKED = 24

/** What a store is opened with: the driver, except that its connections outlive its pools. */
export const warmDriver = (schema: string) => ({
  Client: pg.Client,
  Pool: class extends pg.Pool {
    constructor(options: PoolConfig) {
      // A constructor may hand out another object than its own.
      function Parked(given: PoolConfig): WarmClient {
        return takeParked(schema) ?? new WarmClient(given, schema)
      }
      super({ ...options, Client: Parked as unknown as typeof pg.Client })
    }
  },
})

/** The oldest first: so the same one reads in every store on a schema, and knows what is read. */
function takeParked(schema: string): WarmClient | undefined {
  const [oldest] = parked.filter((client) => client.schema === schema).toSorted((a, b) => a.age - b.age)
  parked = parked.filter((client) => client !== oldest)
  return oldest
}

function park(client: WarmClient): void {
  const [unused, kept] = [parked.slice(0, -MOST_PARKED), parked.slice(-MOST_PARKED)]
  parked = [...kept, client]
  for (const each of unused) each.part()
}

/** Before the schema is dropped: nobody will ask for them any more. */
export function letGo(schema: string): void {
  const gone = parked.filter((client) => client.schema === schema)
  parked = parked.filter((client) => client.schema !== schema)
  for (const client of gone) client.part()
}

/** A statement has the same name in every store, so that a connection which knows it can be anybody's. */
const names = new Map<string, string>()

/** Some of what the driver keeps to itself: whether everything that was sent is answered. */
interface Inside {
  readonly _queryable: boolean
  readonly _ending: boolean
  readonly _txStatus: string | null
  readonly _queryQueue: readonly unknown[]
  readonly _sentQueryQueue: readonly unknown[]
  _getActiveQuery(): unknown
  ref(): void
  unref(): void
}

let made = 0

type Callback = (error?: Error) => void

class WarmClient extends pg.Client {
  readonly schema: string
  readonly age = ++made
  #isWarm = false

  constructor(options: PoolConfig, schema: string) {
    super(options)
    this.schema = schema
  }

  override connect(): Promise<never>
  override connect(callback: Callback): never
  override connect(callback?: Callback): unknown {
    if (!this.#isWarm) return super.connect(callback!)
    ;(this as unknown as Inside).ref()
    return process.nextTick(() => callback?.())
  }

  override query(...[request, ...rest]: unknown[]): never {
    return (super.query as (...args: unknown[]) => never).call(this, named(request), ...rest)
  }

  /** What is in the middle of something ends as it would: its transaction, its locks. */
  override end(): Promise<void>
  override end(callback: Callback): void
  override end(callback?: Callback): unknown {
    if (!this.#isIdle()) return super.end(callback!)
    this.#isWarm = true
    this.removeAllListeners()
    this.on('error', () => this.#forget())
    this.on('end', () => this.#forget())
    ;(this as unknown as Inside).unref()
    park(this)
    return callback === undefined ? Promise.resolve() : process.nextTick(callback)
  }

  part(): void {
    super.end().catch(() => {})
  }

  #isIdle(): boolean {
    const inside = this as unknown as Inside
    const sent = inside._queryQueue.length + inside._sentQueryQueue.length
    return inside._queryable && !inside._ending && inside._txStatus === 'I' && sent === 0 && !inside._getActiveQuery()
  }

  #forget(): void {
    parked = parked.filter((client) => client !== this)
  }
}

function named(request: unknown): unknown {
  if (typeof request !== 'object' || request === null || !('name' in request) || !('text' in request)) return request
  const text = String(request.text)
  if (!names.has(text)) names.set(text, `warm_${names.size + 1}`)
  return { ...request, name: names.get(text) }
}
