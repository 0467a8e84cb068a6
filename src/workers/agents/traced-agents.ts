import type { Telemetry } from '../../telemetry/telemetry.ts'
import type { AnyAgent } from './execute-agent.ts'

export function tracedAgents(
  telemetry: Telemetry,
  agents: ReadonlyMap<string, AnyAgent>,
): ReadonlyMap<string, AnyAgent> {
  return new Map([...agents].map(([name, agent]) => [name, tracedAgent(telemetry, agent)]))
}

/** The same agent, and whatever it asks and uses is told of. What a command does inside is its own to tell. */
function tracedAgent(telemetry: Telemetry, agent: AnyAgent): AnyAgent {
  if ('command' in agent) return agent
  if ('body' in agent) return { ...agent, body: telemetry.body(agent.name, agent.body), watch: telemetry }
  const { name, model, ask, tools, toolsIn, foreignTools } = agent
  return {
    ...agent,
    // Our own for webhooks has no model: what it says costs nothing and asks nobody.
    ...(model === undefined ? {} : { ask: telemetry.ask(name, model, ask) }),
    tools: telemetry.tools(tools),
    ...(toolsIn === undefined ? {} : { toolsIn: (folder) => telemetry.tools(toolsIn(folder)) }),
    ...(foreignTools === undefined
      ? {}
      : { foreignTools: async (run, signal) => telemetry.tools(await foreignTools(run, signal)) }),
  }
}
