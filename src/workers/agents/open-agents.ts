import { resolve } from 'node:path'

import type { Clock } from '../../base/clock.ts'
import { HoldfastError } from '../../base/errors.ts'
import type { Randomness } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import type { AgentConfig } from '../../config/agent.ts'
import type { Config } from '../../config/config.ts'
import { PRESETS } from '../../clients/preset.ts'
import { nameOfModel } from '../../define/model.ts'
import { isDefinedTool, openDefinedTool } from '../../define/defined-tool.ts'
import type { Tool } from '../../loop/ports.ts'
import { contextTokensOf } from '../../model/prices.ts'
import type { Store } from '../../store/store.ts'
import { builtInTools } from '../../tools/built-in.ts'
import { commandTool } from '../../tools/command-tool.ts'
import { delegateTool } from '../../tools/delegate.ts'
import { readSelection } from '../../tools/mcp/definition.ts'
import { acceptedMcpTool, openMcpTools } from '../../tools/mcp/open-tools.ts'
import type { McpServers } from '../../tools/mcp/servers.ts'
import { followupTools } from '../../tools/schedule-followup.ts'
import { manageJobsTool } from '../../tools/schedule-jobs.ts'
import type { CommandPlace } from '../../tools/supervised-command.ts'
import type { WorkspaceRequest } from '../../workspace/workspace.ts'
import { askModel } from './ask-model.ts'
import { openClient } from './client-agent.ts'
import { agentVariables } from './command-agent.ts'
import type { CommandAgent } from './command-agent.ts'
import type { AnyAgent, OpenAgent } from './execute-agent.ts'
import { openFunction } from '../functions/open-function.ts'
import { openOwnAgent } from '../functions/own-agent.ts'

export interface AgentPorts {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly warn: (message: string) => void
  readonly place: CommandPlace
  readonly servers: McpServers
  /** Runs that may wait; what is beyond is refused. */
  readonly backlog?: number
}

type ModelAgent = Extract<AgentConfig, { kind: 'model' }>

function openCommand(
  name: string,
  agent: Extract<AgentConfig, { kind: 'command' }>,
  { folder, prices }: Config & { readonly folder: string },
  { place }: AgentPorts,
): CommandAgent {
  const { client } = agent
  const variables = client === undefined ? [] : PRESETS[client.name].variables
  return {
    name,
    command: agent.command,
    cwd: resolve(folder, agent.folder ?? '.'),
    env: agentVariables(place.env, [...variables, ...agent.env]),
    ...(client === undefined ? {} : { client: openClient(client, prices) }),
    ...filesOf(agent, folder),
    ...(agent.timeoutMs === undefined ? {} : { timeoutMs: agent.timeoutMs }),
  }
}

/** The repository that its runs work in, wherever this process was started. */
const filesOf = ({ workspace }: AgentConfig, folder: string): { readonly workspace?: WorkspaceRequest } =>
  workspace === undefined ? {} : { workspace: { ...workspace, root: resolve(folder, workspace.root) } }

/** Those of a configuration, and our own. */
export function openAllAgents(config: Config & { readonly folder: string }, ports: AgentPorts): Map<string, AnyAgent> {
  const own = openOwnAgent(config, ports)
  return openAgents(config, ports).set(own.name, own)
}

/** The agents of a configuration. */
export function openAgents(config: Config & { readonly folder: string }, ports: AgentPorts): Map<string, AnyAgent> {
  const agents = new Map<string, AnyAgent>()
  for (const [name, agent] of config.agents) {
    agents.set(name, openOne(name, agent, config, ports))
  }
  return agents
}

function openOne(
  name: string,
  agent: AgentConfig,
  config: Config & { readonly folder: string },
  ports: AgentPorts,
): AnyAgent {
  if (agent.kind === 'function') return openFunction(name, agent, config)
  return agent.kind === 'model' ? openAgent(name, agent, config, ports) : openCommand(name, agent, config, ports)
}

