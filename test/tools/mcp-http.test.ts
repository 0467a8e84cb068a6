import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { McpWorld, call, perform } from './mcp-support.ts'
import { errorOf, fixture, until, within } from './support.ts'

/** The well-behaved server, at an address. */
async function politeAt(world: McpWorld): Promise<string> {
  const server = spawn(process.execPath, [fixture('mcp-server.mjs'), join(world.folder, 'ledger'), 'http'])
  onTestFinished(() => void server.kill('SIGKILL'))
  const [line] = (await within(20_000, once(server.stdout, 'data'), 'it listens')) as [Buffer]
  return `http://127.0.0.1:${line.toString().trim().slice(5)}/mcp`
}

interface Message {
  readonly id?: number
  readonly method: string
  readonly params?: { readonly protocolVersion?: string; readonly arguments?: { readonly how: string } }
}

/** A rude one: what it does to the call of its tool is said by the arguments. */
async function rudeAt(): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = []
  const server = createServer((request, response) => void answer(request, response, seen))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.closeAllConnections())
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, seen }
}

async function answer(request: IncomingMessage, response: ServerResponse, seen: string[]): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString() || '{}') as Message
  seen.push(request.method ?? '', method)
  const say = (result: unknown) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  if (method === 'server/discover') return void response.writeHead(400).end('what?')
  if (method === 'initialize') {
    const serverInfo = { name: 'rude', version: '1' }
    return void say({ protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo })
  }
  if (method === 'tools/list') return void say({ tools: [{ name: 'do', inputSchema: { type: 'object' } }] })
  if (id === undefined) return void response.writeHead(202).end()
  misbehave(params?.arguments?.how ?? '', response, seen)
}

function misbehave(how: string, response: ServerResponse, seen: string[]): void {
  const stream = () => response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (how === 'cut') stream().write(': hello\n\n', () => response.destroy())
  else if (how === 'end') stream().end(': hello\n\n')
  else if (how === 'huge') stream().end(`data: ${'x'.repeat(20 * 1024 * 1024)}\n\n`)
  else if (how === 'hang') {
    stream().write(': wait\n\n')
    response.on('close', () => seen.push('closed'))
  } else response.writeHead(Number(how)).end('no')
}

test('a server at an address is called with the headers of the configuration', async () => {
  const world = await McpWorld.open()
  world.http(await politeAt(world), { authorization: 'Bearer ${TOKEN}' })
  world.anotherProcess({ TOKEN: 't0ken' })
  const { context, outcome } = perform(await world.tool('mcp:web/add'), { entry: 'a' })
  expect(await outcome).toEqual({ kind: 'done', result: 'added a' })
  expect(world.ledger()).toEqual([`add a ${context.key}`])
  expect(await call(await world.tool('mcp:web/data'), {})).toEqual({ kind: 'done', result: { n: 7 } })
  expect(errorOf(await call(await world.tool('mcp:web/ask'), {}))).toContain('asks for input')
})

test('a cancel reaches the server at once, and leaves the other call alone [R3]', async () => {
  const world = await McpWorld.open()
  world.http(await politeAt(world))
  const hang = await world.tool('mcp:web/hang')
  const { context, outcome } = perform(hang, { entry: 'a' })
  const other = perform(await world.tool('mcp:web/slow'), { ms: 500 })
  await until(() => world.ledger().includes('begun a'), 10_000, 'the call has begun')
  context.abort('cancelled')
  expect(await within(2_000, outcome, 'it ended')).toEqual({ kind: 'in-doubt', error: 'cancelled' })
  await until(() => world.ledger().includes('cancelled a'), 10_000, 'the server has heard of it')
  expect(await other.outcome).toEqual({ kind: 'done', result: 'slow but sure' })
})

test('a server of the older kind is told of the cancel by a message', async () => {
  const world = await McpWorld.open()
  const { url, seen } = await rudeAt()
  const { context, outcome } = perform(await world.http(url).tool('mcp:web/do'), { how: 'hang' })
  await until(() => seen.filter((each) => each === 'POST').length >= 5, 10_000, 'the call has begun')
  context.abort('cancelled')
  expect(await within(2_000, outcome, 'it ended')).toMatchObject({ kind: 'in-doubt' })
  await until(() => seen.includes('notifications/cancelled'), 10_000, 'the server was told')
})

test.each([
  ['cut', 'in-doubt'],
  ['end', 'in-doubt'],
  ['huge', 'in-doubt'],
  ['500', 'in-doubt'],
  ['504', 'in-doubt'],
  ['408', 'in-doubt'],
  ['403', 'failed'],
  ['429', 'failed'],
])('a write whose request ends with "%s" is %s', async (how, kind) => {
  const world = await McpWorld.open()
  const { url } = await rudeAt()
  const outcome = await within(10_000, call(await world.http(url).tool('mcp:web/do'), { how }), 'it ended')
  expect(outcome).toMatchObject({ kind })
})

test('a server that was started anew is greeted again', async () => {
  const world = await McpWorld.open()
  const { url, seen } = await rudeAt()
  const tool = await world.http(url).tool('mcp:web/do')
  const greetings = () => seen.filter((each) => each === 'initialize').length
  expect(await call(tool, { how: '404' })).toMatchObject({ kind: 'failed' })
  expect(await call(tool, { how: '404' })).toMatchObject({ kind: 'failed' })
  expect(greetings()).toBe(2)
})

test('who is not let in, and an address where nobody is, are errors that say so', async () => {
  const world = await McpWorld.open()
  world.http(await politeAt(world), { authorization: 'wrong' })
  await expect(world.tools(['mcp:web'])).rejects.toThrow(/401/)
  world.http('http://127.0.0.1:1/mcp').anotherProcess()
  await expect(world.tools(['mcp:web'])).rejects.toThrow('the MCP server "web" cannot be used')
})
