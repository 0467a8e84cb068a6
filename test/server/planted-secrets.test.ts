import { execFileSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { expect, onTestFinished, test } from 'vitest'

import { AgentInstallation } from '../support/agents.ts'
import { engines, query, temporaryFolder } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import type { Running } from '../support/holdfast.ts'
import { KNOWN, SHAPED } from '../support/secrets.ts'
import { TABLES } from '../support/tables.ts'
import { typed } from './in-process.ts'
import { get, openStream, post } from './support.ts'
import type { Reader } from './support.ts'

/*
 * Thirty secrets are put wherever somebody can put text, a daemon is killed in the middle, and then everything is looked through: the
 * home folder, the database, every answer. What was to get them got them to the byte.
 */

const HOOK = fileURLToPath(new URL('../../bin/hook.cjs', import.meta.url))
const PROGRAM = fileURLToPath(new URL('../../bin/holdfast', import.meta.url))

const DECLARED = { filed: 'kept-in-a-file-0a1b2c3d', renamed: 'under-another-name-4e5f6a' }
const WRITTEN = {
  address: 'in-an-address-2a3b4c5d',
  server: 'written-for-the-server-7b8c',
  webhook: 'signs-the-webhooks-9d0e1f',
}

/** In the environment, under names that say nothing. */
const MORE = {
  PLAINLY_NAMED: DECLARED.renamed,
  SIGNS: WRITTEN.webhook,
  QUEUE: `amqp://me:${WRITTEN.address}@queue.example/`,
}

/** Each value by where it comes from. */
const PLANTED: Readonly<Record<string, string>> = {
  ...KNOWN,
  ...DECLARED,
  ...WRITTEN,
  ...Object.fromEntries(Object.entries(SHAPED).map(([name, { text }]) => [`shape ${name}`, text])),
}

/** As it would be found: as it is, in JSON, in JSON in JSON. Of a shape, the part that is secret. */
function formsOf(name: string): Buffer[] {
  const secret = SHAPED[name.replace('shape ', '')]?.secret ?? PLANTED[name] ?? ''
  const escape = (text: string) => JSON.stringify(text).slice(1, -1)
  return [...new Set([secret, escape(secret), escape(escape(secret)), secret.split('\n')[1] ?? secret])].map((form) =>
    Buffer.from(form),
  )
}

/** Writes down exactly what it was given, outside of the home folder, and says it again. */
const RECEIVER = `
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
const [file, gate, mode, ...rest] = process.argv.slice(2)
const input = readFileSync(0, 'utf8')
console.log(input)
console.error('got ' + rest.join(' '))
while (gate !== '-' && !existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 20))
appendFileSync(file, JSON.stringify({ input: input === '' ? null : JSON.parse(input), rest, key: process.env.HOLDFAST_ACTION_KEY ?? null }) + '\\n')
if (mode === 'fails') { console.error(input); process.exit(3) }
`

interface World {
  readonly place: AgentInstallation
  readonly folder: string
  readonly gate: string
  readonly received: (name: string) => { readonly input: unknown; readonly rest: readonly string[] }[]
  /** Everything that was ever said to anybody. */
  readonly told: string[]
}

async function makeWorld(engine: TestEngine): Promise<World> {
  const folder = temporaryFolder()
  const values = Object.values(PLANTED)
  const program = join(folder, 'receiver.mjs')
  const gate = join(folder, 'gate')
  writeFileSync(program, RECEIVER)
  writeFileSync(join(folder, 'filed'), `${DECLARED.filed}\n`)
  const schema = { type: 'object', properties: { values: { type: 'array', items: { type: 'string' } } } }
  const tool = (name: string, own: string, mode = 'works', rest: readonly string[] = []) => ({
    effect: 'write',
    description: 'keeps what it gets',
    input: schema,
    command: [process.execPath, program, join(folder, `${name}.jsonl`), own, mode, ...rest],
  })
  const call = (name: string) => ({ tool: name, input: { values } })
  const settings = {
    agents: {
      keeper: {
        tools: ['plain', 'failing', 'slow', 'asked'],
        replies: [
          { text: `I know ${values.join(' and ')}`, toolCalls: [call('plain'), call('failing')], streamMs: 200 },
          { text: 'now slowly', toolCalls: [call('slow')] },
          { text: 'and with leave', toolCalls: [call('asked')] },
          { text: `done: ${values.join(' | ')}` },
        ],
      },
    },
    tools: {
      plain: tool('plain', '-', 'works', values),
      failing: tool('failing', '-', 'fails'),
      slow: tool('slow', gate),
      asked: tool('asked', '-'),
    },
    policy: [{ tool: 'asked', decision: 'ask' }, { decision: 'allow' }],
    secrets: { filed: { file: join(folder, 'filed') }, renamed: { env: 'PLAINLY_NAMED' } },
    mcpServers: { unused: { command: 'node', args: ['none.mjs'], env: { SERVER_TOKEN: WRITTEN.server } } },
    webhooks: { secret: '${SIGNS}' },
    http: { allowPrivate: ['127.0.0.1'] },
    lease: '2s',
  }
  const env = { ...KNOWN, ...MORE }
  const store = engine.name === 'sqlite' ? {} : { store: (await engine.database()).url }
  const place = new AgentInstallation(settings, { ...store, env })
  const received = (name: string) => linesOf(join(folder, `${name}.jsonl`))
  return { place, folder, gate, received, told: [] }
}

const linesOf = (file: string) =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as { input: unknown; rest: string[] })
    : []

