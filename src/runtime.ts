import { systemClock } from './base/clock.ts'
import type { Clock } from './base/clock.ts'
import { describeError } from './base/errors.ts'
import { ensureFolder } from './base/files.ts'
import { systemRandomness } from './base/ids.ts'
import type { Randomness } from './base/ids.ts'
import { LIMITS } from './base/limits.ts'
import type { LoadedConfig } from './config/load.ts'
import type { Tool } from './loop/ports.ts'
import type { AnyAgent, LiveEvent } from './workers/execute-agent.ts'
import { homePaths, readWindowUrl } from './workers/home.ts'
import { openChannels, openSigner } from './notify/open.ts'
import { openAllAgents } from './workers/open-agents.ts'
import { refuseOlderBackup, rememberSeen } from './workers/restored.ts'
import { isOwnAgent } from './workers/webhook-agent.ts'
import { registerThisProcess } from './workers/worker.ts'
import type { Worker, WorkerOptions } from './workers/worker.ts'
import { McpServers } from './tools/mcp/servers.ts'
import { openStore } from './store/open.ts'
import type { Store } from './store/store.ts'

export interface RuntimeOptions {
  /** The folder for everything outside the database, and by default for the database too. */
  readonly home: string
  /** `sqlite:PATH`; by default a file in the home folder. */
  readonly store?: string
  /** Agents, tools, policy, and how much at once; as `holdfast.config.json` has it. */
  readonly config?: LoadedConfig
  /** The variables from which tools get the harmless ones. */
  readonly environment?: Readonly<Record<string, string>>
  /** Goes on with a database that was restored from an older backup. */
  readonly acceptRestore?: boolean
  /** Hears of what went wrong in the background and will be tried again. */
  readonly warn?: (message: string) => void
}

export interface Runtime {
  readonly home: string
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly leaseMs: number
  readonly backlog: number
  /** The names of the agents that this process can be. */
  readonly agents: readonly string[]
  /** What was configured, for whoever explains it. */
  readonly config: LoadedConfig | undefined
  /** An agent's own tools; those of MCP servers are known only once the servers were asked. */
  toolsOf(agent: string): ReadonlyMap<string, Tool> | undefined
  /** One tool of an agent; of an MCP server as a person has accepted it. */
  toolOf(agent: string, tool: string): Promise<Tool | undefined>
  /** Makes this process a worker of the given kind. */
  registerWorker(kind: WorkerOptions['kind'], own: OwnWorkerOptions): Promise<Worker>
  /** Tells what the agents of this process say and do, as it happens; the store has what must not be missed. */
  watch(listener: (event: LiveEvent) => void): () => void
  close(): Promise<void>
}

export type OwnWorkerOptions = Pick<WorkerOptions, 'concurrency'> &
  Partial<Pick<WorkerOptions, 'foreground' | 'graceMs' | 'replaySpool'>>

export type { LiveEvent }

/** The only wiring: a home folder, a store, and the ports to the world. */
export async function createRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { home, config, warn = () => {} } = options
  const { leaseMs = LIMITS.leaseMs, backlog = LIMITS.backlog, capacity: limits = {} } = config ?? {}
  const [clock, random] = [systemClock, systemRandomness]
  await ensureFolder(home)
  const store = await openStore(options.store ?? `sqlite:${homePaths(home).database}`, { clock, random })
  try {
    await refuseOlderBackup(home, store, random, options.acceptRestore === true)
  } catch (error) {
    await store.close()
    throw error
  }
  const place = { cwd: config?.folder ?? home, env: options.environment ?? {}, codeCache: homePaths(home).codeCache }
  const definitions = config?.mcpServers ?? new Map<string, never>()
  const servers = new McpServers({ definitions, clock, random, warn, place, folder: homePaths(home).mcpServers })
  const ports = { store, clock, random, warn, place, backlog, servers }
  const agents = openAllAgents(config, ports)
  const wakes = { commands: config?.wake ?? new Map<string, never>(), env: place.env }
  const notifies = () => {
    openSigner(config?.webhookSecret, clock, place.env)
    return { channels: openChannels(config?.notify ?? [], clock, place.env), window: () => readWindowUrl(home) }
  }
  const watchers = new Set<(event: LiveEvent) => void>()
  const live = (event: LiveEvent) => {
    for (const watcher of watchers) watcher(event)
  }
  return {
    home,
    store,
    clock,
    random,
    leaseMs,
    backlog,
    agents: [...agents.keys()].filter((name) => !isOwnAgent(name)),
    config,
    ...toolsIn(agents),
    registerWorker: (kind, own) => {
      if (kind === 'daemon') void servers.endLeftovers()
      return registerThisProcess({
        store,
        clock,
        random,
        home,
        kind,
        leaseMs,
        limits,
        warn,
        agents,
        live,
        graceMs: LIMITS.graceMs,
        ...(kind === 'daemon' ? { wakes, notifies: notifies() } : {}),
        ...(config?.occurrencesKeptMs === undefined ? {} : { occurrencesKeptMs: config.occurrencesKeptMs }),
        ...own,
      })
    },
    watch(listener) {
      watchers.add(listener)
      return () => watchers.delete(listener)
    },
    async close() {
      await servers.close()
      await rememberSeen(home, store).catch((error: unknown) => warn(describeError(error)))
      await store.close()
    },
  }
}

const toolsIn = (agents: ReadonlyMap<string, AnyAgent>): Pick<Runtime, 'toolsOf' | 'toolOf'> => {
  const withTools = (name: string) => {
    const agent = agents.get(name)
    return agent !== undefined && 'tools' in agent ? agent : undefined
  }
  return {
    toolsOf: (name) => withTools(name)?.tools,
    toolOf: async (name, tool) => {
      const agent = withTools(name)
      return agent?.tools.get(tool) ?? agent?.acceptedTool?.(tool)
    },
  }
}
