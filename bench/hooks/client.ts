/**
 * What hooks over HTTP add to a tool call of the real Claude Code: from the model's call to its result. Four sessions take turns
 * call by call: one without a hook, one whose hook's server does nothing, one with a hook of ours, one with two. Needs
 * scripts/real-clients.sh.
 *
 *   node bench/hooks/client.ts [--calls N] [--ahead] [--check]
 *
 * `--ahead`: before other programs, where this user may ask for that (Linux, `chrt`); a busy machine is then as good as a
 * quiet one.
 */
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { openModelServer } from '../../test/hooks/model-server.ts'
import { Turns, difference, median, rounded } from './turns.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CLIENTS = process.env['HOLDFAST_REAL_CLIENTS'] ?? join(ROOT, 'node_modules', '.real-clients')
const CLAUDE = join(CLIENTS, 'node_modules', '.bin', 'claude')
/** What the issue allows one hook. */
const MOST_MS = 5
/** And what of it may be ours: the rest, some 3 ms, is the client's own work for a hook, whoever answers it. */
const MOST_OF_OURS_MS = 2

/** Where a session's hooks go, and for which events. */
interface Hooked {
  readonly url: string
  readonly token: string
  readonly events: readonly string[]
}

/** As `hooks install claude --tools` writes them. */
function settingsFor({ url, events }: Hooked): object {
  const headers = { Authorization: 'Bearer $HOLDFAST_TOKEN' }
  const where = `${url}/api/v1/hooks/claude?by=holdfast`
  const hook = [{ hooks: [{ type: 'http', url: where, headers, allowedEnvVars: ['HOLDFAST_TOKEN'], timeout: 10 }] }]
  return { hooks: Object.fromEntries(events.map((event) => [event, hook])) }
}

const NONE: Hooked = { url: '', token: '', events: [] }

/** The quickest tool there is: a shell's start alone would vary by more than a hook takes. */
const READ = (home: string) => ({ tool: 'Read', input: { file_path: join(home, 'words.txt') } })

/** One session of Claude Code, until all turns are over. */
async function session(folder: string, turns: Turns, index: number, hooked: Hooked, started: ChildProcess[]) {
  const home = mkdtempSync(join(folder, 'user-'))
  mkdirSync(join(home, '.claude'))
  writeFileSync(join(home, 'words.txt'), 'words\n')
  writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify(settingsFor(hooked)))
  const model = await openModelServer(async () => {
    await turns.next(index)
    return turns.isOver ? { text: 'done' } : READ(home)
  })
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    HOLDFAST_TOKEN: hooked.token,
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: 'dummy',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  }
  const child = spawn(CLAUDE, ['-p', 'go', '--allowedTools', 'Read'], { env, cwd: home, stdio: 'ignore' })
  started.push(child)
  await new Promise((resolve) => child.once('exit', resolve))
  model.close()
  if (!turns.isOver) throw new Error('a session of Claude Code ended early')
}

/** A process like the daemon that gives the same answer and does nothing for it: what it adds is the client's own. */
const IDLE = `require('node:http').createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{"async":true}'))
}).listen(0, '127.0.0.1', function () { console.log('http://127.0.0.1:' + this.address().port) })`

async function openIdleServer(started: ChildProcess[]): Promise<string> {
  const child = spawn(process.execPath, ['-e', IDLE], { stdio: ['ignore', 'pipe', 'inherit'] })
  started.push(child)
  return new Promise((resolve) => child.stdout.once('data', (line) => resolve(String(line).trim())))
}

async function openDaemon(home: string, started: ChildProcess[]): Promise<Omit<Hooked, 'events'>> {
  started.push(spawn(join(ROOT, 'bin', 'holdfast'), ['--home', home, 'up', '--port', '0'], { stdio: 'ignore' }))
  while (!existsSync(join(home, 'daemon.json'))) await new Promise((resolve) => setTimeout(resolve, 50))
  const { url } = JSON.parse(readFileSync(join(home, 'daemon.json'), 'utf8')) as { url: string }
  return { url, token: readFileSync(join(home, 'token'), 'utf8').trim() }
}

/** All threads of all of them, this process among them. Not before their start is over: they would keep everybody waiting. */
function putAhead(started: readonly ChildProcess[]): void {
  for (const pid of [process.pid, ...started.map((child) => child.pid)]) {
    spawnSync('chrt', ['--all-tasks', '--rr', '--pid', '1', String(pid)])
  }
}

const mayGoAhead = () => spawnSync('chrt', ['--rr', '1', 'true']).status === 0

async function measure(folder: string, calls: number, ahead: boolean, started: ChildProcess[]) {
  const daemon = await openDaemon(join(folder, 'home'), started)
  const idle = { url: await openIdleServer(started), token: daemon.token, events: ['PreToolUse'] }
  const one = { ...daemon, events: ['PreToolUse'] }
  const both = { ...daemon, events: ['PreToolUse', 'PostToolUse'] }
  const sessions = [NONE, idle, one, both]
  const turns = new Turns(sessions.length, calls, () => ahead && putAhead(started))
  await Promise.all(sessions.map((hooked, index) => session(folder, turns, index, hooked, started)))
  const headers = { Authorization: `Bearer ${daemon.token}` }
  const threads = await (await fetch(`${daemon.url}/api/v1/threads`, { headers })).text()
  if (!threads.includes('"claude-')) throw new Error('the daemon heard nothing')
  const [none, nothing, first, second] = sessions.map((_, index) => turns.timesOf(index)) as [
    readonly number[],
    readonly number[],
    readonly number[],
    readonly number[],
  ]
  return {
    calls,
    withoutMs: rounded(median(none)),
    added: difference(first, none),
    addedByNothing: difference(nothing, none),
    ours: difference(first, nothing),
    addedByBoth: difference(second, none),
  }
}

async function main() {
  const { values } = parseArgs({
    options: {
      calls: { type: 'string', default: '120' },
      ahead: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
    },
  })
  if (!existsSync(CLAUDE)) return console.log('Claude Code is not installed; scripts/real-clients.sh does it')
  if (values.ahead && !mayGoAhead()) throw new Error('--ahead needs Linux, chrt, and a user who may')
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  const started: ChildProcess[] = []
  try {
    const measured = await measure(folder, Number(values.calls), values.ahead, started)
    console.log(JSON.stringify({ ...measured, bounds: { added: MOST_MS, ours: MOST_OF_OURS_MS } }))
    const isMet = measured.added.ms <= MOST_MS && measured.ours.ms <= MOST_OF_OURS_MS
    if (values.check && !isMet) process.exitCode = 1
  } finally {
    const alive = started.filter((child) => child.exitCode === null && child.signalCode === null)
    const ends = alive.map((child) => new Promise((resolve) => child.once('exit', resolve)))
    for (const child of alive) child.kill('SIGTERM')
    await Promise.all(ends)
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()
// What a client leaves open on the model's side keeps nobody here.
process.exit()
