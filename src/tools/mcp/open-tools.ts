import { HoldfastError, describeError } from '../../base/errors.ts'
import type { Tool } from '../../loop/ports.ts'
import type { Store } from '../../store/store.ts'
import type { ServerTool } from './connection.ts'
import type { McpSelection } from './definition.ts'
import { MCP_LIMITS } from './limits.ts'
import { modelToolName } from './names.ts'
import { isPinned, pinsOf, pinTools, seen } from './pins.ts'
import type { Pin, Seen } from './pins.ts'
import type { McpServers } from './servers.ts'
import { changedSentence, effectOf, mcpTool } from './tool.ts'

export interface McpPorts {
  readonly servers: McpServers
  readonly store: Store
  readonly warn: (message: string) => void
}

/**
 * The tools that an agent was given of MCP servers, asked for when a run begins. A server that cannot be reached is an
 * error: an agent that silently lost some of its tools would do something else than it was told to.
 */
export async function openMcpTools(
  selections: readonly McpSelection[],
  ports: McpPorts,
  run: RunOfTools,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Tool>> {
  const names = [...new Set(selections.map(({ server }) => server))]
  const perServer = await Promise.all(
    names.map(async (server) => {
      const wanted = selections.filter((each) => each.server === server).map(({ tool }) => tool)
      return selectTools(server, wanted, await pinnedTools(server, ports, run, signal), ports)
    }),
  )
  return new Map(perServer.flat().map((tool) => [tool.name, tool]))
}

/** A tool by the name that models have for it, as it was accepted: for whoever checks a call and performs nothing. */
export async function acceptedMcpTool(
  selections: readonly McpSelection[],
  name: string,
  ports: McpPorts,
): Promise<Tool | undefined> {
  for (const { server, tool: only } of selections) {
    const named = (await ports.store.read(pinsOf, server)).find(
      ({ tool }) => modelToolName(server, tool) === name && (only === undefined || only === tool),
    )
    const [accepted] = asAccepted(named === undefined ? [] : [named]).offered
    if (accepted !== undefined) return mcpTool({ server, ...accepted }, ports.servers)
  }
  return undefined
}

/** Whose tools they are. `resumed`: it had begun before. */
export interface RunOfTools {
  readonly id: string
  readonly resumed: boolean
}

interface Known {
  readonly offered: readonly Seen[]
  readonly pins: ReadonlyMap<string, Pin>
}

async function pinnedTools(server: string, ports: McpPorts, run: RunOfTools, signal: AbortSignal): Promise<Known> {
  const { servers, store, warn } = ports
  const [known, pins] = [await store.read(isPinned, server), await store.read(pinsOf, server)]
  let listed: readonly ServerTool[]
  try {
    listed = await servers.use(server, run.id, signal, (connection) =>
      connection.listing(true).catch((error: unknown) => cannotList(server, error)),
    )
  } catch (error) {
    // What was under way has to be settled all the same; a call that needs the server will say that it is not there.
    if (known === undefined || !(run.resumed || signal.aborted)) throw error
    return asAccepted(pins)
  }
  const offered = readable(server, listed, warn)
  if (known !== undefined && offered.every((each) => isSettled(each, pins))) return { offered, pins: byName(pins) }
  const pinned = await store.apply(pinTools, server, offered)
  if (pinned.kind === 'first') {
    const names = pinned.tools.length === 0 ? 'it has no tools' : pinned.tools.join(', ')
    warn(`the MCP server "${server}" is used for the first time; its tools are accepted as they are now: ${names}`)
  } else {
    for (const tool of pinned.offered) warn(changedSentence(server, tool))
  }
  return { offered, pins: byName(await store.read(pinsOf, server)) }
}

function asAccepted(pins: readonly Pin[]): Known {
  const offered = pins.flatMap(({ definition, digest }) =>
    definition === null || digest === null ? [] : [{ definition, digest }],
  )
  return { offered, pins: byName(pins) }
}

const byName = (pins: readonly Pin[]) => new Map(pins.map((pin) => [pin.tool, pin]))

/** Nothing to be written down: it is as it was accepted, or waits for a person already. */
function isSettled({ definition, digest }: Seen, pins: readonly Pin[]): boolean {
  const pin = pins.find(({ tool }) => tool === definition.name)
  return pin !== undefined && (pin.offeredDigest ?? pin.digest) === digest
}

function cannotList(server: string, cause: unknown): never {
  throw new HoldfastError(
    'tools/mcp-unavailable',
    `the MCP server "${server}" does not list its tools: ${describeError(cause)}`,
    {
      remedy: 'look at what the server prints',
      retry: { afterMs: MCP_LIMITS.firstWaitMs },
      cause,
    },
  )
}

/** What cannot be hashed, stored or shown is not taken. */
function readable(server: string, listed: readonly ServerTool[], warn: McpPorts['warn']): Seen[] {
  if (listed.length > MCP_LIMITS.tools) {
    warn(
      `the MCP server "${server}" has ${listed.length} tools; those after the first ${MCP_LIMITS.tools} are left out`,
    )
  }
  return listed.slice(0, MCP_LIMITS.tools).flatMap((tool) => {
    const left = (why: string) => {
      warn(`the tool "${tool.name}" of the MCP server "${server}" is left out: ${why}`)
      return []
    }
    try {
      const one = seen(tool)
      const size = Buffer.byteLength(JSON.stringify(one.definition))
      return size > MCP_LIMITS.definitionBytes ? left(`its definition has ${size} bytes`) : [one]
    } catch (error) {
      return left(describeError(error))
    }
  })
}

function selectTools(server: string, wanted: readonly (string | undefined)[], known: Known, ports: McpPorts): Tool[] {
  const names = wanted.includes(undefined) ? known.offered.map(({ definition }) => definition.name) : []
  const explicit = wanted.filter((name) => name !== undefined)
  return [...new Set([...names, ...explicit])].flatMap((name) => {
    const now = known.offered.find(({ definition }) => definition.name === name)
    const pin = known.pins.get(name)
    if (now === undefined) return noSuchTool(server, name, known)
    if (pin?.digest === now.digest) return [acceptedTool(server, now, ports)]
    if (pin?.digest != null && pin.definition !== null) {
      const before = { definition: pin.definition, digest: pin.digest }
      return [refusing(acceptedTool(server, before, ports), changedSentence(server, name))]
    }
    // New since the server was first used: not a word of it is shown to a model before a person has seen it.
    return explicit.includes(name) ? [unseen(server, name, now, ports)] : []
  })
}

function acceptedTool(server: string, { definition, digest }: Seen, { servers, warn }: McpPorts): Tool {
  if (effectOf(definition, servers.definition(server)).tightened) {
    warn(
      `"${definition.name}" of the MCP server "${server}" is configured as a read, but the server says that it changes something: it is treated as a write`,
    )
  }
  return mcpTool({ server, definition, digest }, servers)
}

const refusing = (tool: Tool, why: string): Tool => ({
  ...tool,
  validate: (input) => ({ input }),
  perform: () => Promise.resolve({ kind: 'failed', error: why, unbegun: true }),
})

function unseen(server: string, name: string, { digest }: Seen, ports: McpPorts): Tool {
  const definition = {
    name,
    description: 'It cannot be used yet: a person has to accept it first.',
    inputSchema: { type: 'object' },
  }
  return {
    ...refusing(mcpTool({ server, definition, digest }, ports.servers), changedSentence(server, name)),
    name: modelToolName(server, name),
  }
}

function noSuchTool(server: string, name: string, { offered }: Known): never {
  const there = offered.map(({ definition }) => definition.name).join(', ')
  throw new HoldfastError('tools/mcp-no-tool', `the MCP server "${server}" has no tool "${name}"`, {
    remedy: there === '' ? 'it has none at all' : `it has: ${there}`,
  })
}
