import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import type { RunView } from '../../src/runs/view.ts'
import { temporaryFolder } from '../support/engines.ts'
import { Installation, processesWith, until } from '../support/holdfast.ts'
import { blocksIn } from '../tidy/docs.ts'
import { readSource, ROOT } from '../tidy/tree.ts'

const FOLDER = join(ROOT, 'examples/tools')
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
if (CHROMIUM === undefined) console.warn('there is no Chromium here: the browser example is not tried')

interface Server {
  readonly url: string
  /** What was asked of it so far. */
  readonly asked: string[]
}

async function serve(
  respond: (request: IncomingMessage, body: string, response: ServerResponse) => void,
): Promise<Server> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('latin1').on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      asked.push(request.url ?? '')
      respond(request, body, response)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

interface Example {
  readonly tool: string
  readonly args: (url: string) => readonly [string, ...string[]]
  readonly input: (url: string) => Record<string, unknown>
  /** Part of the request that it makes, the answer that it gets, and what it makes of that. */
  readonly asks: RegExp
  readonly answer: string
  readonly result: unknown
}

const file = (name: string) => {
  const path = join(temporaryFolder(), name)
  writeFileSync(path, 'bytes of a file')
  return path
}

const EXAMPLES: readonly Example[] = [
  {
    tool: 'web_search',
    args: (url) => ['search.mjs', `${url}/search`],
    input: () => ({ query: 'durable agents', limit: 1 }),
    asks: /^GET \/search\?q=durable\+agents&format=json/,
    answer: '{"results":[{"title":"A","url":"https://a.example","content":"b","engine":"x"},{"title":"C"}]}',
    result: [{ title: 'A', url: 'https://a.example', content: 'b' }],
  },
  {
    tool: 'look_at',
    args: (url) => ['vision.mjs', url, 'm', file('key')],
    input: () => ({ image: file('cat.png'), question: 'What?' }),
    asks: /^POST \/chat\/completions.*"text":"What\?".*data:image\/png;base64,Ynl0ZXMgb2YgYSBmaWxl.*Bearer bytes of a file/s,
    answer: '{"choices":[{"message":{"content":"A cat."}}]}',
    result: 'A cat.',
  },
  {
    tool: 'transcribe',
    args: (url) => ['transcribe.mjs', url, 'whisper-1'],
    input: () => ({ recording: file('talk.wav'), language: 'en' }),
    asks: /^POST \/audio\/transcriptions.*filename="talk.wav".*bytes of a file.*whisper-1/s,
    answer: '{"text":"Good evening."}',
    result: 'Good evening.',
  },
  ...(CHROMIUM === undefined
    ? []
    : [
        {
          tool: 'browse',
          args: () => ['browser.mjs', CHROMIUM] as const,
          input: (url: string) => ({ url: `${url}/page` }),
          asks: /^GET \/page/,
          answer: '<title>T</title><body><script>document.body.append("by a script")</script>',
          result: { status: 200, title: 'T', text: 'by a script' },
        },
      ]),
]

test.each(EXAMPLES)('$tool: its program asks and says what it heard', async ({ args, input, asks, answer, result }) => {
  let heard = ''
  const server = await serve((request, body, response) => {
    if (request.url !== '/favicon.ico')
      heard = `${request.method} ${request.url} ${body} ${request.headers.authorization ?? ''}`
    response.setHeader('content-type', answer.startsWith('<') ? 'text/html' : 'application/json').end(answer)
  })
  // Asynchronously: the server is in this process.
  const { promise, resolve } = Promise.withResolvers<{ stdout: string; stderr: string }>()
  const { execFile } = await import('node:child_process')
  const child = execFile(process.execPath, args(server.url), { cwd: FOLDER }, (_, stdout, stderr) =>
    resolve({ stdout, stderr }),
  )
  child.stdin?.end(JSON.stringify(input(server.url)))
  const { stdout, stderr } = await promise
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual(result)
  expect(heard).toMatch(asks)
})

test('a program that cannot do it says so and exits with 1', () => {
  const { status, stderr } = spawnSync(process.execPath, ['search.mjs', 'http://127.0.0.1:1/'], {
    cwd: FOLDER,
    input: '{"query":"x"}',
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/\w+/) as string })
})

/** The parents and starting times of everybody, as the kernel has them. */
function processTable(): Map<number, { readonly parent: number; readonly start: string }> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const rows = pids.flatMap((name): [number, { parent: number; start: string }][] => {
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')
      return fields[0] === 'Z' ? [] : [[Number(name), { parent: Number(fields[1]), start: fields[19] ?? '' }]]
    } catch {
      return []
    }
  })
  return new Map(rows)
}

/** Those that carry the run's name and all of their descendants: a browser's own processes clean their environment. */
function familyOf(runId: string): { readonly pid: number; readonly start: string }[] {
  const table = processTable()
  const family = new Set(processesWith(`HOLDFAST_RUN=${runId}`).map(({ pid }) => pid))
  for (let before = -1; before < family.size;) {
    before = family.size
    for (const [pid, { parent }] of table) if (family.has(parent)) family.add(pid)
  }
  return [...family].map((pid) => ({ pid, start: table.get(pid)?.start ?? '' }))
}

/** The tool as the README configures it, with the address of a server that never answers. */
function configured(tool: string, command: readonly string[]): unknown {
  const [block] = blocksIn(readSource('examples/tools/README.md'))
  const { tools } = JSON.parse(block!.text) as { tools: Record<string, object> }
  return { ...tools[tool], command: [process.execPath, join(FOLDER, command[0]!), ...command.slice(1)] }
}

test.each(EXAMPLES)('$tool hangs and is cancelled: nobody of it is left [R3]', async ({ tool, args, input }) => {
  const server = await serve(() => {})
  const [place, folder] = [new Installation(), temporaryFolder()]
  const script = { replies: [{ toolCalls: [{ tool, input: input(server.url) }] }, { text: 'never' }] }
  writeFileSync(join(folder, 'replies.json'), JSON.stringify(script))
  const agents = { scout: { model: 'scripted:./replies.json', tools: [tool] } }
  const config = join(folder, 'holdfast.config.json')
  writeFileSync(config, JSON.stringify({ agents, tools: { [tool]: configured(tool, args(server.url)) } }))
  const daemon = place.start(['--config', config, 'up', '--port', '0'])
  await daemon.said('holdfast: up:')
  const sent = await place.json<{ runId: string }>(['--config', config, 'send', '--agent', 'scout', 'Look.'])
  await until('it asks', () => Promise.resolve(server.asked.length > 0 || undefined))
  const family = familyOf(sent.runId)
  expect(family.length).toBeGreaterThanOrEqual(tool === 'browse' ? 4 : 1)
  const cancelled = await place.run(['--config', config, 'runs', 'cancel', sent.runId])
  expect(cancelled.code).toBe(0)
  // The command returns when they are dead: there is nothing to wait for.
  const table = processTable()
  expect(family.filter(({ pid, start }) => table.get(pid)?.start === start)).toEqual([])
  expect(await place.json<RunView>(['--config', config, 'runs', 'show', sent.runId])).toMatchObject({
    state: 'cancelled',
  })
})
