import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import { versionOf } from '../../src/loop/version.ts'
import { MCP_LIMITS } from '../../src/tools/mcp/limits.ts'
import { McpWorld, call, perform } from './mcp-support.ts'
import type { Rules } from './mcp-support.ts'
import { errorOf, newContext, processesWith, until, within } from './support.ts'

test('the tools of a server are the agent’s, under names that every provider takes', async () => {
  const world = (await McpWorld.open()).polite()
  const tools = await world.tools(['mcp:polite'])
  expect([...tools.keys()].toSorted()).toEqual(
    ['add', 'ask', 'data', 'fail', 'hang', 'look', 'picture', 'slow'].map((name) => `polite__${name}`),
  )
  expect(tools.get('polite__add')).toMatchObject({
    description: 'Adds a line.',
    inputSchema: { type: 'object', required: ['entry'] },
    effect: 'write',
    repeat: 'once',
    idempotent: false,
  })
  expect([...(await world.tools(['mcp:polite/add'])).keys()]).toEqual(['polite__add'])
  await expect(world.tools(['mcp:polite/ad'])).rejects.toThrow('has no tool "ad"')
})

test('a call is answered with text, with data, or with a description of what cannot be shown', async () => {
  const world = (await McpWorld.open()).polite({ effects: { look: 'read' } })
  const { context, outcome } = perform(await world.tool('mcp:polite/add'), { entry: 'a' })
  expect(await outcome).toEqual({ kind: 'done', result: 'added a' })
  expect(world.ledger()).toEqual([`add a ${context.key}`])
  expect(await call(await world.tool('mcp:polite/data'), {})).toEqual({ kind: 'done', result: { n: 7 } })
  const picture = { kind: 'done', result: 'look:\n[image, image/png, 3 bytes, not shown]' }
  expect(await call(await world.tool('mcp:polite/picture'), {})).toEqual(picture)
  // The server runs in the folder of the configuration, without the secrets of this process.
  expect(await call(await world.tool('mcp:polite/look'), {})).toMatchObject({
    result: 'in / with no token and no secret',
  })
})

test('only what is in the configuration of a server reaches its environment, a missing variable is named', async () => {
  const world = (await McpWorld.open()).polite()
  const polite = world.definitions.get('polite')
  if (polite?.kind !== 'stdio') throw new Error('it is a command')
  world.definitions.set('polite', { ...polite, env: { TOKEN: 'x-${SECRET_KEY}' } })
  expect(await call(await world.tool('mcp:polite/look'), {})).toMatchObject({
    result: 'in / with x-planted and no secret',
  })
  world.definitions.set('other', { ...polite, env: { TOKEN: '${NOT_THERE}' } })
  await expect(world.tools(['mcp:other'])).rejects.toThrow(
    '"mcpServers.other.env.TOKEN" needs the variable NOT_THERE, which is not set',
  )
})

test('input that the schema refuses does not reach the server', async () => {
  const world = (await McpWorld.open()).polite()
  const tool = await world.tool('mcp:polite/add')
  expect(tool.validate({ entry: 7 })).toEqual({ error: 'entry: must be a string, not a number' })
  expect(tool.validate({ entry: 'a' })).toEqual({ input: { entry: 'a' } })
})

test('what a server says of its tools makes none a read; it can make a read of the operator a write', async () => {
  const world = (await McpWorld.open()).polite()
  // readOnlyHint is true there.
  expect((await world.tool('mcp:polite/look')).effect).toBe('write')
  world.polite({ effects: { look: 'read' } })
  world.anotherProcess()
  expect(await world.tool('mcp:polite/look')).toMatchObject({ effect: 'read', repeat: 'each' })
  world.rude(['annotations={"destructiveHint":true,"idempotentHint":true}'], { effects: { do: 'read' } })
  expect(await world.tool('mcp:rude/do')).toMatchObject({ effect: 'write', idempotent: false })
  expect(world.warnings.join()).toContain('it is treated as a write')
})

test('a tool that reports an error has run: done for a write, failed for a read and for what may be repeated', async () => {
  const world = (await McpWorld.open()).polite()
  expect(await call(await world.tool('mcp:polite/fail'), {})).toMatchObject({
    kind: 'done',
    result: { error: 'half of it went wrong' },
  })
  const failed = { kind: 'failed', error: 'half of it went wrong', unbegun: true }
  const sayings: Rules[] = [{ effects: { fail: 'read' } }, { idempotent: ['fail'] }]
  for (const rules of sayings) {
    world.polite(rules).anotherProcess()
    expect(await call(await world.tool('mcp:polite/fail'), {})).toEqual(failed)
    await world.servers.close()
  }
})

test('a tool that asks for input has failed, and says why', async () => {
  const world = (await McpWorld.open()).polite()
  expect(await call(await world.tool('mcp:polite/ask'), {})).toMatchObject({
    kind: 'failed',
    error: 'this tool asks for input, which is not supported yet',
  })
})