/** A command of a person, whose environment is that of the daemon; what it prints is kept. */
async function type({ place, told }: World, ...args: string[]): Promise<string> {
  const store = place.storeUrl === undefined ? {} : { HOLDFAST_STORE: place.storeUrl }
  const env = { HOLDFAST_HOME: place.home, ...store, ...KNOWN, ...MORE }
  const { stdout, stderr } = await typed(['--config', place.configuration, ...args], env)
  told.push(stdout, stderr)
  return stdout
}

interface Door {
  readonly url: string
  readonly token: string
  readonly process: Running
}

async function daemon({ place }: World): Promise<Door> {
  const running = await place.daemon()
  const file = join(place.home, 'daemon.json')
  const { url } = await until('the window is noted', async () =>
    existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { url: string }) : undefined,
  )
  return { url, token: readFileSync(join(place.home, 'token'), 'utf8').trim(), process: running }
}

async function look({ told }: World, { url, token }: Door, path: string): Promise<unknown> {
  const { body } = await get(`${url}${path}`, token)
  told.push(typeof body === 'string' ? body : JSON.stringify(body))
  return body
}

/** Every file of the home folder as it is now; the owner's own token and the key are where they belong. */
function filesOf(home: string): { readonly name: string; readonly bytes: Buffer }[] {
  const names = readdirSync(home, { recursive: true }) as string[]
  return names
    .map((name) => join(home, name))
    .filter((path) => !/\/(token|record-token|secrets\.key)$/.test(path) && !path.includes('/cache/'))
    .flatMap((path) => {
      try {
        return statSync(path).isFile() ? [{ name: path, bytes: readFileSync(path) }] : []
      } catch {
        return []
      }
    })
}

function leaks(where: readonly { readonly name: string; readonly bytes: Buffer }[]): string[] {
  return where.flatMap(({ name, bytes }) =>
    Object.keys(PLANTED)
      .filter((secret) => formsOf(secret).some((form) => bytes.includes(form)))
      .map((secret) => `${secret} in ${name}`),
  )
}

async function database({ place }: World): Promise<{ name: string; bytes: Buffer }[]> {
  if (place.storeUrl === undefined) return []
  const schema = new URL(place.storeUrl).searchParams.get('schema') ?? ''
  return Promise.all(
    TABLES.map(async (table) => {
      const rows = await query(place.storeUrl!, `select t::text as row from ${schema}.${table} t`)
      return {
        name: `table ${table}`,
        bytes: Buffer.from(rows.map(({ row }) => String(row).replaceAll('""', '"')).join('\n')),
      }
    }),
  )
}

