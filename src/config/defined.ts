import { isDefinedTool } from '../define/defined-tool.ts'
import type { DefinedTool } from '../define/defined-tool.ts'
import type { Complain } from './problem.ts'
import type { JsonRecord } from './read.ts'

/*
 * A TypeScript configuration, and a program, may hold tools that are functions where a JSON one has their names. Here
 * they get their place in `tools`, so that what follows reads one form.
 */

const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function withDefinedTools(value: unknown, complain: Complain): unknown {
  if (!isRecord(value) || !isRecord(value['agents'])) return value
  const found = new Map<string, DefinedTool>()
  const agents = Object.entries(value['agents']).map(([name, agent]) => [name, byName(name, agent, found, complain)])
  const written = isRecord(value['tools']) ? value['tools'] : {}
  for (const [name, tool] of found) {
    if (Object.hasOwn(written, name) && written[name] !== tool) complainTwice(name, complain)
  }
  if (found.size === 0) return { ...value, agents: Object.fromEntries(agents) }
  return { ...value, agents: Object.fromEntries(agents), tools: { ...Object.fromEntries(found), ...written } }
}

const complainTwice = (name: string, complain: Complain) =>
  complain(['tools', name], 'is the name of two different tools', 'rename one of them')

function byName(name: string, agent: unknown, found: Map<string, DefinedTool>, complain: Complain): unknown {
  if (!isRecord(agent)) return agent
  const { name: own, ...rest } = agent
  if (own !== undefined && own !== name) {
    complain(['agents', name, 'name'], `is ${JSON.stringify(own)}`, `leave it out, or write "${name}"`)
  }
  if (!Array.isArray(agent['tools'])) return rest
  const tools = agent['tools'].map((tool: unknown) => {
    if (!isDefinedTool(tool)) return tool
    if (found.has(tool.name) && found.get(tool.name) !== tool) complainTwice(tool.name, complain)
    found.set(tool.name, tool)
    return tool.name
  })
  return { ...rest, tools }
}
