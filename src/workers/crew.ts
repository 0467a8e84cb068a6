import type { Clock } from '../base/clock.ts'
import type { Randomness } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Tool } from '../loop/ports.ts'
import type { Run } from '../runs/run.ts'
import type { Store } from '../store/store.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { isWanted } from '../telemetry/wanted.ts'
import type { McpServers } from '../tools/mcp/servers.ts'
import type { AnyAgent, LiveEvent } from './agents/execute-agent.ts'
import { homePaths, readWindowUrl } from './home.ts'
import type { AgentPorts } from './agents/open-agents.ts'
import { isFunction, openFunction } from './functions/open-function.ts'
import { openOwnAgent } from './functions/own-agent.ts'
import { tracedAgents } from './agents/traced-agents.ts'
import { registerThisProcess } from './register.ts'
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

/** In a workspace its agent has other tools: what is done in a tree is not what is done outside of it. */
export type Whose = Pick<Run, 'agent' | 'workspace'>

/** Who carries runs out in this process, and with what. */
export interface Crew {
  toolsOf(agent: string): ReadonlyMap<string, Tool> | undefined
  toolOf(run: Whose, tool: string): Promise<Tool | undefined>
  registerWorker(kind: WorkerOptions['kind'], own: OwnWorkerOptions): Promise<Worker>
  close(): Promise<void>
}

export async function openCrew(options: CrewOptions): Promise<Crew> {
  const { store, clock, random, warn, live, home, config, leaseMs, backlog, env } = options
  const place = { cwd: config?.folder ?? home, env, codeCache: homePaths(home).codeCache }
  let servers: McpServers | undefined
  const openServers = async () => {
    const mcp = await import('../tools/mcp/servers.ts')
    const definitions = config?.mcpServers ?? new Map<string, never>()
    servers ??= new mcp.McpServers({ definitions, clock, random, warn, place, folder: homePaths(home).mcpServers })
    return servers
  }
  const telemetry = await openTelemetry(options)
  const opened = await openAgents(config, { store, clock, random, warn, place, backlog }, openServers)
  const agents = telemetry === undefined ? opened : tracedAgents(telemetry, opened)
  return {
    ...toolsIn(agents, place.cwd),
    registerWorker: async (kind, own) => {
      if (kind === 'daemon') void (await openServers()).endLeftovers()
      return registerThisProcess({
        store,
        clock,
        random,
        warn,
        live: telemetry === undefined ? live : (event) => (telemetry.heard(event), live(event)),
        home,
        kind,
        ...(telemetry === undefined ? {} : { telemetry }),
        leaseMs,
        agents,
        limits: config?.capacity ?? {},
        graceMs: LIMITS.graceMs,
        workspaces: { env },
        ...(kind === 'daemon' ? await asDaemon(options) : {}),
        ...(config?.retention?.occurrencesKeptMs === undefined
          ? {}
          : { occurrencesKeptMs: config.retention.occurrencesKeptMs }),
        ...own,
      })
    },
    async close() {
      await servers?.close()
      await telemetry?.close()
    },
  }
}

/** Its code, and the package that it needs, are loaded where somebody wants it. */
async function openTelemetry(options: CrewOptions): Promise<Telemetry | undefined> {
  const { config, env, home } = options
  if (!isWanted(config?.telemetry, env)) return undefined
  const telemetry = await import('../telemetry/telemetry.ts')
  return telemetry.openTelemetry({ ...options, settings: config?.telemetry, folder: config?.folder ?? home })
}

/** Where there are but functions, or none, the code of the others is not loaded. */
async function openAgents(
  config: LoadedConfig | undefined,
  ports: Omit<AgentPorts, 'servers'>,
  openServers: () => Promise<McpServers>,
): Promise<ReadonlyMap<string, AnyAgent>> {
  const functions = openFunctions(config)
  if (config !== undefined && functions.length < config.agents.size)
    return (await import('./agents/open-agents.ts')).openAllAgents(config, { ...ports, servers: await openServers() })
  return new Map([...functions, openOwnAgent(config, ports)].map((agent) => [agent.name, agent]))
}

const openFunctions = (config: LoadedConfig | undefined): AnyAgent[] =>
  [...(config?.agents ?? [])].flatMap(([name, agent]) => (isFunction(agent) ? openFunction(name, agent, config!) : []))

async function asDaemon(options: CrewOptions): Promise<Pick<WorkerOptions, 'wakes' | 'notifies' | 'keeper'>> {
  const [{ openChannels, openSigner }, { Keeper, forgetting }] = await Promise.all([
    import('../notify/open.ts'),
    import('./history/keeper.ts'),
  ])
  const { config, clock, env, home } = options
  const forgets = forgetting(config)
  openSigner(config?.webhookSecret, clock, env)
  return {
    wakes: { commands: config?.wake ?? new Map<string, never>(), env },
    notifies: { channels: openChannels(config?.notify ?? [], clock, env), window: () => readWindowUrl(home) },
    ...(forgets === undefined ? {} : { keeper: new Keeper({ ...options, ...forgets }) }),
  }
}

function toolsIn(agents: ReadonlyMap<string, AnyAgent>, folder: string): Pick<Crew, 'toolsOf' | 'toolOf'> {
  const withTools = (name: string) => {
    const agent = agents.get(name)
    return agent !== undefined && 'tools' in agent ? agent : undefined
  }
  return {
    toolsOf: (name) => withTools(name)?.tools,
    toolOf: async ({ agent: name, workspace }, tool) => {
      const agent = withTools(name)
      const inTree = workspace === 'transaction' ? agent?.toolsIn?.(folder) : undefined
      return (inTree ?? agent?.tools)?.get(tool) ?? agent?.acceptedTool?.(tool)
    },
  }
}
