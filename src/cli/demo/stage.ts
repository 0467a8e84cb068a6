import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { sleep } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { HoldfastError } from '../../base/errors.ts'
import { PACKAGE_FOLDER, besideModules } from '../../base/place.ts'
import { killProcess, processIdentity } from '../../processes/identity.ts'
import { processesNaming, startProgram } from './outside.ts'
import type { Ended, Program, SeenProcess } from './outside.ts'
import { demoFiles } from './script.ts'

const HOLDFAST = join(PACKAGE_FOLDER, 'bin', 'holdfast')
const PROGRAMS = ['ledger.mjs', 'stubborn.mjs']

/** Nothing here takes longer, however busy the machine; what does has failed. */
const PATIENCE_MS = 30_000
const LOOK_AGAIN_MS = 20

/** What would lead the demo to somebody's real installation. */
const FOREIGN = ['HOLDFAST_HOME', 'HOLDFAST_STORE', 'HOLDFAST_URL', 'HOLDFAST_TOKEN', 'HOLDFAST_THREAD', 'HOLDFAST_RUN']

/** A folder with a configuration, two programs and a home, and the command line to use it with, as its user would. */
export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'))
  readonly home = join(this.folder, 'home')
  readonly config = join(this.folder, 'holdfast.config.json')
  readonly #clock: Clock
  readonly #interrupted: AbortSignal
  readonly #env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !FOREIGN.includes(name)))
  #daemon: Program | undefined

  constructor(clock: Clock, interrupted: AbortSignal) {
    this.#clock = clock
    this.#interrupted = interrupted
    for (const name of PROGRAMS) {
      copyFileSync(besideModules(`cli/demo/${name}`), join(this.folder, name))
    }
    for (const [name, content] of Object.entries(demoFiles(this.folder, process.execPath))) {
      writeFileSync(join(this.folder, name), `${JSON.stringify(content, null, 2)}\n`)
    }
  }

  file(name: string): string {
    return join(this.folder, name)
  }

  read(name: string): string {
    return existsSync(this.file(name)) ? readFileSync(this.file(name), 'utf8') : ''
  }

  /** The ledger program waits as long as there is such a file. */
  hold(name: string): void {
    writeFileSync(this.file(name), '')
  }

  letGo(name: string): void {
    rmSync(this.file(name))
  }

  #start(args: readonly string[]): Program {
    const places = ['--home', this.home, '--config', this.config]
    return startProgram([process.execPath, HOLDFAST, ...places, ...args], this.#env)
  }

  /** Runs the command line to its end. */
  async holdfast(...args: readonly string[]): Promise<Ended> {
    const program = this.#start(args)
    const over = new AbortController()
    const limit = sleep(this.#clock, PATIENCE_MS, AbortSignal.any([this.#interrupted, over.signal]))
    const ended = await Promise.race([program.ended, limit])
    over.abort()
    if (ended !== undefined) return ended
    program.kill('SIGKILL')
    throw this.#gaveUp(`holdfast ${args.join(' ')} does not end`, program.printed())
  }

  async json<T>(...args: readonly string[]): Promise<T> {
    const { code, stdout, stderr } = await this.holdfast(...args, '--json')
    if (code === 0) return JSON.parse(stdout) as T
    throw this.#gaveUp(`holdfast ${args.join(' ')} ended with ${code}`, stdout + stderr)
  }

  /** Sends to a new thread of this agent, and says which run takes it. */
  async send(agent: string, text: string): Promise<string> {
    return (await this.json<{ readonly runId: string }>('send', '--agent', agent, text)).runId
  }

  /** The daemon that runs; a new one if none does. */
  async up(): Promise<Program> {
    if (this.#daemon !== undefined && !this.#daemon.hasEnded()) return this.#daemon
    const daemon = this.#start(['up', '--port', '0'])
    this.#daemon = daemon
    await this.until('the daemon says that it is up', () => {
      if (daemon.hasEnded()) throw this.#gaveUp('the daemon ended', daemon.printed())
      return daemon.printed().includes('up:')
    })
    return daemon
  }

  /** With SIGKILL; returns when it is gone. */
  async killDaemon(): Promise<void> {
    this.#daemon?.kill('SIGKILL')
    await this.#daemon?.ended
  }

  /** The supervisors of commands; the daemon's death does not concern them. */
  supervisors(): SeenProcess[] {
    return processesNaming(this.home).filter(({ command }) => command.includes('supervisor-main'))
  }

  /** Returns when they are gone. */
  async kill(processes: readonly SeenProcess[]): Promise<void> {
    for (const { pid } of processes) {
      const identity = processIdentity(pid)
      if (identity !== undefined) killProcess(identity)
    }
    const pids = new Set(processes.map(({ pid }) => pid))
    await this.until('what was killed is gone', () => !processesNaming(this.folder).some(({ pid }) => pids.has(pid)))
  }

  /** Waits for the run's end, by the events that the command line follows, and says what became of it. */
  async ended(runId: string): Promise<ShownRun> {
    await this.holdfast('runs', 'events', runId, '--follow')
    return this.json<ShownRun>('runs', 'show', runId)
  }

  /** A deadline, not a pause, decides that something does not happen. */
  async until(what: string, look: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = this.#clock.monotonicMs() + PATIENCE_MS
    while (!(await look())) {
      this.#interrupted.throwIfAborted()
      if (this.#clock.monotonicMs() > deadline) throw this.#gaveUp(`waited in vain until ${what}`, this.#said())
      await sleep(this.#clock, LOOK_AGAIN_MS, this.#interrupted)
    }
  }

  /** A Ctrl-C reaches everyone in the foreground: what ends by it has not failed. */
  #gaveUp(what: string, seen: string): HoldfastError {
    this.#interrupted.throwIfAborted()
    return new HoldfastError('demo/failed', `${what}; seen: ${seen.trim() === '' ? 'nothing' : seen.trim()}`, {
      remedy: '`holdfast doctor` says whether this installation is in order; please report it if it is',
    })
  }

  #said(): string {
    return `${this.#daemon?.printed() ?? ''}${this.read('ledger.txt')}${this.read('payments.txt')}`
  }

  /** Not everybody who names the folder is: somebody may be reading the ledger. */
  #ours(): SeenProcess[] {
    const programs = [HOLDFAST, 'supervisor-main', ...PROGRAMS.map((name) => this.file(name))]
    return processesNaming(this.folder).filter(({ command }) => programs.some((program) => command.includes(program)))
  }

  /** Ends every process that this stage began, whoever started it, and removes the folder unless it is to be kept. */
  async strike(keep: boolean): Promise<void> {
    const deadline = this.#clock.monotonicMs() + PATIENCE_MS
    for (let left = this.#ours(); left.length > 0; left = this.#ours()) {
      for (const { pid } of left) {
        const identity = processIdentity(pid)
        if (identity !== undefined) killProcess(identity)
      }
      if (this.#clock.monotonicMs() > deadline)
        throw new HoldfastError('demo/left-behind', `processes of the demo do not end: ${JSON.stringify(left)}`, {
          remedy: 'end them with kill -9, and please report this: it is a defect',
        })
      await sleep(this.#clock, LOOK_AGAIN_MS)
    }
    if (!keep) rmSync(this.folder, { recursive: true, force: true })
  }
}

/** What the demo reads of `holdfast runs show --json`. */
export interface ShownRun {
  readonly id: string
  readonly state: string
  readonly attempt: number
  readonly startedAt: string
  readonly endedAt: string
  readonly usage: { readonly inputTokens: number }
  readonly actions: readonly {
    readonly tool: string
    readonly input: { readonly entry?: string }
    readonly state: string
    readonly settledBy?: string
    readonly error?: string
  }[]
}
