import type { Clock } from '../base/clock.ts'
import { childProcess } from './node-parts.ts'

export interface BriefEnd {
  /** Null: it was killed, by us if it took too long, or could not be started. */
  readonly code: number | null
  readonly stdout: string
}

export interface BriefOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly env: Readonly<Record<string, string>>
}

/** More than this nobody wants to know of a command that says little. */
const MOST_OUTPUT = 256 * 1024

/** A small command of which nothing durable depends: it has a moment, and then it and what it started are killed. */
export function runBriefly(argv: readonly [string, ...string[]], options: BriefOptions): Promise<BriefEnd> {
  const [program, ...args] = argv
  return new Promise((resolve) => {
    // A group of its own, so that all of it can be ended.
    const child = childProcess().spawn(program, args, {
      env: options.env,
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    })
    let stdout = ''
    const end = (code: number | null) => {
      cancel()
      resolve({ code, stdout })
    }
    const cancel = options.clock.after(options.timeoutMs, () => {
      killGroup(child.pid)
      child.stdout.destroy()
      end(null)
    })
    child.stdout.on('data', (chunk: Buffer) => {
      if (stdout.length < MOST_OUTPUT) stdout += chunk.toString()
    })
    child.once('error', () => end(null))
    child.once('close', (code) => end(code))
  })
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}
