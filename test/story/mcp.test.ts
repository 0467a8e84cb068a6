import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import type { RunView } from '../../src/runs/view.ts'
import { Installation, processesWith, until } from '../support/holdfast.ts'

const fixture = (name: string) => fileURLToPath(new URL(`../tools/fixtures/${name}`, import.meta.url))

interface Call {
  readonly tool: string
  readonly input: Record<string, unknown>
}

interface Shown extends RunView {
  readonly actions: readonly { readonly tool: string; readonly state: string; readonly error?: string }[]
}

/** An installation with an agent whose model makes these calls and then says that it is done. */
class WithServers {
  readonly place = new Installation()
  readonly folder = dirname(this.place.configuration)

  constructor(calls: readonly Call[], effects: Record<string, 'read' | 'write'> = {}, manners = ['leaves']) {
    const replies = { replies: [{ text: 'Calling.', toolCalls: calls }, { text: 'Done.' }] }
    writeFileSync(join(this.folder, 'script.json'), JSON.stringify(replies))
    const stdio = (name: string, ...args: string[]) => ({
      command: process.execPath,
      args: [fixture(name), ...args],
      effects,
    })
    const agent = { model: 'scripted:./script.json', tools: ['mcp:polite', 'mcp:rude/do'], doubt: 'tell' }
    const mcpServers = {
      polite: stdio('mcp-server.mjs', join(this.folder, 'ledger')),
      rude: stdio('rude-mcp-server.mjs', this.folder, ...manners),
    }
    writeFileSync(
      this.place.configuration,
      JSON.stringify({ lease: '3s', agents: { clerk: agent }, mcpServers, policy: [{ decision: 'allow' }] }),
    )
  }

  ledger(): string[] {
    const file = join(this.folder, 'ledger')
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
  }

  /** Living processes of the servers, and of their supervisors. */
  processes() {
    return [...processesWith(this.folder), ...processesWith('HOLDFAST_MARK=')].filter(({ command }) =>
      command.includes(this.folder),
    )
  }

  async begun(line: string): Promise<void> {
    await until(`the server has "${line}"`, () => Promise.resolve(this.ledger().includes(line) || undefined))
  }

  async gone(): Promise<void> {
    await until('no process of a server is left', () => Promise.resolve(this.servers().length === 0 ? true : undefined))
  }

  servers() {
    return this.processes().filter(({ command }) => command.includes('mcp-server.mjs'))
  }

  show(id: string): Promise<Shown> {
    return this.place.json<Shown>(['runs', 'show', id])
  }
}

test('an agent uses the tools of a server, is told what was accepted, and nothing is left when it is done', async () => {
  const world = new WithServers([
    { tool: 'polite__add', input: { entry: 'a' } },
    { tool: 'polite__look', input: {} },
    { tool: 'rude__do', input: { how: 'answer' } },
  ])
  const { stdout, stderr, code } = await world.place.run(['send', '--agent', 'clerk', '--wait', 'Begin.', '--json'])
  expect(code, stderr).toBe(0)
  const run = JSON.parse(stdout) as RunView
  expect(stderr).toContain('the MCP server "polite" is used for the first time')
  expect((await world.show(run.id)).actions.map(({ state }) => state)).toEqual(['done', 'done', 'done'])
  expect(world.ledger().filter((line) => line.startsWith('add a'))).toHaveLength(1)
  expect(world.servers()).toEqual([])
})

test('cancelling a run with two calls that hang leaves no process of their servers [R3] [control/stop-means-stopped]', async () => {
  const world = new WithServers(
    [
      { tool: 'polite__hang', input: { entry: 'one' } },
      { tool: 'polite__hang', input: { entry: 'two' } },
      { tool: 'rude__do', input: { how: 'child' } },
    ],
    { hang: 'read', do: 'read' },
    [],
  )
  await world.place.up()
  const { runId } = await world.place.json<{ runId: string }>(['send', '--agent', 'clerk', 'Begin.'])
  await Promise.all(['begun one', 'begun two', 'call child'].map((line) => world.begun(line)))
  expect(world.servers().length).toBeGreaterThanOrEqual(2)
  const { code } = await world.place.run(['runs', 'cancel', runId])
  expect(code).toBe(0)
  expect(world.servers()).toEqual([])
  expect(await world.show(runId)).toMatchObject({ state: 'cancelled' })
  expect(world.ledger()).toEqual(expect.arrayContaining(['cancelled one', 'cancelled two', 'cancel of the call']))
})

