import type { Clock } from '../base/clock.ts'
import type { Randomness } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Tool } from '../loop/ports.ts'
import { openChannels, openSigner } from '../notify/open.ts'
import type { Store } from '../store/store.ts'
import { McpServers } from '../tools/mcp/servers.ts'
import type { AnyAgent, LiveEvent } from './execute-agent.ts'
import { homePaths, readWindowUrl } from './home.ts'
import type { AgentPorts } from './open-agents.ts'
import { openOwnAgent } from './own-agent.ts'
import { registerThisProcess } from './worker.ts'
import type { Worker, WorkerOptions } from './worker.ts'

export interface CrewOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly warn: (message: string) => void
  readonly live: (event: LiveEvent) => void
  readonly home: string
  readonly config: LoadedConfig | undefined
  readonly leaseMs: number
  readonly backlog: number
  /** The variables from which tools get the harmless ones. */
  readonly env: Readonly<Record<string, string>>
}

export type OwnWorkerOptions = Pick<WorkerOptions, 'concurrency'> &
  Partial<Pick<WorkerOptions, 'foreground' | 'graceMs' | 'replaySpool' | 'calls' | 'onEnd'>>

/** Who carries runs out in this process, and with what. */
export interface Crew {
  toolsOf(agent: string): ReadonlyMap<string, Tool> | undefined
  toolOf(agent: string, tool: string): Promise<Tool | undefined>
  registerWorker(kind: WorkerOptions['kind'], own: OwnWorkerOptions): Promise<Worker>
  close(): Promise<void>
}

export async function openCrew(options: CrewOptions): Promise<Crew> {
  const { store, clock, random, warn, live, home, config, leaseMs, backlog, env } = options
  const place = { cwd: config?.folder ?? home, env, codeCache: homePaths(home).codeCache }
  const definitions = config?.mcpServers ?? new Map<string, never>()
  const servers = new McpServers({ definitions, clock, random, warn, place, folder: homePaths(home).mcpServers })
  const agents = await openAgents(config, { store, clock, random, warn, place, backlog, servers })
  return {
    ...toolsIn(agents),
    registerWorker: (kind, own) => {
      if (kind === 'daemon') void servers.endLeftovers()
      return registerThisProcess({
        store,
        clock,
        random,
        warn,
        live,
        home,
        kind,
        leaseMs,
        agents,
        limits: config?.capacity ?? {},
        graceMs: LIMITS.graceMs,
        workspaces: { env },
        ...(kind === 'daemon' ? asDaemon(options) : {}),
        ...(config?.occurrencesKeptMs === undefined ? {} : { occurrencesKeptMs: config.occurrencesKeptMs }),
        ...own,
      })
    },
    close: () => servers.close(),
  }
}

/** Where none is configured there is but our own, and the code of the others is not loaded. */
async function openAgents(config: LoadedConfig | undefined, ports: AgentPorts): Promise<ReadonlyMap<string, AnyAgent>> {
  if (config !== undefined && config.agents.size > 0)
    return (await import('./open-agents.ts')).openAllAgents(config, ports)
  const own = openOwnAgent(config, ports)
  return new Map([[own.name, own]])
}

function asDaemon({ config, clock, env, home }: CrewOptions): Pick<WorkerOptions, 'wakes' | 'notifies'> {
  openSigner(config?.webhookSecret, clock, env)
  return {
    wakes: { commands: config?.wake ?? new Map<string, never>(), env },
    notifies: { channels: openChannels(config?.notify ?? [], clock, env), window: () => readWindowUrl(home) },
  }
}

function toolsIn(agents: ReadonlyMap<string, AnyAgent>): Pick<Crew, 'toolsOf' | 'toolOf'> {
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
