import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { describeError, HoldfastError } from '../base/errors.ts'
import { parseConfig, readConfig } from './config.ts'
import { loadConfig } from './load.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const LEDGER_APPEND = {
  effect: 'write',
  description: 'Append one entry',
  input: {
    type: 'object',
    properties: { entry: { type: 'string' }, note: { type: 'string' } },
    required: ['entry'],
  },
  identity: ['entry'],
  repeat: 'once',
  command: ['node', 'ledger.mjs', 'append'],
  probe: ['node', 'ledger.mjs', 'probe'],
  idempotent: false,
  timeout: '10s',
}

/** The example of the contract. */
const CONTRACT = {
  agents: {
    clerk: { model: 'scripted:./clerk.json', system: 'You keep the ledger.', tools: ['ledger_append'] },
    helper: {
      model: 'anthropic/claude-sonnet-5',
      tools: ['shell', 'files', 'http', 'delegate', 'schedule_followup', 'manage_jobs'],
    },
    coder: { command: ['claude', '-p', '{prompt}'] },
  },
  tools: { ledger_append: LEDGER_APPEND },
  policy: [
    { tool: 'ledger_append', decision: 'allow' },
    { tool: 'shell', decision: 'ask' },
  ],
}

const failure = (text: string): HoldfastError => {
  try {
    parseConfig(text, 'c.json')
  } catch (error) {
    if (error instanceof HoldfastError) return error
    throw error
  }
  throw new Error('nothing was wrong')
}

test('the example of the contract is read with its defaults filled in', () => {
  const config = parseConfig(JSON.stringify(CONTRACT), 'c.json')
  expect(config.agents.get('clerk')).toEqual({ kind: 'model', ...CONTRACT.agents.clerk })
  expect(config.agents.get('coder')).toEqual({ kind: 'command', command: ['claude', '-p', '{prompt}'], env: [] })
  const { timeout, ...rest } = LEDGER_APPEND
  expect(timeout).toBe('10s')
  expect(config.tools.get('ledger_append')).toEqual({ ...rest, timeoutMs: 10_000 })
  expect(config.policy).toEqual(CONTRACT.policy)
  expect(config).not.toHaveProperty('leaseMs')
})

test('a group of tools is taken apart, in agents and in rules', () => {
  const config = readConfig({ ...CONTRACT, policy: [{ tool: 'http', decision: 'deny' }] }, 'c.ts')
  const helper = config.agents.get('helper')
  expect(helper?.kind === 'model' && helper.tools.slice(0, 4)).toEqual([
    'shell',
    'files_read',
    'files_write',
    'files_edit',
  ])
  expect(config.policy).toEqual([
    { tool: 'http_get', decision: 'deny' },
    { tool: 'http_send', decision: 'deny' },
  ])
})

test.each(['schedule_followup', 'list_followups', 'cancel_followup'])('%s brings all that follow-ups need', (name) => {
  const agent = { model: 'scripted:./x.json', tools: [name] }
  const policy = [{ tool: name, decision: 'allow' }]
  const config = readConfig({ agents: { a: agent }, policy }, 'c.ts')
  expect(config.agents.get('a')).toMatchObject({ tools: ['schedule_followup', 'list_followups', 'cancel_followup'] })
  // A rule is about the one that it names.
  expect(config.policy).toEqual(policy)
})

test('how long the ledger keeps what was settled is a duration', () => {
  expect(readConfig({ retention: { occurrences: '30d' } }, 'c.ts')).toMatchObject({
    retention: { occurrencesKeptMs: 30 * 86_400_000 },
  })
  expect(describeError(failure('{ "retention": { "occurrences": 30 } }'))).toContain('must be a duration')
  expect(describeError(failure(`{ "retention": { "runs": "${'D'.repeat(100_000)}" } }`)).length).toBeLessThan(500)
  expect(describeError(failure('{ "retention": { "run": "1d" } }'))).toContain('"retention.run" is not a setting')
})

test('webhooks of schedules have a secret, and rules; no agent has them as a tool', () => {
  const webhooks = { secret: '${HOOK}' }
  const policy = [{ tool: 'webhook', decision: 'ask' }]
  expect(readConfig({ webhooks, policy }, 'c.ts')).toMatchObject({ webhookSecret: '${HOOK}', policy })
  expect(describeError(failure('{ "webhooks": {} }'))).toContain('"webhooks" has no "secret"')
  const agent = '{ "model": "scripted:./x.json", "tools": ["webhook"] }'
  expect(describeError(failure(`{ "agents": { "a": ${agent} } }`))).toContain('names the tool "webhook"')
  expect(describeError(failure(`{ "agents": { "holdfast:webhook": { "command": ["true"] } } }`))).toContain(
    'has a name of ours',
  )
})

