import { resolve } from 'node:path'

import { describeError, invariant } from '../../base/errors.ts'
import type { Connection } from './connection.ts'
import type { McpServerDefinition } from './definition.ts'
import { endLeftovers } from './leftovers.ts'
import { ServerPool } from './server-pool.ts'
import type { PoolOptions } from './server-pool.ts'

export type McpServersOptions = Omit<PoolOptions, 'where'> & {
  readonly definitions: ReadonlyMap<string, McpServerDefinition>
  readonly warn: (message: string) => void
}

/** The MCP servers of the configuration, as far as this process uses them. Nothing is started before it is needed. */
export class McpServers {
  readonly #options: McpServersOptions
  readonly #pools = new Map<string, ServerPool>()
  /** The last look for what others left; one after the other, so that two do not meet in a folder. */
  #swept: Promise<void> | undefined

  constructor(options: McpServersOptions) {
    this.#options = options
  }

  definition(server: string): McpServerDefinition {
    const definition = this.#options.definitions.get(server)
    invariant(definition !== undefined, `there is no MCP server ${server}`)
    return definition
  }

  /** Which server this is: what a person approves is done by this command in this folder, or at this address, and by no other. */
  whichOne(server: string): unknown {
    const definition = this.definition(server)
    if (definition.kind === 'http') return { url: definition.url }
    const { command, cwd = '.' } = definition
    return { command, folder: resolve(this.#options.place.cwd, cwd) }
  }

  /** Each run is a user of its own. */
  async use<T>(
    server: string,
    user: string,
    signal: AbortSignal,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    await (this.#swept ?? this.endLeftovers())
    return this.#pool(server).use(user, signal, work)
  }

  succeeded(server: string): void {
    this.#pool(server).succeeded()
  }

  /**
   * Ends what others left when they and their supervisors were killed. Before the first use, and whenever a call is recovered: its
   * worker may have died since, and its server would go on with it.
   */
  endLeftovers(): Promise<void> {
    const { folder, warn } = this.#options
    const look = () => endLeftovers(folder)
    this.#swept = (this.#swept === undefined ? look() : this.#swept.then(look)).then(
      (count) => (count === 0 ? undefined : warn(`ended ${count} MCP servers that a killed process had left behind`)),
      (error: unknown) => warn(`what MCP servers left behind could not be looked at: ${describeError(error)}`),
    )
    return this.#swept
  }

  /** Resolves when every process of every server is dead. */
  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()))
  }

  #pool(server: string): ServerPool {
    const known = this.#pools.get(server)
    if (known !== undefined) return known
    const { definitions: _, warn: __, ...rest } = this.#options
    const pool = new ServerPool(server, this.definition(server), { ...rest, where: `mcpServers.${server}` })
    this.#pools.set(server, pool)
    return pool
  }
}
