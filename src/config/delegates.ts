import type { AgentConfig } from './agent.ts'
import { suggest } from './problem.ts'
import type { Complain } from './problem.ts'

/** Those that an agent may delegate to must be there, and must not lead back to it: that would end only at the limit. */
export function checkDelegates(
  agents: ReadonlyMap<string, AgentConfig>,
  names: readonly string[],
  complain: Complain,
): void {
  for (const [name, agent] of agents) {
    for (const [index, child] of delegatesOf(agent).entries()) {
      const path = ['agents', name, 'delegates', index]
      if (!names.includes(child))
        complain(path, `names the agent "${child}", which does not exist`, suggest(child, names))
      const way = wayBack(agents, child, name)
      if (way === undefined) continue
      complain(path, `goes in a circle: ${[name, ...way].join(' → ')}`, 'leave one of these out')
    }
  }
}

const delegatesOf = (agent: AgentConfig | undefined): readonly string[] =>
  agent?.kind === 'model' ? (agent.delegates ?? []) : []

function wayBack(
  agents: ReadonlyMap<string, AgentConfig>,
  from: string,
  to: string,
  seen: ReadonlySet<string> = new Set(),
): readonly string[] | undefined {
  if (from === to) return [to]
  if (seen.has(from)) return undefined
  for (const next of delegatesOf(agents.get(from))) {
    const way = wayBack(agents, next, to, new Set([...seen, from]))
    if (way !== undefined) return [from, ...way]
  }
  return undefined
}
