import type { Clock } from '../base/clock.ts'
import { HoldfastError, describeError } from '../base/errors.ts'
import type { Randomness } from '../base/ids.ts'
import type { AgentConfig } from '../config/agent.ts'
import type { Config } from '../config/config.ts'
import type { AskModel, LanguageModel, Tool } from '../loop/ports.ts'
import { callModel } from '../model/call-model.ts'
import { openModel } from '../model/providers.ts'
import { NO_USAGE } from '../model/usage.ts'
import type { Store } from '../store/store.ts'
import { builtInTools } from '../tools/built-in.ts'
import { commandTool } from '../tools/command-tool.ts'
import type { CommandPlace } from '../tools/supervised-command.ts'
import type { OpenAgent } from './execute-agent.ts'

export interface AgentPorts {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly warn: (message: string) => void
  readonly place: CommandPlace
}

type ModelAgent = Extract<AgentConfig, { kind: 'model' }>

/** The agents of a configuration. A model is opened at its first call, so that a missing provider stops only its own agent. */
export function openAgents(config: Config & { readonly folder: string }, ports: AgentPorts): Map<string, OpenAgent> {
  const agents = new Map<string, OpenAgent>()
  for (const [name, agent] of config.agents) {
    if (agent.kind === 'model') agents.set(name, openAgent(name, agent, config, ports))
  }
  return agents
}

function openAgent(
  name: string,
  agent: ModelAgent,
  config: Config & { readonly folder: string },
  ports: AgentPorts,
): OpenAgent {
  const tools = agent.tools.map((tool) => openTool(tool, config, ports.place))
  return {
    name,
    system: agent.system,
    policy: config.policy,
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    ask: asking(agent.model, config.folder, ports),
  }
}

function asking(id: string, folder: string, ports: AgentPorts): AskModel {
  let model: LanguageModel | undefined
  return async (request, options) => {
    try {
      model ??= await openModel(id, folder, { clock: ports.clock })
    } catch (error) {
      return { kind: 'failed', code: 'model', error: describeError(error), spent: NO_USAGE }
    }
    const asked = await callModel(ports, model, request, options)
    return asked.kind === 'failed' ? { ...asked, error: describeError(asked.error) } : asked
  }
}

function openTool(name: string, config: Config, place: CommandPlace): Tool {
  const definition = config.tools.get(name)
  if (definition !== undefined) return commandTool(name, definition, place)
  const builtIn = builtInTools({ place, roots: [place.cwd] }).get(name)
  if (builtIn !== undefined) return builtIn
  throw new HoldfastError('usage/config', `the tool "${name}" is not there yet`, { remedy: 'leave it out for now' })
}
