import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'

import type { Clock } from '../base/clock.ts'
import { childProcess } from './node-parts.ts'

export interface CapturedOptions {
  readonly clock: Clock
  readonly cwd: string
  /** All that it gets. */
  readonly env: Readonly<Record<string, string>>
  /** What it reads: bytes, or a file. Nothing, unless given. */
  readonly input?: Uint8Array | { readonly file: string }
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
  /** Of its standard output; one byte more, and it is ended. */
  readonly maxBytes: number
}

export interface CapturedEnd {
  /** Null: it was ended by a signal, ours or another's, or never started. */
  readonly code: number | null
  readonly stdout: Buffer
  /** Its beginning, as text. */
  readonly stderr: string
  /** Why we ended it, or that it could not be started. */
  readonly cut?: 'timeout' | 'cancelled' | 'output' | 'absent'
}

/** Of standard error: enough for what a person has to know. */
const MOST_ERROR = 16 * 1024

/**
 * A command whose output is wanted as bytes, and which is ended with everything that it started when it takes too long, says too much, or nobody
 * waits for it any more. It answers only when it has ended, so that nothing of it goes on beside what is done next.
 */
export function runCaptured(argv: readonly [string, ...string[]], options: CapturedOptions): Promise<CapturedEnd> {
  const { promise, resolve } = Promise.withResolvers<CapturedEnd>()
  if (options.signal?.aborted === true) {
    resolve({ code: null, stdout: Buffer.alloc(0), stderr: '', cut: 'cancelled' })
    return promise
  }
  const child = start(argv, options)
  const pieces: Buffer[] = []
  let [bytes, stderr] = [0, '']
  let cut: CapturedEnd['cut']
  const stop = (why: NonNullable<CapturedEnd['cut']>) => {
    cut ??= why
    killGroup(child.pid)
  }
  const disarm = options.clock.after(options.timeoutMs, () => stop('timeout'))
  const cancel = () => stop('cancelled')
  options.signal?.addEventListener('abort', cancel, { once: true })
  child.stdout?.on('data', (chunk: Buffer) => {
    if (bytes < options.maxBytes) pieces.push(chunk.subarray(0, options.maxBytes - bytes))
    bytes += chunk.length
    if (bytes > options.maxBytes) stop('output')
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    if (stderr.length < MOST_ERROR) stderr += chunk.toString()
  })
  const end = (code: number | null) => {
    disarm()
    options.signal?.removeEventListener('abort', cancel)
    resolve({ code, stdout: Buffer.concat(pieces), stderr, ...(cut === undefined ? {} : { cut }) })
  }
  child.once('error', (error) => {
    cut ??= 'absent'
    stderr += error.message
    end(null)
  })
  child.once('close', end)
  return promise
}

function start([program, ...args]: readonly [string, ...string[]], options: CapturedOptions): ChildProcess {
  const { input, cwd, env } = options
  const file = input !== undefined && 'file' in input ? openSync(input.file, 'r') : undefined
  const stdin = file ?? (input === undefined ? 'ignore' : 'pipe')
  try {
    // A group of its own: all of it can be ended, and a Ctrl-C in a terminal does not hit it in the middle of a step.
    const child = childProcess().spawn(program, args, { cwd, env, stdio: [stdin, 'pipe', 'pipe'], detached: true })
    // It may end without having read everything.
    child.stdin?.on('error', () => {})
    if (input instanceof Uint8Array) child.stdin?.end(input)
    return child
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}