test('a tool that only says the least is a write, once, for half an hour', () => {
  const least = { effect: 'write', description: 'x', command: ['true'] }
  const { tools } = readConfig({ tools: { w: least, r: { ...least, effect: 'read' } } }, 'c.ts')
  expect(tools.get('w')).toMatchObject({ repeat: 'once', idempotent: false, timeoutMs: 1_800_000 })
  expect(tools.get('r')).toMatchObject({ repeat: 'each' })
})

test('lease and capacity are read as before', () => {
  const text = '{ "lease": "2s", "capacity": { "total": 3, "eachAgent": 1, "perAgent": { "a": 2 }, "backlog": 9 } }'
  expect(parseConfig(text, 'c.json')).toMatchObject({
    leaseMs: 2_000,
    backlog: 9,
    capacity: { total: 3, eachAgent: 1, perAgent: { a: 2 } },
  })
})

test('an unknown key is named with its line and column, and what was probably meant', () => {
  const error = failure('{\n  "agents": {\n    "clerk": { "model": "a/b",\n      "tool": [] }\n  }\n}')
  expect(error.code).toBe('usage/config')
  expect(describeError(error)).toBe(
    'usage/config: c.json:4:7: "agents.clerk.tool" is not a setting; did you mean "tools"?',
  )
})

const aTool = (more: object) => JSON.stringify({ tools: { t: { ...LEDGER_APPEND, ...more } } })
const rule = (more: object) => JSON.stringify({ policy: [more] })

test.each([
  ['{ "agents": { "a": { "model": "a/b", "tools": ["shel"] } } }', '1:48: "agents.a.tools[0]" names the tool "shel"'],
  ['{ "agents": { "a": { "model": "gpt" } } }', '"agents.a.model" is not the name of a model'],
  ['{ "agents": { "a": {} } }', '1:15: "agents.a.model" is missing, and so are "client" and "command"'],
  ['{ "agents": { "a": { "command": "claude" } } }', '"agents.a.command" must be a list of a program'],
  ['{ "agents": { "a": { "command": ["x"], "model": "a/b" } } }', '"agents.a.model" is for agents with a model'],
  ['{ "tools": { "my tool": { "effect": "read", "description": "x", "command": ["x"] } } }', 'cannot be the name of a'],
  ['{ "tools": { "shell": { "effect": "read", "description": "x", "command": ["x"] } } }', 'is the name of a built-in'],
  [aTool({ effect: 'wirte' }), '"tools.t.effect" must be "read" or "write"; did you mean "write"?'],
  [aTool({ identity: ['entri'] }), 'names "entri", which is not an argument; did you mean "entry"?'],
  [aTool({ timeout: 10 }), '"tools.t.timeout" must be a duration in quotes'],
  [aTool({ timeout: '10 sec' }), '"tools.t.timeout" is not a duration'],
  [aTool({ idempotent: 'yes' }), '"tools.t.idempotent" must be true or false'],
  [aTool({ input: { type: 'array' } }), '"tools.t.input" must describe an object'],
  [aTool({ effect: { toString: 'x', valueOf: 'y' } }), 'must be "read" or "write"'],
  [aTool({ input: { type: 'object', properties: { a: { type: 'text' } } } }), 'a.type: "text" is not a type of JSON'],
  [aTool({ description: undefined }), '"tools.t.description" must be a text'],
  [rule({ tool: 'shell' }), '"policy[0].decision" must be "allow" or "deny" or "ask"'],
  [rule({ tool: 'shell', decision: 'alow' }), 'did you mean "allow"?'],
  [rule({ tool: 'file', decision: 'ask' }), 'did you mean "files"?'],
  [rule({ agent: 'a', decision: 'ask' }), 'names the agent "a", which does not exist; there are none'],
  ['{ "capacity": { "total": -1 } }', '1:17: "capacity.total" must be a whole number'],
  ['{ "lease": 15 }', '1:3: "lease" must be a duration in quotes'],
  ['[]', '1:1: it must be an object'],
])('%s is refused', (text, words) => {
  expect(describeError(failure(text))).toContain(words)
})

test.each([
  ['', '1:1: it is not JSON: the text ends too early'],
  ['{\n  "lease": "2s",\n}', '3:1: it is not JSON: the comma before is one too many'],
  ['{ "policy": [1,] }', '1:16: it is not JSON: the comma before is one too many'],
  ['{\n  // why\n  "lease": "2s" }', '2:3: it is not JSON: this file may have no comments'],
  ['{ "lease": "2s", "lease": "3s" }', '1:18: it is not JSON: the key "lease" is here a second time'],
  ['{ lease: "2s" }', '1:3: it is not JSON: a key in double quotes is missing'],
  ['{ "lease" "2s" }', 'a colon is missing after "lease"'],
  ['{ "lease": "2s }', '1:12: it is not JSON: this text is not closed'],
  ['{} {}', '1:4: it is not JSON: nothing may follow here'],
  ['{ "a": tru }', 'a value is missing here'],
  ['{ "a": "\t" }', 'a control character'],
  ['['.repeat(5_000), 'nested too deeply'],
])('%j is said to be no JSON, and where', (text, words) => {
  expect(describeError(failure(text.slice(0, 5_000)))).toContain(words)
})

