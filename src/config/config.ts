import type { PolicyRule } from '../actions/policy.ts'
import type { HoldfastError } from '../base/errors.ts'
import { JsonSyntaxError, lineAndColumn } from '../base/json-tree.ts'
import type { ModelPrice } from '../loop/ports.ts'
import type { ChannelConfig } from '../notify/open.ts'
import { expandToolName, toolsNamed } from '../tools/built-in-names.ts'
import type { McpServerDefinition } from '../tools/mcp/definition.ts'
import { readSelection } from '../tools/mcp/definition.ts'
import { modelToolName, serverPrefix } from '../tools/mcp/names.ts'
import { readAgent } from './agent.ts'
import { readHttpConfig } from './http.ts'
import type { HttpConfig } from './http.ts'
import type { AgentConfig } from './agent.ts'
import { withDefinedTools } from './defined.ts'
import { checkDelegates } from './delegates.ts'
import { parseJsonText } from './json-text.ts'
import { checkPrefixes, readMcpServer } from './mcp.ts'
import { readChannel } from './notify.ts'
import { checkNames, readRule } from './policy.ts'
import { configError } from './problem.ts'
import type { Complain, Problem, Source } from './problem.ts'
import { readCount, readDuration, readList, readNamed, readRecord } from './read.ts'
import { readPrice } from './limits.ts'
import type { Declared } from '../secrets/gather.ts'
import { readRetention } from './retention.ts'
import type { RetentionConfig } from './retention.ts'
import { readSecret } from './secrets.ts'
import { readWake } from './wake.ts'
import { readTelemetry } from './telemetry.ts'
import type { TelemetrySettings } from '../telemetry/wanted.ts'
import { readWebhookSecret } from './webhooks.ts'
import { readTool } from './tool.ts'
import type { ToolConfig } from './tool.ts'

/** What `holdfast.config.json` or `.ts` says, with every default filled in and every group of tools taken apart. */
export interface Config {
  readonly agents: ReadonlyMap<string, AgentConfig>
  readonly tools: ReadonlyMap<string, ToolConfig>
  readonly mcpServers: ReadonlyMap<string, McpServerDefinition>
  /** In the order of the file. */
  readonly policy: readonly PolicyRule[]
  /** By the name of the model; they come before the list prices that are built in. */
  readonly prices?: ReadonlyMap<string, ModelPrice>
  readonly http?: HttpConfig
  /** The user's own way to wake an idle session: by its client, `*` for all others. */
  readonly wake?: ReadonlyMap<string, readonly [string, ...string[]]>
  /** How people outside are told what needs them. */
  readonly notify?: readonly ChannelConfig[]
  /** How long what is over is kept. */
  readonly retention?: RetentionConfig
  /** Secrets by their names, and where their values are. */
  readonly secrets?: ReadonlyMap<string, Declared>
  /** What the webhooks of schedules are signed with: `${NAME}` of a variable. */
  readonly webhookSecret?: string
  /** How long a person has to answer whether an action may be done. */
  readonly approvalMs?: number
  readonly leaseMs?: number
  /** What is told to OpenTelemetry; undefined: what the environment says. */
  readonly telemetry?: TelemetrySettings | false
  readonly capacity: CapacityConfig
  readonly backlog?: number
}

export interface CapacityConfig {
  readonly total?: number
  readonly eachAgent?: number
  readonly perAgent: Readonly<Record<string, number>>
}

export const EMPTY_CONFIG: Config = {
  agents: new Map(),
  tools: new Map(),
  mcpServers: new Map(),
  policy: [],
  capacity: { perAgent: {} },
}

/** Reads the text of a configuration. `name` is what errors call the file. */
export function parseConfig(text: string, name: string): Config {
  try {
    const { value, offsets } = parseJsonText(text)
    return readConfig(value, name, { text, offsets })
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw syntaxError(text, name, error)
    throw error
  }
}

function syntaxError(text: string, name: string, { message, offset }: JsonSyntaxError): HoldfastError {
  const { line, column } = lineAndColumn(text, offset)
  const problem: Problem = { path: [], what: `is not JSON: ${message}`, remedy: 'mend the text there' }
  return configError(`${name}:${line}:${column}`, [problem], undefined)
}

/** Reads a configuration that is a value already, as that of a TypeScript module. Throws all that is wrong at once. */
export function readConfig(value: unknown, name: string, source?: Source): Config {
  const problems: Problem[] = []
  const complain: Complain = (path, what, remedy) => void problems.push({ path, what, remedy })
  const config = readRoot(withDefinedTools(value, complain), complain)
  if (problems.length > 0) throw configError(name, problems, source)
  return config
}

