import type { OnceWindow } from '../../actions/window.ts'

/** An MCP server as the configuration has it; the address comes from the operator, what it says does not. */
export type McpServerDefinition = McpServerRules & (StdioServer | HttpServer)

export interface StdioServer {
  readonly kind: 'stdio'
  readonly command: readonly [string, ...string[]]
  /** Values may refer to variables of this process as `${NAME}`. */
  readonly env: Readonly<Record<string, string>>
  /** Relative to the folder of the configuration. */
  readonly cwd?: string
}

export interface HttpServer {
  readonly kind: 'http'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** What the operator says about the tools, each by the name that the server gives it. */
export interface McpServerRules {
  readonly timeoutMs: number
  readonly effects: Readonly<Record<string, 'read' | 'write'>>
  readonly repeat: Readonly<Record<string, 'once' | 'each'>>
  /** Widens `once` beyond one run. */
  readonly once: Readonly<Record<string, OnceWindow>>
  /** The arguments that make two calls the same action. */
  readonly identity: Readonly<Record<string, readonly string[]>>
  /** A second call with the same arguments has no second effect; nobody but the operator can say so. */
  readonly idempotent: readonly string[]
}

/** One tool of a server, or all of them: `mcp:files/read_file`, `mcp:files`. */
export interface McpSelection {
  readonly server: string
  readonly tool?: string
}

const SELECTION = /^mcp:([^/]+)(?:\/(.+))?$/

export function readSelection(name: string): McpSelection | undefined {
  const [, server, tool] = SELECTION.exec(name) ?? []
  if (server === undefined) return undefined
  return tool === undefined ? { server } : { server, tool }
}
