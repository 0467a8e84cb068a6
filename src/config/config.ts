import type { HoldfastError } from '../base/errors.ts'
import { expandToolName } from '../tools/built-in-names.ts'
import type { CommandToolDefinition } from '../tools/command-tool.ts'
import { readAgent } from './agent.ts'
import type { AgentConfig } from './agent.ts'
import { JsonSyntaxError, lineAndColumn, parseJsonText } from './json-text.ts'
import { checkNames, readRule } from './policy.ts'
import type { PolicyRule } from './policy.ts'
import { configError } from './problem.ts'
import type { Complain, Problem, Source } from './problem.ts'
import { readCount, readDuration, readList, readNamed, readRecord } from './read.ts'
import { readTool } from './tool.ts'

/** What `holdfast.config.json` or `.ts` says, with every default filled in and every group of tools taken apart. */
export interface Config {
  readonly agents: ReadonlyMap<string, AgentConfig>
  readonly tools: ReadonlyMap<string, CommandToolDefinition>
  /** In the order of the file. */
  readonly policy: readonly PolicyRule[]
  readonly leaseMs?: number
  readonly capacity: CapacityConfig
  readonly backlog?: number
}

export interface CapacityConfig {
  readonly total?: number
  readonly eachAgent?: number
  readonly perAgent: Readonly<Record<string, number>>
}

export const EMPTY_CONFIG: Config = { agents: new Map(), tools: new Map(), policy: [], capacity: { perAgent: {} } }

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
  const config = readRoot(value, (path, what, remedy) => void problems.push({ path, what, remedy }))
  if (problems.length > 0) throw configError(name, problems, source)
  return config
}

function readRoot(value: unknown, complain: Complain): Config {
  const root = readRecord(value, ['agents', 'tools', 'policy', 'lease', 'capacity'], [], complain)
  const tools = readNamed(root['tools'] ?? {}, ['tools'], complain, readTool)
  const agents = readNamed(root['agents'] ?? {}, ['agents'], complain, readAgent)
  const policy = readList(root['policy'] ?? [], ['policy'], complain, readRule)
  const leaseMs = root['lease'] === undefined ? undefined : readDuration(root['lease'], ['lease'], complain)
  // Names are looked up in what was written, so that a tool with a mistake in it is not also said to be missing.
  checkNames({ agents, policy, agentNames: keys(root['agents']), toolNames: keys(root['tools']) }, complain)
  return {
    agents: new Map([...agents].map(([name, agent]) => [name, withTools(agent)])),
    tools,
    policy: policy.flatMap(perTool),
    ...(leaseMs === undefined ? {} : { leaseMs }),
    ...readCapacity(root['capacity'] ?? {}, complain),
  }
}

const keys = (value: unknown): string[] =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : []

const withTools = (agent: AgentConfig): AgentConfig =>
  agent.kind === 'model' ? { ...agent, tools: [...new Set(agent.tools.flatMap(expandToolName))] } : agent

function perTool(rule: PolicyRule): PolicyRule[] {
  return rule.tool === undefined ? [rule] : expandToolName(rule.tool).map((tool) => ({ ...rule, tool }))
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
