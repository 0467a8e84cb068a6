import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'

/*
 * The world as somebody outside sees it: programs are started by their command line and looked up in the machine's own
 * table of processes. Nothing here is shared with what the demo shows, or it would prove little.
 */

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Program {
  readonly pid: number
  readonly ended: Promise<Ended>
  /** What it has printed so far, to both. */
  printed(): string
  hasEnded(): boolean
  kill(signal: NodeJS.Signals): void
}

export function startProgram(argv: readonly string[], env: NodeJS.ProcessEnv): Program {
  const [program = '', ...args] = argv
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, ...output }))
  })
  return {
    pid: child.pid ?? 0,
    ended,
    printed: () => output.stdout + output.stderr,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    kill: (signal) => void child.kill(signal),
  }
}

export interface SeenProcess {
  readonly pid: number
  readonly session: number
  readonly command: string
}

/** Living processes whose command line has this text. */
export function processesNaming(text: string): SeenProcess[] {
  const seen = process.platform === 'linux' ? linuxProcesses() : otherProcesses()
  return seen.filter(({ pid, command }) => pid !== process.pid && command.includes(text))
}

function linuxProcesses(): SeenProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        // After the name, which is in parentheses: state, parent, group, session.
        const [state, , , session] = readFileSync(`/proc/${name}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ')
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
        return state === 'Z' || state === 'X' ? [] : [{ pid: Number(name), session: Number(session), command }]
      } catch {
        // It ended while it was looked at.
        return []
      }
    })
}

/** A new session begins with a new group, and of groups every `ps` tells. */
function otherProcesses(): SeenProcess[] {
  const rows = execFileSync('/bin/ps', ['-A', '-ww', '-o', 'pid=,pgid=,stat=,args='], { encoding: 'utf8' })
  return Array.from(rows.matchAll(/^ *(\d+) +(\d+) +([^ ]+) +(.*)$/gm))
    .filter(([, , , state]) => !state?.startsWith('Z'))
    .map(([, pid, group, , command]) => ({ pid: Number(pid), session: Number(group), command: command ?? '' }))
}
