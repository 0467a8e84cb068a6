import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { inject, onTestFinished } from 'vitest'

import type { RunView } from '../../src/runs/view.ts'
import { temporaryFolder } from './engines.ts'
import { peekState } from './peek.ts'
import { until } from './until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The command line, built: it starts in two thirds of the time. */
export const PROGRAM = inject('program')
const LEDGER = fileURLToPath(new URL('./ledger.mjs', import.meta.url))
const NODE = process.execPath

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly pid: number
  readonly ended: Promise<Ended>
  kill(signal: NodeJS.Signals): void
  /** Resolves when standard output or error has had this text. */
  said(text: string): Promise<void>
}

/** One installation, as its user has it: a home folder, the command line, and a ledger that counts effects. */
export class Installation {
  readonly home: string
  readonly ledger: string
  readonly #store: string | undefined

  constructor(options: { readonly store?: string; readonly lease?: string } = {}) {
    const folder = temporaryFolder()
    this.home = join(folder, 'home')
    this.ledger = join(folder, 'ledger.txt')
    this.#store = options.store
    this.#configure(folder, options.lease)
  }

  #config = ''

  get configuration(): string {
    return this.#config
  }

  #configure(folder: string, lease: string | undefined): void {
    this.#config = join(folder, 'holdfast.config.json')
    writeFileSync(this.#config, JSON.stringify(lease === undefined ? {} : { lease }))
  }

  start(args: readonly string[], env: Record<string, string> = {}): Running {
    const config = args.includes('--config') ? [] : ['--config', this.#config]
    const store = this.#store === undefined ? {} : { HOLDFAST_STORE: this.#store }
    return startProcess(PROGRAM, [...config, ...args], { HOLDFAST_HOME: this.home, ...store, ...env })
  }

  run(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
    return this.start(args, env).ended
  }

  async json<T>(args: readonly string[]): Promise<T> {
    const { code, stdout, stderr } = await this.run(['--json', ...args])
    try {
      return JSON.parse(stdout) as T
    } catch {
      throw new Error(`no JSON from ${args.join(' ')} (exit ${code}): ${stdout}${stderr}`)
    }
  }

  async up(): Promise<Running> {
    const daemon = this.start(['up'])
    await daemon.said('holdfast: up:')
    return daemon
  }

  async detach(...command: readonly string[]): Promise<string> {
    return (await this.json<RunView>(['run', '--detach', '--', ...command])).id
  }

  show(id: string): Promise<RunView> {
    return this.json<RunView>(['runs', 'show', id])
  }

  /** A command that appends to the ledger after a while, or once there is such a file. */
  append(entry: string, wait: number | string = 0): readonly string[] {
    return [NODE, LEDGER, 'append', this.ledger, entry, String(wait)]
  }

  /** For a command that is to go on for as long as the test wants it to. */
  gate(): { readonly path: string; open(): void } {
    const path = `${this.ledger}.gate-${(this.#gates += 1)}`
    return { path, open: () => writeFileSync(path, '') }
  }

  #gates = 0

  effects(): string[] {
    return existsSync(this.ledger) ? readFileSync(this.ledger, 'utf8').split('\n').filter(Boolean) : []
  }

  /** Waits until the run is in one of these states. */
  async reaches(id: string, ...states: readonly string[]): Promise<RunView> {
    return until(`${id} is ${states.join(' or ')}`, async () => {
      const state = await peekState(this.#store ?? `sqlite:${join(this.home, 'holdfast.db')}`, id)
      if (state === undefined || !states.includes(state)) return undefined
      const run = await this.show(id)
      return states.includes(run.state) ? run : undefined
    })
  }
}

export function startProcess(program: string, args: readonly string[], env: Record<string, string>): Running {
  const { PATH = '', HOME = '/', NODE_COMPILE_CACHE = '' } = process.env
  const inherited = { PATH, HOME, NODE_COMPILE_CACHE }
  const child = spawn(program, args, { cwd: ROOT, env: { ...inherited, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const output = collect(child)
  return {
    pid: child.pid!,
    ended: new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code) => resolve({ code, ...output }))
    }),
    kill: (signal) => void child.kill(signal),
    said: async (text) => {
      await until(`"${text}" is said`, () => {
        if (`${output.stdout}${output.stderr}`.includes(text)) return Promise.resolve(true)
        if (child.exitCode === null) return Promise.resolve(undefined)
        throw new Error(`it ended (${child.exitCode}) and never said "${text}": ${output.stdout}${output.stderr}`)
      })
    },
  }
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  return output
}

export { processesWith, supervisorsOf } from './processes.ts'
export { until } from './until.ts'
