import type { PolicyRule } from '../actions/policy.ts'
import { NAMES_IN_CONFIG, WEBHOOK_TOOL } from '../tools/built-in-names.ts'
import { readSelection } from '../tools/mcp/definition.ts'
import type { AgentConfig } from './agent.ts'
import { suggest } from './problem.ts'
import type { Complain } from './problem.ts'
import { readPredicate } from './predicate.ts'
import { readList, readOneOf, readRecord, readText } from './read.ts'
import type { Reader } from './read.ts'

const EFFECTS = ['read', 'write'] as const
const DECISIONS = ['allow', 'deny', 'ask'] as const

export const readRule: Reader<PolicyRule> = (value, path, complain) => {
  const rule = readRecord(value, ['tool', 'effect', 'agent', 'thread', 'where', 'decision'], path, complain)
  const optional = <T>(key: string, read: Reader<T>) =>
    rule[key] === undefined ? undefined : read(rule[key], [...path, key], complain)
  const [tool, agent, thread] = [optional('tool', readText), optional('agent', readText), optional('thread', readText)]
  const effect = optional('effect', readOneOf(EFFECTS))
  const where = optional('where', readConditions)
  const decision = readOneOf(DECISIONS)(rule['decision'], [...path, 'decision'], complain)
  return {
    ...(tool === undefined ? {} : { tool }),
    ...(effect === undefined ? {} : { effect }),
    ...(agent === undefined ? {} : { agent }),
    ...(thread === undefined ? {} : { thread }),
    ...(where === undefined ? {} : { where }),
    // Safe, and never used: without a decision the configuration is refused.
    decision: decision ?? 'deny',
  }
}

/** None would hold of everything, which is said by leaving it out. */
const readConditions: Reader<NonNullable<PolicyRule['where']>> = (value, path, complain) => {
  if (Array.isArray(value) && value.length === 0)
    return complain(path, 'has no condition in it', 'leave it out, or write [{ "argument": "path", "path": "src/**" }]')
  return readList(value, path, complain, readPredicate)
}

interface Written {
  readonly agents: ReadonlyMap<string, AgentConfig>
  readonly policy: readonly PolicyRule[]
  readonly agentNames: readonly string[]
  readonly toolNames: readonly string[]
  /** Those of MCP. */
  readonly servers: readonly string[]
}

/** Sessions of Claude Code, where its hooks ask us for leave: which tools they have, only the client knows. */
const SESSIONS = 'claude'

/** Every tool and agent that is named must be there: a rule for a name with a typing mistake would protect nothing. */
export function checkNames({ agents, policy, agentNames, toolNames, servers }: Written, complain: Complain): void {
  const tools = [...toolNames, ...NAMES_IN_CONFIG, ...servers.map((server) => `mcp:${server}`)]
  for (const name of agentNames.filter((each) => each.startsWith('holdfast:')))
    complain(['agents', name], 'has a name of ours', 'leave out "holdfast:"')
  for (const [name, agent] of agents) {
    if (agent.kind !== 'model') continue
    for (const [index, tool] of agent.tools.entries()) {
      if (tools.includes(tool) || isOfServer(tool, servers)) continue
      complain(['agents', name, 'tools', index], `names the tool "${tool}", which does not exist`, suggest(tool, tools))
    }
  }
  // A loop inside of a function has tools that only the function knows.
  const functions = [...agents].flatMap(([name, { kind }]) => (kind === 'function' ? [name] : []))
  const mayHaveAny = (agent: string | undefined) =>
    agent === undefined ? functions.length > 0 : functions.includes(agent)
  for (const [index, { tool, agent }] of policy.entries()) {
    const at = (key: string) => ['policy', index, key]
    if (agent === SESSIONS && !agentNames.includes(agent)) continue
    const isKnown = tool === undefined || tool === WEBHOOK_TOOL || mayHaveAny(agent)
    if (!isKnown && !tools.includes(tool) && !isOfServer(tool, servers)) {
      complain(at('tool'), `names the tool "${tool}", which does not exist`, suggest(tool, tools))
    }
    if (agent !== undefined && !agentNames.includes(agent)) {
      complain(at('agent'), `names the agent "${agent}", which does not exist`, suggest(agent, agentNames))
    }
  }
}

/** Which tools an MCP server has is known when it runs; that it is one of ours, now. */
const isOfServer = (tool: string, servers: readonly string[]) =>
  readSelection(tool)?.tool !== undefined && servers.includes(readSelection(tool)?.server ?? '')
