import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'

import { supervisorsOf } from '../../test/support/processes.ts'
import type { Disguise } from './fault.ts'

/** Shells, not Node: what an effect is does not matter here, and it is most of what starts. */
const LEDGER = fileURLToPath(new URL('../kill/ledger.sh', import.meta.url))
const LEDGER_TOOL = 'echo "asked $HOLDFAST_ACTION_KEY" >> ./ledger.txt && echo {}'
/** Nothing here takes a tenth of it on a busy machine; who takes longer hangs. */
const HANG_MS = 60_000

/** A disk that stays sick is waited for, by design: whoever sits there and was told so gives up; one who is told nothing, later. */
const GIVE_UP_MS = 8_000
const GIVE_UP_SILENT_MS = 30_000

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

/** Else each home would have its own, and each program would be compiled anew. */
export const compiledCodeOf = (program: string): string => join(program, 'compiled')

const HEALTHY: Disguise = { before: [], env: {} }

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** What is done while it runs; it is told what was said so far. */
export type During = (child: ChildProcess, said: () => string) => Promise<void>

/** A home folder with what is beside it, and the real programs, built. */
export class Room {
  readonly program: string
  readonly folder: string
  readonly home: string
  readonly ledger: string
  readonly config: string

  /** `program`: the folder that was built. */
  constructor(program: string, template?: Room) {
    this.program = program
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
    const command = ['sh', '-c', LEDGER_TOOL]
    const replies = [{ toolCalls: [{ tool: 'ledger', input: { entry: 'asked' } }] }, { text: 'done' }]
    writeFileSync(join(this.folder, 'clerk.json'), JSON.stringify({ replies }))
    const tools = { ledger: { effect: 'write', description: 'Writes a line', input, command } }
    const agents = { clerk: { model: 'scripted:./clerk.json', tools: ['ledger'] } }
    writeFileSync(this.config, JSON.stringify({ agents, tools }))
  }

  append(entry: string): readonly string[] {
    return ['sh', LEDGER, 'entry', this.ledger, entry, '0']
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
    return this.#run(
      [process.execPath, join(this.program, 'bin', 'holdfast'), '--config', this.config, ...args],
      disguise,
      '',
      during,
    )
  }

  hook(says: object, disguise = HEALTHY): Promise<Ended> {
    return this.#run(
      [process.execPath, join(this.program, 'bin', 'hook.cjs'), 'claude'],
      disguise,
      JSON.stringify(says),
    )
  }

  async supervisorsEnded(): Promise<void> {
    const until = performance.now() + HANG_MS
    while (supervisorsOf(this.home).length > 0 && performance.now() < until)
      await new Promise((resolve) => setTimeout(resolve, 20))
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
    const { PATH = '', NODE_COMPILE_CACHE = compiledCodeOf(this.program) } = process.env
    const whole = { PATH, NODE_COMPILE_CACHE, HOME: this.folder, HOLDFAST_HOME: this.home, NO_COLOR: '1', ...env }
    const child = spawn(program, args, { cwd: this.folder, env: whole })
    const endIn = (ms: number) => setTimeout(() => child.kill('SIGKILL'), ms).unref()
    let patience = endIn(isLasting ? GIVE_UP_SILENT_MS : HANG_MS)
    const giveUp = () => {
      clearTimeout(patience)
      patience = endIn(GIVE_UP_MS)
    }
    if (isLasting) child.stderr.once('data', giveUp)
    living.add(child)
    child.once('exit', () => {
      clearTimeout(patience)
      living.delete(child)
    })
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
