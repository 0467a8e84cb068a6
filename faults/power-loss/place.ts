import { spawn } from 'node:child_process'
import { writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { Dice } from '../simulation/seeded.ts'
import { ledgerOf } from './trace.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const PROGRAM = join(REPOSITORY, 'bin', 'holdfast')
const HOOK = join(REPOSITORY, 'bin', 'hook.cjs')
const LEDGER = join(REPOSITORY, 'test', 'support', 'ledger.mjs')
const LEDGER_TOOL = join(REPOSITORY, 'test', 'support', 'ledger-tool.mjs')

/** Something that somebody was told, and that must be so from then on, whatever is lost. */
export interface Claim {
  readonly what: string
  /** Must find a row in the database. */
  readonly rows?: string
  /** All that a command printed must be in its file. */
  readonly output?: { readonly run: string; readonly bytes: number }
  /** A copy of the database in which that finds a row. */
  readonly backup?: { readonly path: string; readonly rows: string }
  /** What became of the files of a run: the repository must say the same. */
  readonly workspace?: { readonly run: string; readonly state: 'landed' | 'discarded' | 'kept' }
}

export interface Mark {
  readonly claim: Claim
  /** The words by which it was told, if that was before this mark. */
  readonly said?: string
}

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** What a life has: a home on the disk that loses its power, the real programs, and a ledger that is not on it. */
export class Place {
  readonly root: string
  readonly home: string
  readonly ledger: string
  readonly dice: Dice
  readonly config: string

  constructor(root: string, seed: number) {
    this.root = root
    this.home = join(root, 'home')
    this.ledger = ledgerOf(root)
    this.config = `${root}.config.json`
    this.dice = new Dice(seed)
    writeFileSync(this.config, '{}')
  }

  configure(config: object): void {
    writeFileSync(this.config, JSON.stringify(config))
  }

  /** The name of a model that answers so. */
  script(script: object): string {
    const file = `${this.root}.script.json`
    writeFileSync(file, JSON.stringify(script))
    return `scripted:${file}`
  }

  claim(what: string, claim: Omit<Claim, 'what'>, said?: string): void {
    const mark: Mark = { claim: { what, ...claim }, ...(said === undefined ? {} : { said }) }
    writeSync(1, `mark ${JSON.stringify(mark)}\n`)
  }

  holdfast(...args: readonly string[]): Promise<Ended> {
    return this.#start(PROGRAM, ['--config', this.config, ...args]).ended
  }

  /** As a client of that session tells it. */
  hook(says: object, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
    return this.#start(process.execPath, [HOOK, 'claude'], env, JSON.stringify(says)).ended
  }

  async up(): Promise<{ readonly stop: () => Promise<void> }> {
    const { child, ended, said } = this.#start(PROGRAM, ['--config', this.config, 'up', '--port', '0'])
    await said('up:')
    return { stop: () => (child.kill('SIGTERM'), ended.then(() => {})) }
  }

  append(entry: string): readonly string[] {
    return [process.execPath, LEDGER, 'append', this.ledger, entry]
  }

  /** A tool that writes into the ledger what it is told, and the key of its action. */
  get ledgerTool(): readonly string[] {
    return [process.execPath, LEDGER_TOOL, 'append', this.ledger]
  }

  #start(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}, input = '') {
    const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env
    const whole = { PATH, NODE_COMPILE_CACHE, HOME: this.root, HOLDFAST_HOME: this.home, NO_COLOR: '1', ...env }
    const child = spawn(program, args, { cwd: '/', env: whole, stdio: 'pipe' })
    let [stdout, stderr] = ['', '']
    let heard = () => {}
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
      heard()
    })
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    const ended = new Promise<Ended>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code) => resolve({ code, stdout, stderr }))
    })
    const said = (text: string) =>
      new Promise<void>((resolve, reject) => {
        heard = () => (stderr.includes(text) ? resolve() : undefined)
        void ended.then(() => reject(new Error(`it ended without "${text}": ${stderr}`)))
      })
    return { child, ended, said }
  }
}