/** Commands of people and programs, each with all of the secrets in it. */
async function plant(world: World, door: Door, hookAddress: string): Promise<{ runId: string; threadId: string }> {
  const all = Object.values(PLANTED).join(' \u00b7 ')
  const { body } = await post(`${door.url}/api/v1/messages`, { agent: 'keeper', text: `use ${all}` }, door.token)
  world.told.push(JSON.stringify(body))
  const sent = body as { runId: string; threadId: string }
  const echo = [process.execPath, join(world.folder, 'receiver.mjs'), join(world.folder, 'argv.jsonl'), '-', 'works']
  await type(world, '--json', 'run', '--detach', '--parent', sent.threadId, '--', ...echo, ...Object.values(PLANTED))
  // In the foreground a command has the terminal to itself; what we say of it is on standard output.
  const { stdout } = await world.place.run(['--json', 'run', '--', ...echo, ...Object.values(PLANTED)])
  world.told.push(stdout)
  await type(world, 'schedule', 'add', 'later', '--in', '1d', '--agent', 'keeper', `remember ${all}`)
  await type(world, 'schedule', 'add', 'hook', '--in', '10ms', '--webhook', hookAddress)
  await type(world, 'followup', 'add', sent.threadId, '--in', '1d', `and ${all}`, '--reason', all)
  await type(world, 'send', sent.threadId, `also ${all}`, '--key', SHAPED['npm']!.text)
  return sent
}

/** A hook that can reach neither the daemon nor the store. */
function spool({ place }: World): void {
  const event = { session_id: 's1', hook_event_name: 'UserPromptSubmit', prompt: Object.values(PLANTED).join('\n') }
  const home = join(place.home, '..', 'hook-home')
  mkdirSync(home, { recursive: true })
  const env = { PATH: process.env.PATH ?? '', HOLDFAST_STORE: 'postgres://nobody@127.0.0.1:1/none' }
  try {
    execFileSync(process.execPath, [HOOK, 'claude', '--home', home], {
      env,
      input: JSON.stringify(event),
      stdio: 'pipe',
    })
  } catch {
    // It says by its exit that the event is only in the spool.
  }
  const spooled = filesOf(home).filter(({ name }) => /spool\/.+\.json$/.test(name))
  expect(spooled).toHaveLength(1)
  expect(leaks(spooled)).toEqual([])
}

const COMMANDS = [
  ['status'],
  ['runs', 'list'],
  ['threads', 'list'],
  ['events', '--after', '0'],
  ['actions', 'list'],
  ['schedule', 'list'],
  ['schedule', 'show', 'later'],
  ['followup', 'list'],
  ['approvals', 'list'],
  ['doctor'],
]

async function readEverything(world: World, door: Door, sent: { runId: string; threadId: string }): Promise<void> {
  const { runId, threadId } = sent
  const paths = [
    'status',
    'agents',
    'events/log?limit=500',
    'audit',
    'threads',
    'runs',
    'actions',
    'approvals',
    'messages',
  ]
  const ofRun = ['', '/events', '/statement'].map((rest) => `runs/${runId}${rest}`)
  const ofThread = ['', '/conversation', '/tree', '/inbox'].map((rest) => `threads/${threadId}${rest}`)
  const all = [...paths, 'schedules', 'dead-letters', 'notices', ...ofRun, ...ofThread]
  for (const path of all) await look(world, door, `/api/v1/${path}`)
  await look(world, door, '/metrics')
  // Errors quote what they were asked for.
  await look(world, door, `/api/v1/runs/${SHAPED['npm']!.text}`)
  await type(world, 'runs', 'show', KNOWN['PLAIN_TOKEN']!)
  const more = [
    ['runs', 'show', runId],
    ['runs', 'statement', runId],
    ['threads', 'show', threadId],
    ['inbox', 'list', threadId],
  ]
  // The same code answers, whatever the database is.
  if (world.place.storeUrl !== undefined) return
  await readInbox(world)
  for (const words of [...COMMANDS, ...more]) {
    await type(world, ...words)
    await type(world, '--json', ...words)
  }
}

