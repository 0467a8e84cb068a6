import type { Clock } from '../../base/clock.ts'
import { describeError, HoldfastError } from '../../base/errors.ts'
import type { Opening } from './client.ts'
import type { Connection } from './connection.ts'
import type { McpServerDefinition } from './definition.ts'
import { openHttp } from './http-connection.ts'
import { MCP_LIMITS } from './limits.ts'
import { openStdio, ServerEnded } from './stdio-connection.ts'

interface Instance {
  readonly connection: Promise<Connection>
  /** Once it is. */
  open?: Connection
  /** Ends it even while it is being started. */
  end(why: string): Promise<void>
  /** How many calls of which run are under way on it. */
  readonly users: Map<string, number>
  lastUser: string
  cancelIdle: () => void
}

export type PoolOptions = Omit<Opening, 'signal' | 'legacy'>

/**
 * The processes of one stdio server, or the one connection to an address. A process is started when it is needed and
 * used again by whoever comes next; but two runs never have calls on one process at the same time, because a call that
 * is cancelled may take the process with it. So there are never more of them than runs at once.
 */
export class ServerPool {
  readonly #name: string
  readonly #definition: McpServerDefinition
  readonly #options: PoolOptions
  readonly #instances = new Set<Instance>()
  #legacy = false
  #failures = 0
  #notBefore = 0
  #lastFailure = ''
  #closed = false

  constructor(name: string, definition: McpServerDefinition, options: PoolOptions) {
    this.#name = name
    this.#definition = definition
    this.#options = options
  }

  get #clock(): Clock {
    return this.#options.clock
  }

  /** Lets `work` use a connection that no other run uses. Rejects with `tools/mcp-unavailable` when there is none to be had. */
  async use<T>(user: string, signal: AbortSignal, work: (connection: Connection) => Promise<T>): Promise<T> {
    const instance = this.#choose(user) ?? this.#start()
    this.#take(instance, user)
    try {
      return await work(await this.#ready(instance, signal))
    } finally {
      this.#release(instance, user)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#instances].map((instance) => instance.end('this process ends')))
  }

  /** A call went through: whatever was wrong with it before is over. */
  succeeded(): void {
    this.#failures = 0
    this.#notBefore = 0
  }

  #choose(user: string): Instance | undefined {
    const all = [...this.#instances].filter(({ open }) => open?.usable !== false)
    if (this.#definition.kind === 'http') return all[0]
    const idle = all.filter(({ users }) => users.size === 0)
    return all.find(({ users }) => users.has(user)) ?? idle.find(({ lastUser }) => lastUser === user) ?? idle[0]
  }

  #start(): Instance {
    if (this.#closed) throw this.#unavailable('this process is about to end')
    const wait = this.#notBefore - this.#clock.monotonicMs()
    if (wait > 0) throw this.#unavailable(`it has failed ${this.#failures} times in a row; ${this.#lastFailure}`, wait)
    const stop = new AbortController()
    const connection = this.#open(stop.signal)
    const instance: Instance = {
      connection,
      users: new Map(),
      lastUser: '',
      cancelIdle: () => {},
      async end(why) {
        stop.abort()
        await connection.then((open) => open.end(why)).catch(() => {})
      },
    }
    this.#instances.add(instance)
    void this.#watch(instance)
    return instance
  }

  async #open(signal: AbortSignal): Promise<Connection> {
    const opening = { ...this.#options, signal, legacy: this.#legacy }
    try {
      return await this.#openAs(opening)
    } catch (error) {
      // Some servers of the older kind end when they hear a greeting that they do not know.
      if (opening.legacy || signal.aborted || !(error instanceof ServerEnded)) throw error
      const connection = await this.#openAs({ ...opening, legacy: true }).catch(() => Promise.reject(error))
      this.#legacy = true
      return connection
    }
  }

  #openAs(opening: Opening): Promise<Connection> {
    return this.#definition.kind === 'http' ? openHttp(this.#definition, opening) : openStdio(this.#definition, opening)
  }

  /** From its start to its end; one that ends without having been told to counts against the server. */
  async #watch(instance: Instance): Promise<void> {
    try {
      instance.open = await instance.connection
      const { why, told } = await instance.open.ended
      if (!told) this.#failed(why)
    } catch (error) {
      this.#failed(describeError(error))
    } finally {
      instance.cancelIdle()
      this.#instances.delete(instance)
    }
  }

  #failed(why: string): void {
    this.#failures += 1
    this.#lastFailure = why
    // The first time it may be started again at once.
    const waitMs = this.#failures < 2 ? 0 : MCP_LIMITS.firstWaitMs * 2 ** (this.#failures - 2)
    this.#notBefore = this.#clock.monotonicMs() + Math.min(waitMs, MCP_LIMITS.longestWaitMs)
  }

  async #ready(instance: Instance, signal: AbortSignal): Promise<Connection> {
    const aborted = Promise.withResolvers<'aborted'>()
    const onAbort = () => aborted.resolve('aborted')
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    try {
      const ready = await Promise.race([instance.connection, aborted.promise])
      if (ready !== 'aborted') return ready
    } catch (error) {
      throw this.#unavailable(describeError(error), undefined, error)
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
    // Nobody else waits for it: what is being started is ended before the cancel is called done.
    if (instance.users.size === 1) await instance.end('nobody waits for it any more')
    throw this.#unavailable('nobody waits for it any more')
  }

  #take(instance: Instance, user: string): void {
    instance.cancelIdle()
    instance.users.set(user, (instance.users.get(user) ?? 0) + 1)
    instance.lastUser = user
  }

  #release(instance: Instance, user: string): void {
    const left = (instance.users.get(user) ?? 1) - 1
    if (left > 0) instance.users.set(user, left)
    else instance.users.delete(user)
    if (instance.users.size > 0 || !this.#instances.has(instance)) return
    if (instance.open?.usable === false) return void instance.end('it is of no use any more')
    instance.cancelIdle = this.#clock.after(
      MCP_LIMITS.idleMs,
      () => void instance.end('nobody has used it for a while'),
    )
  }

  #unavailable(why: string, afterMs: number = MCP_LIMITS.firstWaitMs, cause?: unknown): HoldfastError {
    return new HoldfastError('tools/mcp-unavailable', `the MCP server "${this.#name}" cannot be used: ${why}`, {
      remedy: `check "${this.#options.where}" in the configuration, and what the server needs`,
      retry: { afterMs: Math.ceil(afterMs) },
      ...(cause === undefined ? {} : { cause }),
    })
  }
}
