import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

import { thisPlace } from '../../src/processes/identity.ts'
import type { ProcessIdentity } from '../../src/processes/identity.ts'

/** Above every number that a kernel gives. */
const FIRST_PID = 10_000_000
const STAT = /^\/proc\/(\d{8,})\/stat$/

/** Who is to be told that a process was killed. */
const living = new Map<number, () => void>()
let last = FIRST_PID

/** A process that only this simulation knows: whoever looks into /proc finds it, and whoever kills it ends it. */
export function startProcess(onKill: () => void): ProcessIdentity {
  last += 1
  living.set(last, onKill)
  return { ...thisPlace(), pid: last, startTime: last }
}

export function endProcess({ pid }: ProcessIdentity): void {
  living.delete(pid)
}

/** The numbers of the next world are those of every first one. */
export function forgetProcesses(): void {
  living.clear()
  last = FIRST_PID
}

/** From now on, in this whole process, those above are seen in /proc and can be killed. */
export function simulateProcesses(): void {
  const { readFileSync } = fs
  const kill = process.kill.bind(process)
  const read = (path: unknown, ...rest: unknown[]) => {
    const found = typeof path === 'string' ? STAT.exec(path) : null
    if (found === null) return (readFileSync as (...args: unknown[]) => unknown)(path, ...rest)
    if (!living.has(Number(found[1]))) throw Object.assign(new Error('no such process'), { code: 'ENOENT' })
    return statOf(Number(found[1]))
  }
  Object.assign(fs, { readFileSync: read })
  syncBuiltinESMExports()
  process.kill = (pid, signal) => {
    if (pid <= FIRST_PID) return kill(pid, signal)
    const end = living.get(pid)
    if (end === undefined) throw Object.assign(new Error('no such process'), { code: 'ESRCH' })
    living.delete(pid)
    end()
    return true
  }
}

/** proc_pid_stat(5): its state is the third field, its start the 22nd. */
const statOf = (pid: number) => `${pid} (simulated) S ${Array.from({ length: 18 }, () => 0).join(' ')} ${pid} 0`
