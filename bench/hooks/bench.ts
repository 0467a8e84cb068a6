import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { defineBench, median } from '../bench.ts'
import type { Row } from '../bench.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const HOOK = join(ROOT, 'bin', 'hook.cjs')
const NODE = realpathSync(process.execPath)
/** What the issue allows the command form. */
const MOST = 1.6

const event = (name: string, more: object = {}) =>
  JSON.stringify({ session_id: 'bench', hook_event_name: name, prompt_id: 'p1', cwd: '/', ...more })

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

/** Both take turns, so that a noisy machine is noisy for both; what counts is the ratio of the medians. */
export const bench = defineBench({
  name: 'hooks',
  what: "a hook's command beside starting Node for nothing",
  full: { rounds: 40 },
  quick: { rounds: 8 },
  async run({ rounds }): Promise<Row[]> {
    const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
    const daemon = spawn(join(ROOT, 'bin', 'holdfast'), ['--home', home, 'up', '--port', '0'], { stdio: 'ignore' })
    try {
      while (!existsSync(join(home, 'daemon.json'))) await new Promise((resolve) => setTimeout(resolve, 50))
      const { nodeMs, stopMs, beginMs, ratioOfFastest } = measure(rounds, home)
      const row = (name: string, value: number): Row => ({
        name,
        value,
        unit: 'ms',
        raw: nodeMs,
        ratio: value / nodeMs,
      })
      return [
        { ...row('end of a turn (raw: node -e 0)', stopMs), bound: { of: 'ratio', most: MOST } },
        row('beginning of a turn', beginMs),
        { name: 'end of a turn, the fastest against the fastest', value: ratioOfFastest, unit: 'times' },
      ]
    } finally {
      daemon.kill('SIGTERM')
      await new Promise((resolve) => daemon.once('exit', resolve))
      rmSync(home, { recursive: true, force: true })
    }
  },
})
