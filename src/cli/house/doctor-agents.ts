import { resolve } from 'node:path'

import type { AgentConfig } from '../../config/agent.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { factsOf } from '../../hooks/install/client.ts'
import { resolveProgram } from '../../processes/resolve-program.ts'
import type { Finding } from '../../workers/examine/examine.ts'
import { isOlder, versionOf } from './doctor-clients.ts'

type Variables = Readonly<Record<string, string | undefined>>
type CommandAgent = Extract<AgentConfig, { kind: 'command' }>

/** Whether the programs are there that agents of the configuration are: else the first message to one would say so. */
export function examineAgents(config: LoadedConfig | undefined, variables: Variables): Promise<Finding[]> {
  const { agents, folder } = config ?? { agents: new Map<string, AgentConfig>(), folder: '.' }
  const commands = [...agents].flatMap(([name, agent]) => (agent.kind === 'command' ? [{ name, agent }] : []))
  return Promise.all(
    commands.map(({ name, agent }) => examineAgent(name, agent, resolve(folder, agent.folder ?? '.'), variables)),
  )
}

async function examineAgent(
  name: string,
  { command, client }: CommandAgent,
  cwd: string,
  variables: Variables,
): Promise<Finding> {
  const check = `agent ${name}`
  const found = resolveProgram(command[0], { cwd, path: variables['PATH'] })
  if (found.kind === 'refused') {
    const key = client === undefined ? 'command' : 'program'
    const remedy = `install it, or write where it is in "${key}" of the agent; a daemon may have another PATH than this shell`
    return { check, status: 'warn', detail: `its program is ${found.message}`, remedy }
  }
  if (client === undefined) return { check, status: 'ok', detail: found.path }
  const { title, madeFor } = factsOf(client.name)
  const { version } = await versionOf(found.path, variables)
  const detail = `${title} ${version ?? 'of a version that it does not say'}, ${found.path}`
  if (version === undefined || !isOlder(version, madeFor)) return { check, status: 'ok', detail }
  const older = `${detail}: older than ${madeFor}, whose output we know`
  return { check, status: 'warn', detail: older, remedy: `update ${client.name}` }
}
