import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const DOOM = fileURLToPath(new URL('doom.cjs', import.meta.url))
const NODE = realpathSync(process.execPath)

/** Whoever ends this process by a signal ends what it started. */
const living = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    for (const child of living) child.kill('SIGKILL')
    process.kill(process.pid, signal)
  })

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A process of the real program. */
export interface Started {
  readonly pid: number
  readonly ended: Promise<Ended>
  readonly isOver: () => boolean
  kill(signal?: NodeJS.Signals): void
  /** False, if it ended without having said so. */
  said(text: string): Promise<boolean>
}

export interface Start {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly input?: string
  /** Where it is to die, as doom.cjs reads it. */
  readonly doom?: string | undefined
  /** Where another doom will be written. */
  readonly doomFile?: string
}

/** Node itself with a script: one process, so that SIGKILL reaches the right one. */
export function startProgram(script: string, { args, env, input, doom, doomFile }: Start): Started {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env
  const isDoomed = doom !== undefined || doomFile !== undefined
  const child = spawn(NODE, [script, ...args], {
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      PATH,
      NO_COLOR: '1',
      ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
      ...(isDoomed ? { NODE_OPTIONS: `--require ${DOOM}` } : {}),
      ...(doom === undefined ? {} : { DOOM: doom }),
      ...(doomFile === undefined ? {} : { DOOM_FILE: doomFile }),
      ...env,
    },
  })
  living.add(child)
  let [stdout, stderr, isOver] = ['', '', false]
  const listeners = new Set<() => void>()
  const heard = () => listeners.forEach((listener) => listener())
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
    heard()
  })
  // One that is killed does not read the rest.
  child.stdin.on('error', () => {})
  child.stdin.end(input ?? '')
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => {
      isOver = true
      living.delete(child)
    })
    child.once('close', (code, signal) => {
      heard()
      resolve({ code, signal, stdout, stderr })
    })
  })
  return {
    pid: child.pid!,
    ended,
    isOver: () => isOver,
    kill: (signal = 'SIGKILL') => void child.kill(signal),
    async said(text) {
      const told = new Promise<boolean>((resolve) => {
        const look = () => stderr.includes(text) && resolve(true)
        listeners.add(look)
        look()
      })
      return Promise.race([told, ended.then(() => stderr.includes(text))])
    },
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
