import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { onTestFinished } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import type { Ended } from '../support/holdfast.ts'
import { until } from '../support/until.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const HOOK = join(ROOT, 'bin', 'hook.cjs')
export const NODE = realpathSync(process.execPath)

export interface HookCall {
  readonly home: string
  readonly client?: 'claude' | 'codex' | 'gemini'
  /** What the client says: a value is made JSON. */
  readonly says: unknown
  readonly env?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
}

/** Calls the hook's command as a client would. */
export function callHook({ home, client = 'claude', says, env = {}, args = [] }: HookCall): Promise<Ended> {
  const whole = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    HOLDFAST_HOME: home,
    CLAUDE_PID: String(process.pid),
    ...env,
  }
  return run(NODE, [HOOK, client, ...args], {
    env: whole,
    input: typeof says === 'string' ? says : JSON.stringify(says),
  })
}

export interface Command {
  readonly env: Readonly<Record<string, string>>
  readonly input?: string
  readonly cwd?: string
}

export function run(
  program: string,
  args: readonly string[],
  { env, input = '', cwd = ROOT }: Command,
): Promise<Ended> {
  const child = spawn(program, args, { env, cwd, stdio: 'pipe' })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  // A hook that gives up early does not read the rest.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout, stderr }))
  })
}

export interface Said {
  readonly session?: string
  readonly turn?: string
}

/** What Claude Code says at an event. */
export const says = (event: string, more: object = {}, { session = 's1', turn = 'p1' }: Said = {}) => ({
  session_id: session,
  prompt_id: turn,
  hook_event_name: event,
  transcript_path: '/nowhere/transcript.jsonl',
  cwd: '/',
  ...more,
})

export const stopSays = (words: string, more: object = {}, said: Said = {}) =>
  says(
    'Stop',
    {
      stop_hook_active: false,
      last_assistant_message: words,
      background_tasks: [],
      session_crons: [],
      ...more,
    },
    said,
  )

export const spoolOf = (home: string) =>
  existsSync(join(home, 'spool')) ? readdirSync(join(home, 'spool')).filter((name) => name.endsWith('.json')) : []

/** A session that begins tells what is in the spool; on a busy machine not at the first time. */
export const tellWhatIsKept = (home: string) =>
  until('nothing is kept any more', async () => {
    await callHook({ home, says: says('SessionStart', { source: 'startup' }, { session: 'parent' }) })
    return spoolOf(home).length === 0 ? true : undefined
  })

/** A client that scripts/real-clients.sh has installed. */
export function realClient(name: 'claude' | 'codex' | 'gemini'): string | undefined {
  const folder = process.env['HOLDFAST_REAL_CLIENTS'] ?? join(ROOT, 'node_modules', '.real-clients')
  const program = join(folder, 'node_modules', '.bin', name)
  if (existsSync(program)) return program
  process.stderr.write(
    `SKIPPED: the tests with the real ${name}, which is not installed; scripts/real-clients.sh does it\n`,
  )
  return undefined
}

/** Where a client lives: a home of its own with our hooks in it, and a folder to work in. */
export interface Stage {
  readonly userHome: string
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
}

export function makeStage(settings: object, env: Readonly<Record<string, string>>): Stage {
  const place = temporaryFolder()
  const [userHome, folder] = [join(place, 'user'), join(place, 'work')]
  mkdirSync(join(userHome, '.claude'), { recursive: true })
  mkdirSync(folder)
  writeFileSync(join(userHome, '.claude', 'settings.json'), JSON.stringify(settings))
  return { userHome, folder, env: { PATH: process.env.PATH ?? '', HOME: userHome, ...env } }
}

export interface Killer {
  /** Stands before the program of a hook. */
  readonly path: string
  /** What the hook had answered when the client was killed. */
  readonly answer: () => string
}

/** The client is our parent, or the parent of a shell that it started. */
const CLIENT_ABOVE = `(() => { let pid = process.ppid; while (/sh$/.test(above(pid).name)) pid = above(pid).parent; return pid })()`

/** A hook that hands over what ours answers, and then kills the client, once: before it can have asked its model again. */
export function makeKiller(client: string = CLIENT_ABOVE): Killer {
  const path = join(makeStage({}, {}).folder, 'killer.cjs')
  const once = `${path}.done`
  writeFileSync(
    path,
    `const { spawnSync } = require('node:child_process'); const fs = require('node:fs');
     const { stdout, status } = spawnSync(process.execPath, process.argv.slice(2), { stdio: [0, 'pipe', 2] });
     fs.writeSync(1, stdout);
     const above = (pid) => { const s = fs.readFileSync('/proc/' + pid + '/stat', 'latin1'); const at = s.lastIndexOf(')');
       return { name: s.slice(s.indexOf('(') + 1, at), parent: Number(s.slice(at + 2).split(' ')[1]) } };
     if (stdout.length > 0 && !fs.existsSync(${JSON.stringify(once)})) {
       fs.writeFileSync(${JSON.stringify(once)}, stdout);
       process.kill(${client}, 'SIGKILL');
     }
     process.exit(status);`,
  )
  return { path, answer: () => readFileSync(once, 'utf8') }
}
