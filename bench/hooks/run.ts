/**
 * What the hook's command costs its client, beside starting Node for nothing. Both take turns, so that a noisy machine is
 * noisy for both; what counts is the ratio of the medians.
 *
 *   node bench/hooks/run.ts [--rounds N] [--json FILE] [--check]
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const HOOK = join(ROOT, 'bin', 'hook.cjs')
const NODE = realpathSync(process.execPath)
/** What the issue allows the command form. */
const MOST = 1.6

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

const event = (name: string, more: object = {}) =>
  JSON.stringify({ session_id: 'bench', hook_event_name: name, prompt_id: 'p1', cwd: '/', ...more })

async function main() {
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: '40' }, json: { type: 'string' }, check: { type: 'boolean' } },
  })
  const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  const daemon = spawn(join(ROOT, 'bin', 'holdfast'), ['--home', home, 'up', '--port', '0'], { stdio: 'ignore' })
  try {
    while (!existsSync(join(home, 'daemon.json'))) await new Promise((resolve) => setTimeout(resolve, 50))
    const result = measure(Number(values.rounds), home)
    console.log(JSON.stringify(result, null, 2))
    if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(result))
    if (values.check === true && result.ratio > MOST) process.exitCode = 1
  } finally {
    daemon.kill('SIGTERM')
    await new Promise((resolve) => daemon.once('exit', resolve))
    rmSync(home, { recursive: true, force: true })
  }
}

/** How many events the hook has counted, in the one session that there is. */
function countEvents(home: string): number {
  const folder = join(home, 'hooks', 'sessions')
  const [log = ''] = readdirSync(folder).filter((name) => name.endsWith('.log'))
  return readFileSync(join(folder, log), 'utf8').trim().split('\n').length - 1
}

function measure(rounds: number, home: string) {
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, HOLDFAST_HOME: home, CLAUDE_PID: String(process.pid) }
  const time = (args: readonly string[], input: string) => {
    const from = performance.now()
    const { status, stderr } = spawnSync(NODE, args, { input, env })
    if (status !== 0) throw new Error(`it ended with ${status}: ${stderr.toString()}`)
    return performance.now() - from
  }
  const [nothing, stops, begins]: number[][] = [[], [], []]
  time([HOOK, 'claude'], event('SessionStart'))
  for (let round = 0; round < rounds; round += 1) {
    nothing?.push(time(['-e', '0'], ''))
    begins?.push(time([HOOK, 'claude'], event('UserPromptSubmit')))
    stops?.push(time([HOOK, 'claude'], event('Stop', { stop_hook_active: false, last_assistant_message: 'done' })))
  }
  if (existsSync(join(home, 'spool'))) throw new Error('events went into the spool')
  const round = (value: number) => Math.round(value * 100) / 100
  const fastest = (values: readonly number[] = []) => Math.min(...values)
  const [node, stop, begin] = [median(nothing ?? []), median(stops ?? []), median(begins ?? [])]
  return {
    rounds,
    events: countEvents(home),
    nodeMs: round(node),
    stopMs: round(stop),
    beginMs: round(begin),
    ratio: round(stop / node),
    // On a busy machine the daemon has to wait for its turn too; the fastest of each waited least.
    ratioOfFastest: round(fastest(stops) / fastest(nothing)),
  }
}

await main()