test('all that is wrong is told at once', () => {
  const error = failure('{\n "leese": 1,\n "capacity": { "total": "x" }\n}')
  expect(error.message.split('\n')).toEqual([
    '2 things are wrong:',
    '  c.json:2:2: "leese" is not a setting; did you mean "lease"?',
    '  c.json:3:16: "capacity.total" must be a whole number, 0 or more; write it without quotes',
  ])
})

test('what is wrong is told in the order of the file, each with its own remedy', () => {
  const error = failure('{\n "policy": 1,\n "lease": 2,\n "agents": 3,\n "tols": {}\n}')
  expect(error.message.match(/c\.json:\d/g)).toEqual(['c.json:2', 'c.json:3', 'c.json:4', 'c.json:5'])
  expect(describeError(error)).toMatch(/did you mean "tools"\?$/)
})

test('a file that cannot be a configuration by its name is not executed', async () => {
  await expect(loadConfig(folder)).rejects.toMatchObject({ remedy: 'give a file whose name ends in .json or .ts' })
  const text = join(folder, 'config.txt')
  writeFileSync(text, '{}')
  await expect(loadConfig(text)).rejects.toMatchObject({ code: 'usage/config' })
})

test('a schema that a program tied into a knot is refused with its place', () => {
  const properties: Record<string, unknown> = {}
  const knot = { type: 'object', properties }
  properties['self'] = knot
  const tool = { effect: 'read', description: 'Reads', command: ['true'], input: knot }
  expect(() => readConfig({ tools: { look: tool } }, 'c.ts')).toThrow(
    'c.ts: "tools.look.input.properties.self" leads back into itself',
  )
})

test('a tool with a mistake in it is not also said to be missing', () => {
  const text = '{ "agents": { "a": { "model": "a/b", "tools": ["t"] } }, "tools": { "t": { "effect": "read" } } }'
  expect(failure(text).message).not.toContain('does not exist')
})

test('every way to write JSON is read as the runtime reads it', () => {
  const text = '\uFEFF{"agents":{"\\u0061 \\"b\\"":{"command":["x","é\\n"]},"__proto__":{"command":["y"]}}}'
  const { agents } = parseConfig(text, 'c.json')
  expect([...agents.keys()]).toEqual(['a "b"', '__proto__'])
  expect(agents.get('a "b"')).toEqual({ kind: 'command', command: ['x', 'é\n'], env: [] })
})

test('the user says how sessions are woken: in one way, or by client', () => {
  const wake = (value: string) => [...(parseConfig(`{ "wake": ${value} }`, 'c.json').wake ?? [])]
  expect(wake('["notify", "me"]')).toEqual([['*', ['notify', 'me']]])
  expect(wake('{ "claude": ["a"], "*": ["b"] }')).toEqual([
    ['claude', ['a']],
    ['*', ['b']],
  ])
  expect(failure('{ "wake": { "clude": ["a"] } }').message).toContain('"wake.clude" is not a setting')
  expect(failure('{ "wake": [] }').message).toContain('must be a list of a program')
})