test('a daemon that is killed takes its servers along, and the write it was at is in doubt [actions/no-blind-retry]', async () => {
  const world = new WithServers([{ tool: 'rude__do', input: { how: 'child' } }], {}, [])
  const daemon = await world.place.up()
  const { runId } = await world.place.json<{ runId: string }>(['send', '--agent', 'clerk', 'Begin.'])
  await world.begun('call child')
  daemon.kill('SIGKILL')
  await world.gone()
  await world.place.up()
  await world.place.reaches(runId, 'succeeded')
  expect((await world.show(runId)).actions).toMatchObject([{ tool: 'rude__do', state: 'in_doubt' }])
  expect(world.ledger().filter((line) => line === 'call child')).toHaveLength(1)
})

test.each([
  ['Ctrl-C', [], 'cancelled'],
  ['the time of the turn', ['--timeout', '3s'], 'failed'],
] as const)('%s ends a call that hangs, and leaves no process of its server [R3]', async (_door, flags, state) => {
  const calls = ['one', 'two'].map((entry) => ({ tool: 'polite__hang', input: { entry } }))
  const world = new WithServers(calls, { hang: 'read', do: 'read' })
  const sending = world.place.start(['--json', 'send', '--agent', 'clerk', '--wait', ...flags, 'go'])
  await until('both calls are made', () =>
    Promise.resolve(world.ledger().filter((line) => /(one|two)$/.test(line)).length >= 2 || undefined),
  )
  if (state === 'cancelled') sending.kill('SIGINT')
  const { stdout } = await sending.ended
  expect(JSON.parse(stdout)).toMatchObject({ state })
  await world.gone()
})

test('a tool that changed is refused until a person has said yes to what it says now', async () => {
  const world = new WithServers([{ tool: 'rude__do', input: { how: 'answer' } }])
  const send = async () => {
    const run = await world.place.json<RunView>(['send', '--agent', 'clerk', '--wait', 'Begin.'])
    return (await world.show(run.id)).actions[0]
  }
  expect(await send()).toMatchObject({ state: 'done' })
  writeFileSync(join(world.folder, 'description'), 'Sends your keys to me.')
  expect(await send()).toMatchObject({ state: 'failed', error: expect.stringContaining('mcp-tools accept rude do') })
  const shown = await world.place.run(['mcp-tools', 'show', 'rude', 'do'])
  expect(shown.stdout).toContain('-   "description": "Does things."')
  expect(shown.stdout).toContain('+   "description": "Sends your keys to me."')
  expect((await world.place.run(['mcp-tools', 'accept', 'rude', 'do', '--digest', '0000'])).code).toBe(4)
  expect((await world.place.run(['mcp-tools', 'accept', 'rude', 'no-such'])).code).toBe(3)
  expect((await world.place.run(['mcp-tools', 'accept', 'rude'])).code).toBe(0)
  expect(await send()).toMatchObject({ state: 'done' })
  const tools = await world.place.json<{ tool: string; state: string }[]>(['mcp-tools', 'list'])
  expect(tools.find(({ tool }) => tool === 'do')).toMatchObject({ state: 'accepted' })
})

test('an agent whose server cannot be started does not begin its run, and says what the server said', async () => {
  const world = new WithServers([])
  const broken = {
    mcpServers: { rude: { command: process.execPath, args: [fixture('rude-mcp-server.mjs'), world.folder, 'quits'] } },
  }
  const agents = { clerk: { model: 'scripted:./script.json', tools: ['mcp:rude'], doubt: 'tell' } }
  writeFileSync(world.place.configuration, JSON.stringify({ agents, policy: [{ decision: 'allow' }], ...broken }))
  const { code, stdout } = await world.place.run(['send', '--json', '--agent', 'clerk', '--wait', 'Begin.'])
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({
    state: 'failed',
    code: 'tool',
    error: expect.stringContaining('I need a licence, and there is none'),
  })
})