function openAgent(
  name: string,
  agent: ModelAgent,
  config: Config & { readonly folder: string },
  ports: AgentPorts,
): OpenAgent {
  const own = agent.tools.filter((tool) => readSelection(tool) === undefined)
  const toolsAt = (place: CommandPlace) => {
    const inside = { ...ports, place }
    // What a job starts it starts later, when that folder may be gone.
    const tools = own.map((tool) => openTool(tool, name, agent, config, tool === 'manage_jobs' ? ports : inside))
    return new Map(tools.map((tool) => [tool.name, tool]))
  }
  return {
    name,
    model: modelName(agent),
    system: agent.system,
    policy: config.policy,
    tools: toolsAt(ports.place),
    toolsIn: (cwd) => toolsAt({ ...ports.place, cwd, known: `a tree of its run, for ${ports.place.cwd}` }),
    ...openForeign(agent, ports),
    ask: askModel(agent, config, ports),
    contextTokens: agent.contextTokens ?? contextTokensOf(modelName(agent)),
    ...filesOf(agent, config.folder),
    ...(agent.limits === undefined ? {} : { limits: agent.limits }),
    ...(agent.doubt === undefined ? {} : { doubts: agent.doubt }),
    ...(config.approvalMs === undefined ? {} : { approvalMs: config.approvalMs }),
  }
}

/** Those of MCP servers, which have to be asked first. */
function openForeign(agent: ModelAgent, ports: AgentPorts): Pick<OpenAgent, 'foreignTools' | 'acceptedTool'> {
  const selections = agent.tools.flatMap((tool) => readSelection(tool) ?? [])
  if (selections.length === 0) return {}
  return {
    foreignTools: (run, signal) => openMcpTools(selections, ports, run, signal),
    acceptedTool: (tool) => acceptedMcpTool(selections, tool, ports),
  }
}

const modelName = ({ model }: ModelAgent) => (typeof model === 'string' ? model : nameOfModel(model))

function openTool(name: string, agentName: string, agent: ModelAgent, config: Config, ports: AgentPorts): Tool {
  if (name === 'delegate') return openDelegate(agentName, agent, config, ports)
  if (name === 'manage_jobs') return openJobs(agentName, agent, config, ports)
  const followup = followupTools({ ...ports, agent: agentName }).find((tool) => tool.name === name)
  return followup ?? openOwnTool(name, config, ports)
}

/** A job starts no more than its agent can start itself. */
function openJobs(name: string, agent: ModelAgent, config: Config, { store, clock, place }: AgentPorts): Tool {
  return manageJobsTool({
    store,
    clock,
    place,
    agent: name,
    agents: agent.tools.includes('delegate') ? delegatesOf(name, agent, config) : [],
    commands: agent.tools.includes('shell'),
  })
}

const delegatesOf = (name: string, { delegates }: ModelAgent, { agents }: Config): readonly string[] =>
  delegates ?? [...agents.keys()].filter((other) => other !== name)

function openDelegate(name: string, agent: ModelAgent, config: Config, { store, place, backlog }: AgentPorts): Tool {
  return delegateTool({
    store,
    place,
    agents: delegatesOf(name, agent, config),
    commands: agent.tools.includes('shell'),
    limits: { depth: LIMITS.delegationDepth, children: LIMITS.children },
    backlogLimit: backlog ?? LIMITS.backlog,
  })
}

function openOwnTool(name: string, config: Config, { place, warn }: AgentPorts): Tool {
  const definition = config.tools.get(name)
  if (isDefinedTool(definition)) return openDefinedTool(definition, { warn })
  if (definition !== undefined) return commandTool(name, definition, place)
  const builtIn = builtInTools({ place, roots: [place.cwd], http: config.http ?? {} }).get(name)
  // What a person approves is done in this folder and in no other.
  if (builtIn !== undefined) return { ...builtIn, definition: { folder: place.known ?? place.cwd } }
  throw new HoldfastError('usage/config', `the tool "${name}" is not there yet`, { remedy: 'leave it out for now' })
}
