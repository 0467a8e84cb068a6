import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

import { HoldfastError } from '../../src/base/errors.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { Unreadable } from '../../src/hooks/event.ts'
import { hear } from '../../src/hooks/hear.ts'
import { readTold } from '../../src/hooks/told.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { violations } from '../../test/support/invariants.ts'
import type { Dice } from '../simulation/seeded.ts'
import { polluted } from './config.ts'
import { oddJson, oddText, oddValue } from './odd.ts'
import { showsStack } from './surface.ts'
import type { Input, OpenSurface, Surface } from './surface.ts'

const CLIENTS = ['claude', 'codex', 'gemini'] as const
/** Of all three clients, and one that is none. */
const EVENTS = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PostToolUse',
  'PermissionRequest',
  'Stop',
  'SubagentStop',
  'StopFailure',
  'Notification',
  'SessionEnd',
  'PreCompact',
  'agent-turn-complete',
  'BeforeAgent',
  'AfterAgent',
  'BeforeTool',
  'AfterTool',
  'BeforeModel',
  'toString',
]
const SCRIPT = new URL('../../bin/hook.cjs', import.meta.url).pathname
/** A store that has grown is slower to check. */
const BATCHES_OF_A_STORE = 10
/** Starting a process takes as long as a hundred inputs without one. */
const BATCHES_OF_A_PROCESS = 5

function eventOf(dice: Dice) {
  return {
    session_id: `s${dice.below(5)}`,
    hook_event_name: dice.pick(EVENTS),
    transcript_path: '/nowhere/transcript.jsonl',
    cwd: '/nowhere',
    prompt_id: `p${dice.below(3)}`,
    tool_name: dice.pick(['Bash', 'Read', 'Write']),
    tool_input: { command: 'ls', file_path: 'a.txt' },
    tool_use_id: `t${dice.below(3)}`,
    stop_hook_active: dice.chance(0.5),
    last_assistant_message: 'Done.',
    reason: 'other',
    message: 'it waits',
    source: 'startup',
    error: 'rate_limit',
  }
}

/** What the hook's command adds, in words of its own: another version of it may be there. */
function toldOf(dice: Dice, client: string, input: string) {
  return {
    client,
    input,
    id: `e${dice.below(1_000_000)}`,
    ordinal: dice.pick([1, 2, 3, 2 ** 40]),
    shown: dice.pick([null, 'dlv_x', oddText(dice)]),
    process: { pid: dice.pick([1, 4_194_303, 2 ** 50]) },
    startedFrom: dice.pick(['conductor', oddText(dice)]),
    role: dice.pick(['permit', 'settle', undefined, undefined]),
    isAttended: dice.chance(0.2),
    tmux: { socket: '/nowhere/tmux', pane: '%1' },
  }
}

function draw(dice: Dice): Input {
  const text = dice.chance(0.003) ? '{"a":'.repeat(50_000) : oddJson(dice, eventOf(dice))
  const told = toldOf(dice, dice.pick(CLIENTS), text)
  return [JSON.stringify(dice.chance(0.3) ? { ...told, [dice.pick(Object.keys(told))]: oddValue(dice) } : told)]
}

/** Without a rule and without a person nobody is allowed anything, whatever was sent. */
const ALLOWS = /"(permissionDecision|behavior)":"(allow|approve)"/

class Hooks implements OpenSurface {
  readonly width = 20
  readonly #folder: string
  #store: Store
  #batches = 0
  #sample: Input = []

  constructor(folder: string, store: Store) {
    this.#folder = folder
    this.#store = store
  }

  static async open(folder: string): Promise<Hooks> {
    return new Hooks(folder, await openSqliteStore({ path: join(folder, 'store-0.db') }))
  }

  async begin(dice: Dice): Promise<void> {
    this.#sample = draw(dice)
    if (++this.#batches % BATCHES_OF_A_STORE !== 0) return
    await this.#store.close()
    this.#store = await openSqliteStore({ path: join(this.#folder, `store-${this.#batches}.db`) })
  }

  draw = draw

  async feed(input: Input): Promise<readonly string[]> {
    const text = input.join('')
    const told = readTold(valueOf(text))
    if (told instanceof Unreadable) return polluted()
    try {
      const { output } = await hear({ store: this.#store, random, policy: [] }, told)
      if (ALLOWS.test(output)) return [`it allowed a tool: ${output.slice(0, 200)}`]
      if (output !== '' && typeof valueOf(output) !== 'object')
        return [`its answer is no JSON: ${output.slice(0, 200)}`]
    } catch (error) {
      if (!(error instanceof HoldfastError))
        return [`it ended in ${error instanceof Error ? error.stack : String(error)}`]
    }
    return polluted()
  }

  /** Now and then one input goes to the command itself, as a client starts it. */
  async settle(): Promise<readonly string[]> {
    const wrong = await violations(this.#store)
    return this.#batches % BATCHES_OF_A_PROCESS === 1 ? [...wrong, ...(await this.#asClient())] : wrong
  }

  async #asClient(): Promise<readonly string[]> {
    const told = valueOf(this.#sample.join('')) as { readonly client?: unknown; readonly input?: unknown } | undefined
    const client = CLIENTS.find((name) => name === told?.client) ?? 'claude'
    const { code, stderr } = await asClient(this.#folder, client, String(told?.input))
    return [
      ...(code === 0 || code === 1
        ? []
        : [`the command ended with ${code} for ${this.#sample.join('').slice(0, 300)}`]),
      ...(showsStack(stderr) ? [`the command showed a stack: ${stderr}`] : []),
    ]
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function asClient(folder: string, client: string, input: string) {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, HOLDFAST_HOME: join(folder, 'home') }
  const child = spawn(process.execPath, [SCRIPT, client], { env, cwd: folder, stdio: ['pipe', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  // It may have read enough.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stderr }
}

export const hooks: Surface = { name: 'hook input', open: (folder) => Hooks.open(folder) }
