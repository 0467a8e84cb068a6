/**
 * What hooks over HTTP add to a tool call of the real Claude Code: from the model's call to its result, with and without
 * them, in turns. Needs scripts/real-clients.sh.
 *
 *   node bench/hooks/client.ts [--calls N] [--rounds N] [--check]
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { openModelServer } from '../../test/hooks/model-server.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CLIENTS = process.env['HOLDFAST_REAL_CLIENTS'] ?? join(ROOT, 'node_modules', '.real-clients')
const CLAUDE = join(CLIENTS, 'node_modules', '.bin', 'claude')
/** What the issue allows. */
const MOST_MS = 5

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

interface Daemon {
  readonly url: string
  readonly token: string
}

/** The times of so many tool calls in one session of Claude Code. */
async function session(folder: string, calls: number, events: readonly string[], daemon?: Daemon): Promise<number[]> {
  const times: number[] = []
  let asked = 0
  const model = await openModelServer(({ number }) => {
    if (number > 1) times.push(performance.now() - asked)
    asked = performance.now()
    return number > calls ? { text: 'done' } : { bash: 'true' }
  })
  const home = mkdtempSync(join(folder, 'user-'))
  mkdirSync(join(home, '.claude'))
  const headers = { Authorization: 'Bearer $HOLDFAST_TOKEN' }
  const url = `${daemon?.url}/api/v1/hooks/claude`
  const hook = [{ hooks: [{ type: 'http', url, headers, allowedEnvVars: ['HOLDFAST_TOKEN'], timeout: 10 }] }]
  const hooks = daemon === undefined ? {} : Object.fromEntries(events.map((event) => [event, hook]))
  writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify({ hooks }))
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    HOLDFAST_TOKEN: daemon?.token ?? '',
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: 'dummy',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  }
  const child = spawn(CLAUDE, ['-p', 'go', '--allowedTools', 'Bash'], { env, cwd: home, stdio: 'ignore' })
  await new Promise((resolve) => child.once('exit', resolve))
  model.close()
  if (times.length !== calls) throw new Error(`${times.length} calls instead of ${calls}`)
  return times
}

/** What a hook costs whose server does nothing at all. */
async function openIdleServer() {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

async function main() {
  const { values } = parseArgs({
    options: {
      calls: { type: 'string', default: '30' },
      rounds: { type: 'string', default: '4' },
      check: { type: 'boolean' },
    },
  })
  if (!existsSync(CLAUDE)) return console.log('Claude Code is not installed; scripts/real-clients.sh does it')
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  const home = join(folder, 'home')
  const up = spawn(join(ROOT, 'bin', 'holdfast'), ['--home', home, 'up', '--port', '0'], { stdio: 'ignore' })
  try {
    while (!existsSync(join(home, 'daemon.json'))) await new Promise((resolve) => setTimeout(resolve, 50))
    const { url } = JSON.parse(readFileSync(join(home, 'daemon.json'), 'utf8')) as { url: string }
    const daemon = { url, token: readFileSync(join(home, 'token'), 'utf8').trim() }
    const idle = await openIdleServer()
    const [without, nothing, one, both]: [number[], number[], number[], number[]] = [[], [], [], []]
    for (let round = 0; round < Number(values.rounds); round += 1) {
      without.push(...(await session(folder, Number(values.calls), [])))
      nothing.push(...(await session(folder, Number(values.calls), ['PreToolUse'], { ...daemon, url: idle.url })))
      one.push(...(await session(folder, Number(values.calls), ['PreToolUse'], daemon)))
      both.push(...(await session(folder, Number(values.calls), ['PreToolUse', 'PostToolUse'], daemon)))
    }
    const headers = { Authorization: `Bearer ${daemon.token}` }
    const threads = await (await fetch(`${url}/api/v1/threads`, { headers })).text()
    if (!threads.includes('"claude-')) throw new Error('the daemon heard nothing')
    const added = (times: readonly number[]) => Math.round((median(times) - median(without)) * 100) / 100
    idle.close()
    const [addedMs, addedByBothMs, addedByNothingMs] = [added(one), added(both), added(nothing)]
    const noneMs = Math.round(median(without))
    // Of it, what our daemon takes: the rest is the client's own work for a hook.
    const oursMs = Math.round((addedMs - addedByNothingMs) * 100) / 100
    console.log(JSON.stringify({ calls: one.length, noneMs, addedMs, addedByNothingMs, oursMs, addedByBothMs }))
    if (values.check === true && addedMs > MOST_MS) process.exitCode = 1
  } finally {
    up.kill('SIGTERM')
    await new Promise((resolve) => up.once('exit', resolve))
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()