test('a file is read by what it is: JSON with lines, TypeScript without', async () => {
  const [json, module, wrong] = ['a.json', 'a.ts', 'wrong.ts'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(json, JSON.stringify(CONTRACT))
  writeFileSync(module, `const lease: string = '3s'\nexport default { ...${readFileSync(json, 'utf8')}, lease }\n`)
  writeFileSync(wrong, `export default { leaze: '3s' }\n`)
  expect(await loadConfig(json)).toMatchObject({ folder, path: json, policy: CONTRACT.policy })
  expect(await loadConfig(module)).toMatchObject({ leaseMs: 3_000, policy: CONTRACT.policy })
  await expect(loadConfig(wrong)).rejects.toThrow(`${wrong}: "leaze" is not a setting`)
  await expect(loadConfig(join(folder, 'none.json'))).rejects.toMatchObject({ code: 'usage/config' })
  await expect(loadConfig(join(folder, 'none.ts'))).rejects.toMatchObject({ code: 'usage/config' })
})

test('rules have conditions on arguments, a thread, and approvals an end; an agent says what becomes of doubt', () => {
  const where = [
    { argument: 'path', path: 'src/**' },
    { argument: 'to.name', equals: null },
    { argument: 'n', oneOf: [1, 2] },
    { argument: 'argv', words: ['git', 'push'] },
  ]
  const asks = { tool: 'ledger_append', thread: 'diary', where, decision: 'ask' }
  const clerk = { ...CONTRACT.agents.clerk, doubt: 'tell' }
  const config = readConfig({ ...CONTRACT, agents: { clerk }, policy: [asks], approvals: { expire: '2d' } }, 'c.ts')
  expect(config.policy).toEqual([asks])
  expect(config.approvalMs).toBe(172_800_000)
  expect(config.agents.get('clerk')).toMatchObject({ doubt: 'tell' })
})

test.each([
  ['[]', '"policy[0].where" has no condition in it'],
  ['[{ "argument": "a" }]', '"policy[0].where[0]" does not say what its argument must be'],
  ['[{ "equals": 1 }]', '"policy[0].where[0].argument" must be a text'],
  ['[{ "argument": "a", "equals": 1, "prefix": "x" }]', 'cannot stand beside "equals"'],
  ['[{ "argument": "a", "equal": 1 }]', 'did you mean "equals"?'],
  ['[{ "argument": "a", "oneOf": [] }]', '"policy[0].where[0].oneOf" must not be empty'],
  ['[{ "argument": "a", "words": "git push" }]', '"policy[0].where[0].words" must be a list'],
  ['[{ "argument": "a", "path": "../**" }]', 'climbs out of its folder'],
])('a condition that would protect nothing is refused, with its line: %s', (where, words) => {
  const error = failure(`{ "policy": [\n  { "where": ${where}, "decision": "deny" }\n] }`)
  expect(describeError(error)).toContain(words)
  expect(describeError(error)).toContain('c.json:2:')
})

test('a condition of a program that is nothing is refused, not left out', () => {
  const policy = [{ where: [{ argument: 'a', equals: undefined }], decision: 'allow' }]
  expect(() => readConfig({ policy }, 'c.ts')).toThrow(/"policy\[0\]\.where\[0\]\.equals" is nothing/)
})

test('a write may be once for its thread or agent, and people are told by channels', () => {
  const once = { per: 'agent', within: '24h' }
  const { ledger_append: tool } = CONTRACT.tools
  const notify = [
    { webhook: 'https://example.org/x', secret: '${A}' },
    { ntfy: 'https://ntfy.sh/t' },
    { desktop: true },
  ]
  const config = readConfig({ ...CONTRACT, tools: { ledger_append: { ...tool, once } }, notify }, 'c.ts')
  expect(config.tools.get('ledger_append')).toMatchObject({ once: { per: 'agent', withinMs: 86_400_000 } })
  expect(config.notify).toEqual([
    { kind: 'webhook', url: 'https://example.org/x', secret: '${A}' },
    { kind: 'ntfy', url: 'https://ntfy.sh/t' },
    { kind: 'desktop' },
  ])
})

test.each([
  ['{ "webhook": "https://example.org/" }', 'has no "secret"'],
  ['{ "webhook": "ftp://x/", "secret": "s" }', 'is not an address'],
  ['{ "ntfy": "https://u:p@ntfy.sh/t" }', 'is not an address'],
  ['{ "ntfy": "https://ntfy.sh/t", "secret": "s" }', 'is for a webhook'],
  ['{ "pigeon": "grey" }', 'is not a setting'],
  ['{ "desktop": true, "ntfy": "https://ntfy.sh/t" }', 'must name one way'],
  ['{ "desktop": false }', 'must be true'],
])('a channel that would tell nobody is refused: %s', (channel, words) => {
  expect(describeError(failure(`{ "notify": [${channel}] }`))).toContain(words)
})

test('once is for writes that are not repeated', () => {
  const tool = { ...CONTRACT.tools.ledger_append, repeat: 'each', once: { per: 'agent', within: '24h' } }
  expect(() => readConfig({ tools: { ledger_append: tool } }, 'c.ts')).toThrow(/once" is for writes/)
  const forever = { ...CONTRACT.tools.ledger_append, once: { per: 'world', within: 'long' } }
  expect(() => readConfig({ tools: { ledger_append: forever } }, 'c.ts')).toThrow(/per" must be/)
})

test('a key that is longer than any name is not repeated whole by each mistake below it', () => {
  const key = 'x'.repeat(50_000)
  const mistakes = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`mistake${index}`, 1]))
  const read = () => readConfig({ tools: { [key]: mistakes } }, 'config')
  expect(read).toThrow(/"tools\.x{200}….mistake1" is not a setting/)
  expect(read).not.toThrow(/x{201}/)
})

test('names that are gigantic are not compared letter by letter', () => {
  const name = 'x'.repeat(100_000)
  const began = performance.now()
  expect(() =>
    readConfig({ agents: { [name]: { model: 'a/b', tools: [name] } }, tools: { [`${name}y`]: {} } }, 'config'),
  ).toThrow('does not exist')
  // Ten thousand million comparisons would take a minute.
  expect(performance.now() - began).toBeLessThan(10_000)
})
