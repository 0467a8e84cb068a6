import { expect, test } from 'vitest'
import { judge } from '../actions/policy.ts'
import { describeError } from '../base/errors.ts'
import { parseConfig, readConfig } from './config.ts'

const AGENT = { model: 'scripted:./r.json', tools: ['mcp:files', 'mcp:remote/search'] }
const FILES = { command: 'node', args: ['server.mjs', ''], env: { TOKEN: '${TOKEN}' }, cwd: 'sub' }
const REMOTE = { type: 'http', url: 'https://example.com/mcp', headers: { Authorization: 'Bearer ${KEY}' } }

const wrong = (mcpServers: unknown, more: object = {}): string => {
  try {
    parseConfig(JSON.stringify({ mcpServers, ...more }, null, 1), 'c.json')
  } catch (error) {
    return describeError(error)
  }
  throw new Error('nothing was wrong')
}

test('servers are read in the form that people know, with what an operator may add', () => {
  const rules = {
    timeout: '1m',
    effects: { read_file: 'read' },
    repeat: { write_file: 'each' },
    once: { mkdir: { per: 'agent', within: '24h' } },
    identity: { write_file: ['path'] },
    idempotent: ['mkdir'],
  }
  const config = readConfig(
    { agents: { a: AGENT }, mcpServers: { files: { ...FILES, ...rules }, remote: REMOTE } },
    'c.ts',
  )
  expect(config.mcpServers.get('files')).toEqual({
    kind: 'stdio',
    command: ['node', 'server.mjs', ''],
    env: FILES.env,
    cwd: 'sub',
    ...rules,
    once: { mkdir: { per: 'agent', withinMs: 86_400_000 } },
    timeout: undefined,
    timeoutMs: 60_000,
  })
  expect(config.mcpServers.get('remote')).toMatchObject({ kind: 'http', url: REMOTE.url, headers: REMOTE.headers })
  expect(config.agents.get('a')).toMatchObject({ tools: AGENT.tools })
})

test.each([
  [{ files: {} }, 'c.json:3:3: "mcpServers.files" has neither "command" nor "url"'],
  [{ files: { command: 'x', url: 'https://e' } }, '"mcpServers.files.command" is for a server that is a command'],
  [{ files: { url: 'file:///etc' } }, '"mcpServers.files.url" is not an address; write it as'],
  [{ files: { url: `https://${'K'.repeat(70_000)}.test/` } }, '"mcpServers.files.url" is not an address; write it as'],
  [{ files: { command: 'x', arg: [] } }, '"mcpServers.files.arg" is not a setting; did you mean "args"?'],
  [{ files: { command: 'x', env: { A: 1 } } }, '"mcpServers.files.env.A" must be a text'],
  [{ files: { command: 'x', effects: { a: 'reads' } } }, '"mcpServers.files.effects.a" must be "read" or "write"'],
  [{ files: { type: 'sse', url: 'https://e/' } }, '"mcpServers.files.type" must be "stdio" or "http"'],
  [
    { files: { command: 'x', effects: { a: 'read' }, once: { a: { per: 'agent', within: '1d' } } } },
    '"mcpServers.files.once.a" is for writes with "repeat": "once"',
  ],
  [
    { files: { command: 'x', once: { a: { per: 'world', within: '1d' } } } },
    '"mcpServers.files.once.a.per" must be "thread" or "agent"',
  ],
  [{ a__b: FILES }, '"mcpServers.a__b" cannot be the name of an MCP server'],
  [{ a_: FILES }, '"mcpServers.a_" cannot be the name of an MCP server'],
])('what is wrong with a server is said, with its place', (servers, sentence) => {
  expect(wrong(servers)).toContain(sentence)
})

test('a server that is named and not there is an error, in agents and in rules', () => {
  const agents = { a: { model: 'scripted:./r.json', tools: ['mcp:filse', 'mcp:flies/read'] } }
  const said = wrong({ files: FILES }, { agents, policy: [{ tool: 'mcp:fils', decision: 'deny' }] })
  expect(said).toContain('names the tool "mcp:filse", which does not exist; did you mean "mcp:files"?')
  expect(said).toContain('names the tool "mcp:flies/read", which does not exist')
  expect(said).toContain('names the tool "mcp:fils", which does not exist')
})

test('a tool of the configuration cannot stand in for one of a server', () => {
  const tools = { files__read: { effect: 'read', description: 'd', command: ['x'] } }
  expect(wrong({ files: FILES }, { tools })).toContain('begins like the tools of the MCP server "files"')
})

test('a rule for a server is one for all of its tools, one for a tool only for that', () => {
  const policy = [
    { tool: 'mcp:files', decision: 'deny' },
    { tool: 'mcp:remote/search.all', decision: 'deny' },
  ]
  const config = readConfig({ mcpServers: { files: FILES, remote: REMOTE }, policy }, 'c.ts')
  const decide = (tool: string) => judge(config.policy, { tool, effect: 'write', agent: 'a' }).kind
  expect(['files__a', 'files__b', 'remote__a', 'files_a'].map(decide)).toEqual(['deny', 'deny', 'ask', 'ask'])
  expect(config.policy[1]?.tool).toMatch(/^remote__search_all_[0-9a-f]{8}$/)
})
