import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

import type { Begin, Order, WrongClock } from './host.ts'

const PROGRAM = new URL('host.ts', import.meta.url).pathname
/** What a host compiled is there for the next one, which then starts with a third of the work. */
const { NODE_COMPILE_CACHE = new URL('../../node_modules/.cache/holdfast', import.meta.url).pathname } = process.env
/** However busy the machine is: what takes longer hangs. */
const PATIENCE_MS = 60_000

/** One worker process, as the one who started it sees it. */
export class Host {
  readonly #process: ChildProcess
  readonly #exited: Promise<string>
  #said: string[] = []
  readonly #listeners = new Set<() => void>()
  #goesOn: NodeJS.Timeout | undefined
  #clockFile = ''
  /** How it ended, if it did. */
  exit: string | undefined

  constructor() {
    this.#process = spawn(process.execPath, [PROGRAM], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, NODE_COMPILE_CACHE },
    })
    this.#process.stdin!.on('error', () => {})
    this.#exited = new Promise((resolve) => this.#process.once('exit', (code, signal) => resolve(signal ?? `${code}`)))
    void this.#exited.then((how) => {
      this.exit = how
      this.#tell()
    })
    createInterface({ input: this.#process.stdout! }).on('line', (line) => {
      this.#said.push(line)
      this.#tell()
    })
  }

  get said(): readonly string[] {
    return this.#said
  }

  get pid(): number {
    return this.#process.pid!
  }

  begin(order: Begin): void {
    this.#said = []
    this.#clockFile = order.clockFile
    writeFileSync(this.#clockFile, JSON.stringify(order.clock))
    this.#order(order)
  }

  /** The id of its worker, once it has one. */
  get workerId(): string | undefined {
    return this.#said.find((line) => line.startsWith('worker '))?.split(' ')[1]
  }

  /** One that sleeps sees it when it wakes. */
  setClock(clock: WrongClock): void {
    writeFileSync(this.#clockFile, JSON.stringify(clock))
    this.#order({ do: 'clock', clock })
  }

  /** Until it is through with its store; how many runs it had to let go of. */
  async end(): Promise<number> {
    this.#order({ do: 'end' })
    const line = await this.hears('ended', 'broken')
    clearInterval(this.#goesOn)
    this.#goesOn = undefined
    return Number(line?.split(' ')[1] ?? 0)
  }

  /** The first line that begins with one of these words; undefined if the process has ended. */
  async hears(...words: readonly string[]): Promise<string | undefined> {
    const deadline = performance.now() + PATIENCE_MS
    for (;;) {
      const line = this.#said.find((each) => words.includes(each.split(' ')[0] ?? ''))
      if (line !== undefined || this.exit !== undefined) return line
      if (performance.now() > deadline) throw new Error(`process ${this.pid} never said ${words.join(' or ')}`)
      await this.#news()
    }
  }

  /** Whether it stands still, by what the system says of it. */
  get isStopped(): boolean {
    try {
      return /^\d+ \(.*\) [Tt]/s.test(readFileSync(`/proc/${this.pid}/stat`, 'utf8'))
    } catch {
      return false
    }
  }

  /** From now on nothing stops it for long. */
  goOn(): void {
    this.#goesOn ??= setInterval(() => {
      if (this.isStopped) this.#process.kill('SIGCONT')
    }, 20)
    if (this.isStopped) this.#process.kill('SIGCONT')
  }

  /** Stopped or not. */
  async kill(): Promise<void> {
    clearInterval(this.#goesOn)
    this.#process.kill('SIGKILL')
    await this.#exited
  }

  #order(order: Order): void {
    this.#process.stdin!.write(`${JSON.stringify(order)}\n`)
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }

  #news(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#listeners.delete(done)
        resolve()
      }
      const timer = setTimeout(done, 1_000)
      this.#listeners.add(done)
    })
  }
}

/** A lease is so many times what it takes to open a store and begin: as in real life, where it is 15 s. */
const LEASE_PER_START = 8
/** Node itself takes so many times as long to be there. */
const STARTS_A_PROCESS = 4
const LONGEST_LEASE_MS = 8_000

/** Processes are used again: a zombie that has come back has to be as good as new. */
export class Hosts {
  readonly #idle: Host[] = []
  readonly #all = new Set<Host>()

  #startMs = 0

  /** How long a lease has to be on a machine that is as busy as this one. */
  leaseMs(wanted: number): number {
    return Math.max(wanted, Math.min(Math.round(this.#startMs * LEASE_PER_START), LONGEST_LEASE_MS))
  }

  /** So long one took to be up. */
  hasStarted(ms: number): void {
    this.#startMs = this.#startMs === 0 ? ms : this.#startMs * 0.8 + ms * 0.2
  }

  async take(): Promise<Host> {
    const known = this.#idle.pop()
    if (known !== undefined && known.exit === undefined) return known
    const host = new Host()
    this.#all.add(host)
    const began = performance.now()
    await host.hears('ready')
    this.hasStarted((performance.now() - began) / STARTS_A_PROCESS)
    return host
  }

  async giveBack(host: Host, isGood: boolean): Promise<void> {
    if (isGood && host.exit === undefined) return void this.#idle.push(host)
    this.#all.delete(host)
    await host.kill()
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((host) => host.kill()))
  }
}