function readRoot(value: unknown, complain: Complain): Config {
  const root = readRecord(
    value,
    [
      'agents',
      'tools',
      'mcpServers',
      'policy',
      'prices',
      'http',
      'wake',
      'notify',
      'webhooks',
      'secrets',
      'approvals',
      'retention',
      'lease',
      'telemetry',
      'capacity',
    ],
    [],
    complain,
  )
  const tools = readNamed(root['tools'] ?? {}, ['tools'], complain, readTool)
  const mcpServers = readNamed(root['mcpServers'] ?? {}, ['mcpServers'], complain, readMcpServer)
  const agents = readNamed(root['agents'] ?? {}, ['agents'], complain, readAgent)
  const policy = readList(root['policy'] ?? [], ['policy'], complain, readRule)
  const prices = readNamed(root['prices'] ?? {}, ['prices'], complain, readPrice)
  const http = root['http'] === undefined ? undefined : readHttpConfig(root['http'], ['http'], complain)
  const wake = root['wake'] === undefined ? undefined : readWake(root['wake'], ['wake'], complain)
  const notify = readList(root['notify'] ?? [], ['notify'], complain, readChannel)
  const secrets = readNamed(root['secrets'] ?? {}, ['secrets'], complain, readSecret)
  const webhooks = root['webhooks']
  const webhookSecret = webhooks === undefined ? undefined : readWebhookSecret(webhooks, ['webhooks'], complain)
  const approvalMs = root['approvals'] === undefined ? undefined : readApprovals(root['approvals'], complain)
  const retention = root['retention'] === undefined ? undefined : readRetention(root['retention'], complain)
  const leaseMs = root['lease'] === undefined ? undefined : readDuration(root['lease'], ['lease'], complain)
  const telemetry =
    root['telemetry'] === undefined ? undefined : readTelemetry(root['telemetry'], ['telemetry'], complain)
  // Names are looked up in what was written, so that a tool with a mistake in it is not also said to be missing.
  const [agentNames, toolNames, servers] = [keys(root['agents']), keys(root['tools']), keys(root['mcpServers'])]
  checkNames({ agents, policy, agentNames, toolNames, servers }, complain)
  checkDelegates(agents, agentNames, complain)
  checkPrefixes(servers, toolNames, complain)
  return {
    agents: new Map([...agents].map(([name, agent]) => [name, withTools(agent)])),
    tools,
    mcpServers,
    policy: policy.flatMap(perTool),
    ...(prices.size === 0 ? {} : { prices }),
    ...(http === undefined ? {} : { http }),
    ...(wake === undefined ? {} : { wake }),
    ...(notify.length === 0 ? {} : { notify }),
    ...(secrets.size === 0 ? {} : { secrets }),
    ...(webhookSecret === undefined ? {} : { webhookSecret }),
    ...(approvalMs === undefined ? {} : { approvalMs }),
    ...(retention === undefined ? {} : { retention }),
    ...(leaseMs === undefined ? {} : { leaseMs }),
    ...(telemetry === undefined ? {} : { telemetry }),
    ...readCapacity(root['capacity'] ?? {}, complain),
  }
}

const keys = (value: unknown): string[] =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : []

const withTools = (agent: AgentConfig): AgentConfig =>
  agent.kind === 'model' ? { ...agent, tools: [...new Set(agent.tools.flatMap(toolsNamed))] } : agent

function perTool(rule: PolicyRule): PolicyRule[] {
  if (rule.tool === undefined) return [rule]
  const mcp = readSelection(rule.tool)
  if (mcp === undefined) return expandToolName(rule.tool).map((tool) => ({ ...rule, tool }))
  const tool = mcp.tool === undefined ? `${serverPrefix(mcp.server)}*` : modelToolName(mcp.server, mcp.tool)
  return [{ ...rule, tool }]
}

function readApprovals(value: unknown, complain: Complain): number | undefined {
  const { expire } = readRecord(value, ['expire'], ['approvals'], complain)
  return expire === undefined ? undefined : readDuration(expire, ['approvals', 'expire'], complain)
}

function readCapacity(value: unknown, complain: Complain): Pick<Config, 'capacity' | 'backlog'> {
  const path = ['capacity']
  const written = readRecord(value, ['total', 'eachAgent', 'perAgent', 'backlog'], path, complain)
  const count = (key: string) =>
    written[key] === undefined ? undefined : readCount(written[key], [...path, key], complain)
  const [total, eachAgent, backlog] = [count('total'), count('eachAgent'), count('backlog')]
  const perAgent = readNamed(written['perAgent'] ?? {}, [...path, 'perAgent'], complain, readCount)
  return {
    ...(backlog === undefined ? {} : { backlog }),
    capacity: {
      ...(total === undefined ? {} : { total }),
      ...(eachAgent === undefined ? {} : { eachAgent }),
      perAgent: Object.fromEntries(perAgent),
    },
  }
}
