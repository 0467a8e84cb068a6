import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { getCompileCacheDir } from 'node:module'
import type { Socket } from 'node:net'
import { join, resolve as absolute } from 'node:path'
import { sleep, systemClock as clock } from '../base/clock.ts'
import { HoldfastError } from '../base/errors.ts'
import { ensureFolder } from '../base/files.ts'
import { modulePath } from '../base/place.ts'
import { refuseMissing } from '../secrets/codec.ts'
import { secretsAt } from '../secrets/folders.ts'
import { writeSpec } from './attempt-folder.ts'
import { completeSpec, type CommandSpec } from './command.ts'
import { dumpsBefore } from './crash-dumps.ts'
import { HANDOVER_FD, handOver, hearTrouble, tellSecrets } from './handover.ts'
import { processIdentity, thisPlace } from './identity.ts'
import { openInputFile } from './input-file.ts'
import { childProcess } from './node-parts.ts'
import { MARK_VARIABLE, nestMark } from './process-table.ts'
import { tellToStop, type Outcome, type Supervised } from './supervised.ts'
import { takeBack } from './take-over.ts'

/** Receives output as it comes. While a returned promise is pending, the command is held back. */
export type OutputReader = (chunk: Buffer) => void | Promise<void>

export interface StartOptions {
  /**
   * `inherit`: the command reads what this process would read; `pipe`: what is written to `input`; `file`: that file.
   * Otherwise it has nothing to read.
   */
  readonly stdin?: 'inherit' | 'pipe' | 'none' | { readonly file: string }
  readonly onStdout?: OutputReader
  readonly onStderr?: OutputReader
  /** Hears why its end is late, if its supervisor cannot write it down. */
  readonly onTrouble?: (sentence: string) => void
  /** A private folder for compiled code. From TypeScript sources it makes a start some 30 ms faster. */
  readonly codeCache?: string
}

const PROGRAM = modulePath('processes/supervisor-main')

// A supervisor moves bytes and waits: a small heap, no compiler threads, and no debugger that a signal could open.
const FLAGS = ['--max-semi-space-size=1', '--max-old-space-size=128', '--disable-sigusr1', '--no-warnings']

// A reader that is still busy when everything is over is not waited for any longer.
const LAST_READ_MS = 3_000

/** Starts a command under a supervisor that outlives this process. The folder is for this one attempt. */
export async function startCommand(path: string, spec: CommandSpec, options: StartOptions = {}): Promise<Supervised> {
  const folder = absolute(path)
  refuseMissing(spec.argv, spec.env)
  await ensureFolder(folder)
  const live = { stdout: options.onStdout !== undefined, stderr: options.onStderr !== undefined }
  const sealed = secretsAt(folder) !== undefined
  await writeSpec(folder, completeSpec(spec, { live, sealed, place: thisPlace() }))
  const supervisor = await spawnSupervisor(folder, spec, options)
  const identity = processIdentity(supervisor.pid)
  const read = [readLive(supervisor, 3, options.onStdout), readLive(supervisor, 4, options.onStderr)]
  if (identity === undefined) throw cannotStart(new Error('it ended before it began'))
  return {
    identity,
    stop: (why) => tellToStop({ folder, fence: spec.fence }, why, (signal) => supervisor.kill(signal)),
    ended: exitOf(supervisor).then(async () => {
      await withinLimit(Promise.all(read))
      return settle(folder, spec)
    }),
    ...(supervisor.stdin === null ? {} : { input: supervisor.stdin }),
  }
}

async function withinLimit(reading: Promise<unknown>): Promise<void> {
  const over = new AbortController()
  await Promise.race([reading, sleep(clock, LAST_READ_MS, over.signal)])
  // A timer that is left behind would keep this process alive.
  over.abort()
}

/** A second start in one folder finds the first one's supervisor and waits for that. */
async function settle(folder: string, { mark, fence = 0 }: CommandSpec): Promise<Outcome> {
  const remains = await takeBack(folder, 'its own worker', { mark, fence })
  return remains.kind === 'alive' ? remains.command.ended : remains
}

async function spawnSupervisor(folder: string, spec: CommandSpec, options: StartOptions): Promise<ChildProcess> {
  const log = openSync(join(folder, 'supervisor.log'), 'a', 0o600)
  const feed = (reader: OutputReader | undefined) => (reader === undefined ? 'ignore' : 'pipe')
  let input: Input = { stdio: 'ignore' }
  try {
    input = openInput(options.stdin)
    const supervisor = childProcess().spawn(process.execPath, [...FLAGS, PROGRAM, folder], {
      detached: true,
      cwd: '/',
      env: supervisorEnvironment(spec.mark, options.codeCache),
      stdio: [input.stdio, 'ignore', log, feed(options.onStdout), feed(options.onStderr), 'pipe'],
    })
    await once(supervisor, 'spawn')
    const [secrets, dumps] = [secretsAt(folder), dumpsBefore()]
    const pipe = (supervisor.stdio as readonly unknown[])[HANDOVER_FD] as Socket
    if (options.onTrouble !== undefined) hearTrouble(pipe, options.onTrouble)
    handOver(pipe, {
      argv: spec.argv,
      env: spec.env,
      ...(input.text === undefined ? {} : { input: input.text }),
      ...(dumps === undefined ? {} : { dumps }),
      ...(secrets === undefined ? {} : { secrets: tellSecrets(secrets) }),
    })
    return supervisor
  } catch (error) {
    throw error instanceof HoldfastError ? error : cannotStart(error)
  } finally {
    closeSync(log)
    if (typeof input.stdio === 'number') closeSync(input.stdio)
  }
}

interface Input {
  readonly stdio: 'inherit' | 'pipe' | 'ignore' | number
  /** For the supervisor to write, because it must not be in a file. */
  readonly text?: string
}

/** The supervisor only passes it on, so the command is the first to read from it. */
function openInput(stdin: StartOptions['stdin']): Input {
  if (typeof stdin !== 'object') return { stdio: stdin === undefined || stdin === 'none' ? 'ignore' : stdin }
  const opened = openInputFile(stdin.file)
  return 'fd' in opened ? { stdio: opened.fd } : { stdio: 'ignore', text: opened.text }
}

const cannotStart = (cause: unknown) =>
  new HoldfastError('processes/cannot-start', 'the supervisor of a command could not be started', {
    remedy: 'check the limits on open files (ulimit -n), processes and memory',
    retry: { afterMs: 1_000 },
    cause,
  })

/** The supervisor carries the mark too: a command that is forked from it but not yet executed looks like it. */
function supervisorEnvironment(mark: string, codeCache: string | undefined): Record<string, string> {
  // The command line's own is warm already.
  const cache = getCompileCacheDir() ?? codeCache
  return {
    PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
    [MARK_VARIABLE]: nestMark(process.env[MARK_VARIABLE], mark),
    ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache }),
  }
}

const exitOf = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) =>
    child.exitCode === null && child.signalCode === null ? child.once('exit', () => resolve()) : resolve(),
  )

async function readLive(supervisor: ChildProcess, fd: 3 | 4, reader: OutputReader | undefined): Promise<void> {
  const socket = supervisor.stdio[fd] as Socket | null
  if (socket === null || reader === undefined) return
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    const busy = reader(chunk)
    if (busy === undefined) return
    socket.pause()
    void busy.catch(() => {}).finally(() => socket.resume())
  })
  await new Promise<void>((resolve) => socket.once('close', () => resolve()))
}
