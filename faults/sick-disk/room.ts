import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'

import { supervisorsOf } from '../../test/support/processes.ts'
import type { Disguise } from './fault.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const PROGRAM = join(REPOSITORY, 'bin', 'holdfast')
const HOOK = join(REPOSITORY, 'bin', 'hook.cjs')
const LEDGER = join(REPOSITORY, 'test', 'support', 'ledger.mjs')
const LEDGER_TOOL = join(REPOSITORY, 'test', 'support', 'ledger-tool.mjs')
/** Nothing here takes a tenth of it on a busy machine; who takes longer hangs. */
const HANG_MS = 60_000

/** A disk that stays sick is waited for, by design; then whoever sits there gives up. */
const GIVE_UP_MS = 10_000

/** Whoever ends this process by a signal ends what it started, and leaves nothing behind. */
const living = new Set<ChildProcess>()
const folders = new Set<string>()
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    for (const child of living) child.kill('SIGKILL')
    process.kill(process.pid, signal)
  })

const HEALTHY: Disguise = { before: [], env: {} }

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** What is done while it runs; it is told what was said so far. */
export type During = (child: ChildProcess, said: () => string) => Promise<void>

/** A home folder with what is beside it, and the real programs. */
export class Room {
  readonly folder: string
  readonly home: string
  readonly ledger: string
  readonly config: string

  constructor(template?: Room) {
    const memory = existsSync('/dev/shm') && process.env.TMPDIR === undefined ? '/dev/shm' : tmpdir()
    this.folder = mkdtempSync(join(memory, 'holdfast-sick-'))
    folders.add(this.folder)
    if (template !== undefined) cpSync(template.folder, this.folder, { recursive: true })
    this.home = join(this.folder, 'home')
    this.ledger = join(this.folder, 'ledger.txt')
    this.config = join(this.folder, 'holdfast.config.json')
    this.#configure()
  }

  /** An agent whose one write waits for a person. */
  #configure(): void {
    const input = { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] }
    // The same text in every room: what was approved is what is done.
    const command = ['node', LEDGER_TOOL, 'append', './ledger.txt']
    const replies = [{ toolCalls: [{ tool: 'ledger', input: { entry: 'asked' } }] }, { text: 'done' }]
    writeFileSync(join(this.folder, 'clerk.json'), JSON.stringify({ replies }))
    const tools = { ledger: { effect: 'write', description: 'Writes a line', input, command } }
    const agents = { clerk: { model: 'scripted:./clerk.json', tools: ['ledger'] } }
    writeFileSync(this.config, JSON.stringify({ agents, tools }))
  }

  append(entry: string): readonly string[] {
    return [process.execPath, LEDGER, 'append', this.ledger, entry]
  }

  effects(entry: string): number {
    const lines = existsSync(this.ledger) ? readFileSync(this.ledger, 'utf8').split('\n') : []
    return lines.filter((line) => line.split(' ')[0] === entry).length
  }

  /** The first column of the first row. */
  ask(text: string): string {
    const database = new DatabaseSync(join(this.home, 'holdfast.db'), { readOnly: true })
    try {
      return String(Object.values(database.prepare(text).get() ?? {})[0])
    } finally {
      database.close()
    }
  }

  holdfast(args: readonly string[], disguise = HEALTHY, during?: During): Promise<Ended> {
    return this.#run([process.execPath, PROGRAM, '--config', this.config, ...args], disguise, '', during)
  }

  hook(says: object, disguise = HEALTHY): Promise<Ended> {
    return this.#run([process.execPath, HOOK, 'claude'], disguise, JSON.stringify(says))
  }

  /** What was started with a disk that stays sick would wait for it for ten minutes. */
  endSupervisors(): void {
    for (const { pid } of supervisorsOf(this.home)) process.kill(pid, 'SIGKILL')
  }

  remove(): void {
    this.endSupervisors()
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 })
    folders.delete(this.folder)
  }

  async #run(
    command: readonly string[],
    { before, env, isLasting = false }: Disguise,
    input: string,
    during?: During,
  ): Promise<Ended> {
    const [program = '', ...args] = [...before, ...command]
    const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env
    const whole = { PATH, NODE_COMPILE_CACHE, HOME: this.folder, HOLDFAST_HOME: this.home, NO_COLOR: '1', ...env }
    const options = {
      cwd: this.folder,
      env: whole,
      timeout: isLasting ? GIVE_UP_MS : HANG_MS,
      killSignal: 'SIGKILL' as const,
    }
    const child = spawn(program, args, options)
    living.add(child)
    child.once('exit', () => living.delete(child))
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    const ended = new Promise<Ended>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
    })
    await during?.(child, () => stderr)
    return ended
  }
}
