import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { supervisorsOf } from '../../test/support/processes.ts'
import { AGENTS, POLICY, replies, tools } from './agents.ts'
import { sleep, startProgram } from './program.ts'
import type { Ended, Started } from './program.ts'

const LEDGER = fileURLToPath(new URL('ledger.sh', import.meta.url))
/** A store that cannot be opened: what a hook is told then goes to the daemon, or into the spool. */
const NO_STORE = 'sqlite:/proc/none/at-all.db'

/** What a daemon says when it is there for anybody. */
export const UP = 'holdfast: window:'

/** One home folder with its daemon, in which one case after the other is played. */
export class Yard {
  readonly home: string
  readonly ledger: string
  readonly #folder: string
  readonly #program: string
  readonly #url: string | undefined
  #daemon: Started | undefined
  /** The lines that commands were made to write. */
  readonly entries = new Set<string>()

  /** On SQLite in its home, or on the store that is given. */
  constructor(program: string, url?: string) {
    this.#program = program
    this.#url = url
    this.#folder = mkdtempSync(join(tmpdir(), 'holdfast-kill-'))
    this.home = join(this.#folder, 'home')
    this.ledger = join(this.#folder, 'ledger')
    mkdirSync(this.home, { mode: 0o700 })
    writeFileSync(this.ledger, '')
    for (const agent of Object.keys(AGENTS)) writeFileSync(join(this.#folder, `${agent}.json`), replies(agent))
    writeFileSync(this.#config, JSON.stringify({ agents: AGENTS, tools: tools(LEDGER, this.ledger), policy: POLICY }))
  }

  get #config(): string {
    return join(this.#folder, 'holdfast.config.json')
  }

  get database(): string {
    return join(this.home, 'holdfast.db')
  }

  get #environment(): Record<string, string> {
    return { HOLDFAST_HOME: this.home, ...(this.#url === undefined ? {} : { HOLDFAST_STORE: this.#url }) }
  }

  get #doomFile(): string {
    return join(this.#folder, 'doom.json')
  }

  get daemon(): Started {
    if (this.#daemon === undefined) throw new Error('there is no daemon')
    return this.#daemon
  }

  get isUp(): boolean {
    return this.#daemon !== undefined && !this.#daemon.isOver()
  }

  /** Starts a daemon, without waiting for it. */
  start(doom?: string): Started {
    const args = ['--config', this.#config, 'up', '--port', '0']
    const place = { env: this.#environment, doomFile: this.#doomFile }
    this.#daemon = startProgram(join(this.#program, 'bin/holdfast'), { args, doom, ...place })
    return this.#daemon
  }

  /** A daemon that is there for anybody. */
  async up(): Promise<void> {
    if (this.isUp) return
    const daemon = this.start()
    if (await daemon.said(UP)) return
    const { code, signal, stderr } = await daemon.ended
    throw new Error(`the daemon did not start (${signal ?? code}): ${stderr.slice(-600)}`)
  }

  /** Another daemon on the same store, with a home of its own. */
  async beside(): Promise<Started> {
    const place = {
      HOLDFAST_HOME: join(this.#folder, 'beside'),
      HOLDFAST_STORE: this.#url ?? `sqlite:${this.database}`,
    }
    const args = ['--config', this.#config, 'up', '--port', '0']
    const daemon = startProgram(join(this.#program, 'bin/holdfast'), { args, env: place })
    if (await daemon.said(UP)) return daemon
    throw new Error(`the daemon beside it did not start: ${(await daemon.ended).stderr.slice(-600)}`)
  }

  async kill(): Promise<void> {
    this.daemon.kill()
    await this.daemon.ended
  }

  /** Where the daemon that is up is to die, or the next supervisor that it starts. */
  tellDoom(who: 'daemon' | 'supervisor', doom: string): void {
    writeFileSync(this.#doomFile, JSON.stringify({ who, doom }))
    this.daemon.kill('SIGWINCH')
  }

  /** When supervisors that were doomed died, as far as they did; each is told once. */
  deathsOfSupervisors(): number[] {
    const file = `${this.#doomFile}.told`
    if (!existsSync(file)) return []
    const deaths = readFileSync(file, 'utf8').split('\n').filter(Boolean)
    rmSync(file)
    return deaths.map((line) => Number(line.split(' ')[0]))
  }

  /** The command line, as it is installed. */
  command(args: readonly string[], doom?: string): Started {
    const whole = ['--config', this.#config, '--json', ...args]
    return startProgram(join(this.#program, 'bin/holdfast'), { args: whole, doom, env: this.#environment })
  }

  /** The command that a client calls at an event of its session. */
  hook(
    says: object,
    options: { readonly thread?: string; readonly noStore?: boolean; readonly doom?: string },
  ): Started {
    const { thread, noStore, doom } = options
    const env = {
      HOLDFAST_HOME: this.home,
      HOME: this.home,
      CLAUDE_PID: String(process.pid),
      ...(thread === undefined ? {} : { HOLDFAST_THREAD: thread }),
      ...(noStore === true ? { HOLDFAST_STORE: NO_STORE } : {}),
    }
    const input = JSON.stringify(says)
    return startProgram(join(this.#program, 'bin/hook.cjs'), { args: ['claude'], env, input, doom })
  }

  /** A command that writes one line after so many milliseconds. */
  entry(name: string, ms: number): [string, ...string[]] {
    this.entries.add(name)
    return [LEDGER, 'entry', this.ledger, name, (ms / 1_000).toFixed(3)]
  }

  /** A command that writes the id of its run after so many milliseconds. */
  ownRun(ms: number): [string, ...string[]] {
    return [LEDGER, 'run', this.ledger, (ms / 1_000).toFixed(3)]
  }

  lines(): string[] {
    return readFileSync(this.ledger, 'utf8').split('\n').filter(Boolean)
  }

  spooled(): string[] {
    const folder = join(this.home, 'spool')
    return existsSync(folder) ? readdirSync(folder).filter((name) => /^\d/.test(name)) : []
  }

  supervisors(): number {
    return supervisorsOf(this.home).length
  }

  openStore(): Promise<Store> {
    return this.#url === undefined ? openSqliteStore({ path: this.database }) : openPostgresStore({ url: this.#url })
  }

  /** Opened for a moment: while somebody has it open, nobody else's start has to recover its log. */
  async withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
    const store = await this.openStore()
    try {
      return await work(store)
    } finally {
      await store.close()
    }
  }

  /** Nothing of it is left. */
  async close(): Promise<void> {
    if (this.#daemon !== undefined) await this.kill()
    for (let tries = 0; tries < 100 && this.supervisors() > 0; tries++) await sleep(50)
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

export type { Ended, Started }