test('a cancelled call is cancelled at the server, and its processes are dead before the call has ended [R3]', async () => {
  const world = (await McpWorld.open()).polite()
  const { context, outcome } = perform(await world.tool('mcp:polite/hang'), { entry: 'a' })
  await until(() => world.ledger().includes('begun a'), 10_000, 'the call has begun')
  expect(processesWith(world.folder).length).toBeGreaterThan(0)
  context.abort('cancelled')
  expect(await within(15_000, outcome, 'it ended')).toEqual({ kind: 'in-doubt', error: 'cancelled' })
  expect(processesWith(world.folder)).toEqual([])
  expect(world.ledger()).toContain('cancelled a')
  expect(await call(await world.tool('mcp:polite/add'), { entry: 'b' })).toMatchObject({ kind: 'done' })
})

test('a call that takes too long is stopped like a cancelled one and says so [R3]', async () => {
  const world = (await McpWorld.open()).polite({ timeoutMs: 1_000 })
  const outcome = await call(await world.tool('mcp:polite/hang'), { entry: 'a' })
  expect(outcome).toEqual({ kind: 'in-doubt', error: 'timed out after 1s' })
  expect(processesWith(world.folder)).toEqual([])
})

test('two runs use one server at once and do not meet: cancelling one leaves the other alone [R3]', async () => {
  const world = (await McpWorld.open()).polite()
  const [hang, slow] = [await world.tool('mcp:polite/hang'), await world.tool('mcp:polite/slow')]
  const one = perform(hang, { entry: 'a' }, { runId: 'run_1' })
  await until(() => world.ledger().includes('begun a'), 10_000, 'the first has begun')
  const other = perform(slow, { ms: 2_000 }, { runId: 'run_2' })
  one.context.abort('cancelled')
  expect(await one.outcome).toMatchObject({ kind: 'in-doubt' })
  expect(await other.outcome).toEqual({ kind: 'done', result: 'slow but sure' })
})

test('a call that was cancelled before the server was there was never sent, and no process is left', async () => {
  const world = (await McpWorld.open()).polite()
  const tool = await world.tool('mcp:polite/add')
  await world.servers.close()
  world.anotherProcess()
  const again = await world.tool('mcp:polite/add')
  const context = newContext()
  context.abort('cancelled')
  const { outcome } = perform(again, { entry: 'a' }, { context })
  expect(await outcome).toEqual({ kind: 'failed', error: 'cancelled before it was started', unbegun: true })
  expect(existsSync(join(context.folder, 'request'))).toBe(false)
  expect(tool.name).toBe(again.name)
  const silent = new AbortController()
  const opening = world.rude(['silent']).tools(['mcp:rude'], { signal: silent.signal })
  await until(() => world.starts() === 1, 10_000, 'the silent server was started')
  silent.abort('cancelled')
  await expect(opening).rejects.toThrow('nobody waits for it any more')
  expect(processesWith(`rude-mcp-server.mjs\0${world.folder}`)).toEqual([])
})

test('a run that is stopped before the server was there has its tools as they were accepted, to settle what was begun', async () => {
  const world = (await McpWorld.open()).polite()
  const before = await world.tool('mcp:polite/add')
  await world.servers.close()
  world.anotherProcess()
  const [tool] = (await world.tools(['mcp:polite/add'], { signal: AbortSignal.abort('cancelled') })).values()
  expect(versionOf(tool)).toBe(versionOf(before))
})

test('after a crash what was sent is in doubt, and what was not never will be [actions/no-blind-retry]', async () => {
  const world = (await McpWorld.open()).polite()
  const tool = await world.tool('mcp:polite/add')
  const sent = perform(tool, { entry: 'a' })
  await sent.outcome
  expect(await tool.recover!(sent.context)).toMatchObject({ kind: 'in-doubt' })
  const late = newContext({ folder: world.folder })
  expect(await tool.recover!(late)).toEqual({ kind: 'never-started' })
  // Whoever found that out may die before he acts on it: it stays so for the next one.
  expect(await tool.recover!(late)).toEqual({ kind: 'never-started' })
  // A worker that was paused before it sent the call wakes up, and finds that another has taken over.
  const outcome = await tool.perform({ entry: 'b' }, late)
  expect(outcome.kind).toBe('failed')
  expect(errorOf(outcome)).toContain('taken it over')
  expect(world.ledger().filter((line) => line.includes('add b'))).toEqual([])
})

test('a server is started when it is needed, shared by the runs that follow each other, and ended when nobody uses it', async () => {
  const world = (await McpWorld.open()).rude(['leaves'])
  const hurried: Clock = {
    ...systemClock,
    after: (ms, callback, options) => systemClock.after(ms === MCP_LIMITS.idleMs ? 1_000 : ms, callback, options),
  }
  world.anotherProcess({}, hurried)
  expect(world.starts()).toBe(0)
  const tool = await world.tool('mcp:rude/do')
  for (const runId of ['run_1', 'run_2', 'run_3']) await perform(tool, { how: 'answer' }, { runId }).outcome
  expect(world.starts()).toBe(1)
  await until(() => processesWith(`rude-mcp-server.mjs\0${world.folder}`).length === 0, 10_000, 'it was ended')
  expect(await call(tool, { how: 'answer' })).toMatchObject({ kind: 'done' })
  expect(world.starts()).toBe(2)
})