/** What an agent reads that has us as its MCP server. */
async function readInbox({ place, told }: World): Promise<void> {
  await place.run(['run', '--thread', 'boss', '--', 'true'])
  await place.run(['send', 'boss', `for you: ${Object.values(PLANTED).join(' ')}`])
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'legacy' } })
  onTestFinished(() => client.close())
  const env = { PATH: process.env.PATH ?? '', HOLDFAST_HOME: place.home, HOLDFAST_THREAD: 'boss', ...KNOWN }
  const args = ['--config', place.configuration, 'mcp']
  await client.connect(new StdioClientTransport({ command: PROGRAM, args, env: { ...env, ...MORE } }))
  const answer = JSON.stringify(await client.callTool({ name: 'read_inbox', arguments: {} }))
  expect(answer).toContain('for you: [secret PLAIN_TOKEN]')
  told.push(answer)
  await client.close()
}

async function receiver(): Promise<{ readonly address: string; readonly asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.end('taken')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

const streamed = (reader: Reader) => JSON.stringify([reader.events, reader.texts.map(({ delta }) => delta).join('')])

const asFile = (text: string, index: number) => ({
  name: `what was told (${index}): ${text.slice(0, 80)}`,
  bytes: Buffer.from(text),
})

for (const engine of engines) {
  test(`${Object.keys(PLANTED).length} planted secrets are on no disk and no wire, and arrive to the byte (${engine.name})`, async () => {
    expect(Object.keys(PLANTED).length).toBe(30)
    const world = await makeWorld(engine)
    const { place, told, received } = world
    const hooked = await receiver()
    const secretPath = `/in?api_key=${SHAPED['apiKey']!.secret}&t=${KNOWN['PLAIN_TOKEN']}`
    const first = await daemon(world)
    const reader = await openStream(first.url, 0, first.token)
    const sent = await plant(world, first, `${hooked.address}${secretPath}`)
    spool(world)

    // Not killed with it on the way: what may have been sent is not sent again.
    await until('the webhook came', async () => (hooked.asked.length > 0 ? true : undefined))

    // Killed while a tool holds them: its folder, its output and the log of the database are there as they were.
    await until('the slow tool was begun', async () => {
      const { actions } = await place.whole(sent.runId)
      return actions.find(({ tool, state }) => tool === 'slow' && state === 'started')
    })
    first.process.kill('SIGKILL')
    await first.process.ended
    expect(reader.texts.length).toBeGreaterThan(0)
    told.push(streamed(reader))
    expect(leaks(filesOf(place.home))).toEqual([])
    expect(leaks(await database(world))).toEqual([])

    // Whoever goes on has them again, and a person is shown how many there are.
    const second = await daemon(world)
    writeFileSync(world.gate, '')
    await place.is(sent.runId, 'parked')
    const { items } = (await look(world, second, '/api/v1/approvals')) as {
      items: { id: string; hidden: number; digest: string; shown: string }[]
    }
    const [asked] = items
    expect(asked?.hidden).toBeGreaterThanOrEqual(Object.keys(PLANTED).length)
    await type(world, 'approvals', 'show', asked!.id)
    await type(world, 'approvals', 'approve', asked!.id, '--digest', asked!.digest)
    await place.ended(sent.runId)
    await until('the detached command has run', async () => (received('argv').length === 2 ? true : undefined))
    await readEverything(world, second, sent)
    await type(world, 'backup', join(world.folder, 'copy.db'))
    second.process.kill('SIGTERM')
    const { stdout, stderr } = await second.process.ended
    told.push(stdout, stderr)

    // PostgreSQL has its own tools for this.
    const copy =
      engine.name === 'sqlite' ? [{ name: 'the backup', bytes: readFileSync(join(world.folder, 'copy.db')) }] : []
    expect(leaks(filesOf(place.home))).toEqual([])
    expect(leaks(await database(world))).toEqual([])
    expect(leaks(copy)).toEqual([])
    expect(leaks(told.map(asFile))).toEqual([])
    expect(told.join('')).toContain('[secret PLAIN_TOKEN]')

    const values = Object.values(PLANTED)
    for (const name of ['plain', 'failing', 'slow', 'asked']) {
      expect(
        received(name).map(({ input }) => input),
        name,
      ).toEqual([{ values }])
    }
    expect(received('plain')[0]?.rest).toEqual(values)
    expect(received('argv').map(({ rest }) => rest)).toEqual([values, values])
    expect(hooked.asked).toEqual([secretPath])
  })
}
