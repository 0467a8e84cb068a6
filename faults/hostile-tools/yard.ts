import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { createClient } from '../../src/api/client.ts'
import type { Api } from '../../src/api/client.ts'
import { systemClock } from '../../src/base/clock.ts'
import { newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import { findRun, isTerminal } from '../../src/runs/run.ts'
import { submitRun } from '../../src/runs/submit.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import type { Strength } from './plan.ts'
import { waitedOf } from './survivors.ts'

const PROGRAM = new URL('daemon.ts', import.meta.url).pathname
/** From TERM to KILL: what a command has to end by itself is not part of the promise that it ends. */
export const GRACE_MS = 300
const ASK_MS = 200

/** One daemon and its folder. Where it is too strong, what makes it so is taken away from it. */
export class Yard {
  readonly folder: string
  readonly strength: Strength
  readonly store: Store
  readonly #token = random.hex(16)
  #daemon: ChildProcess | undefined
  #api: Api | undefined
  #asking: NodeJS.Timeout | undefined
  /** The longest that it took to answer, in milliseconds, without what it waited for a processor. */
  slowestMs = 0
  readonly unanswered: string[] = []
  /** How its commands are held together, as one of them says. */
  containment = ''

  private constructor(folder: string, strength: Strength, store: Store) {
    this.folder = folder
    this.strength = strength
    this.store = store
  }

  static async open(strength: Strength): Promise<Yard> {
    const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-hostile-'))
    const home = join(folder, 'home')
    mkdirSync(home)
    if (strength === 'no namespace either') withoutUnshare(join(folder, 'bin'))
    const store = await openStore(`sqlite:${join(home, 'holdfast.db')}`, { clock: systemClock, random })
    const yard = new Yard(folder, strength, store)
    await yard.start()
    yard.containment = await containmentIn(store)
    return yard
  }

  get home(): string {
    return join(this.folder, 'home')
  }

  get pid(): number {
    return this.#daemon?.pid ?? 0
  }

  get api(): Api {
    if (this.#api === undefined) throw new Error('its daemon is not there')
    return this.#api
  }

  async start(): Promise<void> {
    const serve = [process.execPath, PROGRAM, this.home, this.#token, String(GRACE_MS)]
    const [program = '', ...args] = this.strength === 'the best' ? serve : [...WITHOUT_CGROUPS, ...serve]
    const PATH = this.strength === 'no namespace either' ? join(this.folder, 'bin') : (process.env['PATH'] ?? '')
    const daemon = spawn(program, args, {
      env: { PATH, NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#daemon = daemon
    const [url] = (await Promise.race([
      once(createInterface({ input: daemon.stdout }), 'line'),
      once(daemon, 'exit').then(() => Promise.reject(new Error('a daemon could not be started'))),
    ])) as [string]
    this.#api = createClient({ url, token: this.#token, fetch: fetchAnew })
    this.#asking = setInterval(() => void this.#ask(), ASK_MS)
  }

  async kill(): Promise<void> {
    clearInterval(this.#asking)
    const daemon = this.#daemon
    this.#daemon = this.#api = undefined
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return
    daemon.kill('SIGKILL')
    await once(daemon, 'exit')
  }

  /** Somebody looks, all the while. */
  async #ask(): Promise<void> {
    const [began, waited, pid] = [performance.now(), waitedOf(this.pid), this.pid]
    const { loopMs } = this
    const answer = await this.api.call('status', {}).catch(inFull)
    // Who was killed meanwhile owes no answer.
    if (pid !== this.pid) return
    if (typeof answer === 'string') this.unanswered.push(answer)
    const tookMs = performance.now() - began - (waitedOf(pid) - waited) - (this.loopMs - loopMs)
    this.slowestMs = Math.max(this.slowestMs, tookMs)
  }

  /** What this process itself waited for a processor. */
  get loopMs(): number {
    return waitedOf(process.pid)
  }

  async close(): Promise<void> {
    await this.kill()
    await this.store.close()
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/**
 * A connection for each question. One that is kept is closed by the server after some seconds; whoever was kept from the processor
 * meanwhile has not heard of it, and asks there.
 */
const fetchAnew: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers)
  headers.set('Connection', 'close')
  return fetch(input, { ...init, headers })
}

/** With what was behind it. */
function inFull(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? `, because of ${inFull(error.cause)}` : ''
  return `${String(error)}${cause}`
}

/** For the daemon and its commands alone there are no cgroups. */
const WITHOUT_CGROUPS = '/usr/bin/unshare --mount --propagation private /bin/sh -c'
  .split(' ')
  .concat('umount -R -l /sys/fs/cgroup && exec "$@"', 'sh')

/** All programs of the machine but the one that makes namespaces. */
function withoutUnshare(folder: string): void {
  mkdirSync(folder)
  for (const from of ['/bin', '/usr/bin'])
    for (const name of readdirSync(from))
      if (name !== 'unshare' && name !== 'nsenter' && !existsSync(join(folder, name)))
        symlinkSync(join(from, name), join(folder, name))
}

async function containmentIn(store: Store): Promise<string> {
  const id = newRunId(random)
  const request = { kind: 'command', argv: ['/bin/sh', '-c', ':'], cwd: '/', env: {} } as const
  await store.apply(submitRun, { id, threadId: newThreadId(random), agent: 'command', request })
  for (;;) {
    const run = await store.read(findRun, id)
    if (run?.state === 'succeeded') return (run.result as { readonly containment: string }).containment
    if (run === undefined || isTerminal(run.state)) throw new Error(`no command can be run here: ${run?.error}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
