import { TOOL_LIMITS } from '../tools/limits.ts'
import type { McpServerDefinition, McpServerRules } from '../tools/mcp/definition.ts'
import { SERVER_NAME, serverPrefix } from '../tools/mcp/names.ts'
import type { Path } from './json-text.ts'
import { readOnce } from './once.ts'
import type { Complain } from './problem.ts'
import { readDuration, readList, readNamed, readOneOf, readRecord, readText } from './read.ts'
import type { JsonRecord, Reader } from './read.ts'

/* `mcpServers`, in the form that people know from other programs, and what an operator may say beyond it. */

const STDIO_KEYS = ['command', 'args', 'env', 'cwd']
const HTTP_KEYS = ['url', 'headers']
const RULES = ['timeout', 'effects', 'repeat', 'once', 'identity', 'idempotent']

export const readMcpServer: Reader<McpServerDefinition> = (value, path, complain) => {
  if (!SERVER_NAME.test(String(path.at(-1)))) {
    const remedy = 'use letters, digits, - and single _, a letter first and no _ last, 32 at most'
    complain(path, 'cannot be the name of an MCP server', remedy)
  }
  const server = readRecord(value, ['type', ...STDIO_KEYS, ...HTTP_KEYS, ...RULES], path, complain)
  const kind = kindOf(server, path, complain)
  const rules = readRules(server, path, complain)
  return kind === 'http' ? readHttp(server, rules, path, complain) : readStdio(server, rules, path, complain)
}

const TYPES: Readonly<Record<string, 'stdio' | 'http'>> = { stdio: 'stdio', http: 'http', 'streamable-http': 'http' }

function kindOf(server: JsonRecord, path: Path, complain: Complain): 'stdio' | 'http' {
  const given = typeof server['type'] === 'string' ? TYPES[server['type']] : undefined
  if (server['type'] !== undefined && given === undefined) {
    complain(
      [...path, 'type'],
      'must be "stdio" or "http"',
      'servers that speak only SSE need a newer version of theirs',
    )
  }
  const kind = given ?? (server['url'] === undefined ? 'stdio' : 'http')
  for (const key of kind === 'http' ? STDIO_KEYS : HTTP_KEYS) {
    if (server[key] === undefined) continue
    const other = kind === 'http' ? 'is for a server that is a command' : 'is for a server at an address'
    complain([...path, key], other, kind === 'http' ? 'leave it out, or "url"' : 'leave it out, or "command"')
  }
  return kind
}

function readStdio(
  server: JsonRecord,
  rules: McpServerRules,
  path: Path,
  complain: Complain,
): McpServerDefinition | undefined {
  const missing = server['command'] === undefined
  if (missing)
    return complain(path, 'has neither "command" nor "url"', 'write { "command": "node", "args": ["server.mjs"] }')
  const program = readText(server['command'], [...path, 'command'], complain)
  const args = readList(server['args'] ?? [], [...path, 'args'], complain, readArgument)
  const env = readTexts(server['env'], [...path, 'env'], complain)
  const cwd = server['cwd'] === undefined ? undefined : readText(server['cwd'], [...path, 'cwd'], complain)
  if (program === undefined) return undefined
  return { kind: 'stdio', command: [program, ...args], env, ...(cwd === undefined ? {} : { cwd }), ...rules }
}

function readHttp(
  server: JsonRecord,
  rules: McpServerRules,
  path: Path,
  complain: Complain,
): McpServerDefinition | undefined {
  const url = readUrl(server['url'], [...path, 'url'], complain)
  const headers = readTexts(server['headers'], [...path, 'headers'], complain)
  return url === undefined ? undefined : { kind: 'http', url, headers, ...rules }
}

const readUrl: Reader<string> = (value, path, complain) => {
  // Not `canParse`: of a name that is too long that says yes, and then it is none.
  const url = typeof value === 'string' ? URL.parse(value) : null
  if (url !== null && /^https?:$/.test(url.protocol)) return url.href
  return complain(path, 'is not an address', 'write it as "https://example.com/mcp"')
}

/** An empty argument or value is one too. */
const readArgument: Reader<string> = (value, path, complain) =>
  typeof value === 'string' ? value : complain(path, 'must be a text', 'write it in double quotes')

const readTexts = (value: unknown, path: Path, complain: Complain): Readonly<Record<string, string>> =>
  Object.fromEntries(readNamed(value ?? {}, path, complain, readArgument))

function readRules(server: JsonRecord, path: Path, complain: Complain): McpServerRules {
  const byTool = <T>(key: string, read: Reader<T>): Readonly<Record<string, T>> =>
    Object.fromEntries(readNamed(server[key] ?? {}, [...path, key], complain, read))
  const timeout = server['timeout']
  const [effects, repeat] = [
    byTool('effects', readOneOf(['read', 'write'])),
    byTool('repeat', readOneOf(['once', 'each'])),
  ]
  const once = byTool('once', readOnce)
  for (const tool of Object.keys(once))
    if (effects[tool] === 'read' || repeat[tool] === 'each')
      complain([...path, 'once', tool], 'is for writes with "repeat": "once"', 'leave it out')
  return {
    timeoutMs:
      (timeout === undefined ? undefined : readDuration(timeout, [...path, 'timeout'], complain)) ??
      TOOL_LIMITS.backstopMs,
    effects,
    repeat,
    once,
    identity: byTool('identity', (value, at) => readList(value, at, complain, readText)),
    idempotent: readList(server['idempotent'] ?? [], [...path, 'idempotent'], complain, readText),
  }
}

/** A command tool with the name that a server's tool gets would stand in for it, or the other way round. */
export function checkPrefixes(servers: readonly string[], tools: readonly string[], complain: Complain): void {
  for (const tool of tools) {
    const server = servers.find((name) => tool.startsWith(serverPrefix(name)))
    if (server === undefined) continue
    complain(['tools', tool], `begins like the tools of the MCP server "${server}"`, 'choose another name')
  }
}
