import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemRandomness } from '../../src/base/ids.ts'
import type { CommandEnd, CommandSpec, ContainmentKind } from '../../src/processes/command.ts'
import { detectContainment } from '../../src/processes/detect-containment.ts'
import { startCommand, type StartOptions } from '../../src/processes/start-command.ts'
import type { Outcome } from '../../src/processes/supervised.ts'

export const fixture = (name: string) => join(import.meta.dirname, 'fixtures', name)

const root = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
export const codeCache = join(root, 'code-cache')
// Of the worker, which has several files.
process.once('exit', () => rmSync(root, { recursive: true, force: true }))

let folders = 0
export const freshFolder = () => join(root, `attempt-${(folders += 1)}`)

export const newMark = () => systemRandomness.hex(16)

export function specOf(argv: readonly [string, ...string[]], more: Partial<CommandSpec> = {}): CommandSpec {
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin' }
  return { argv, cwd: '/', env, mark: newMark(), timeoutMs: 30_000, ...more }
}

export const sh = (script: string, ...args: string[]): [string, ...string[]] => ['/bin/sh', '-c', script, 'sh', ...args]

export async function begin(spec: CommandSpec, options: StartOptions = {}) {
  const folder = freshFolder()
  return { folder, mark: spec.mark, command: await startCommand(folder, spec, { codeCache, ...options }) }
}

export async function run(spec: CommandSpec, options: StartOptions = {}): Promise<CommandEnd> {
  return endOf(await (await begin(spec, options)).command.ended)
}

export function endOf(outcome: Outcome): CommandEnd {
  if (outcome.kind !== 'ended') throw new Error(`expected an end, got ${JSON.stringify(outcome)}`)
  return outcome.end
}

/** The containments that this machine allows, and the reasons for those it does not. */
export async function availableModes(): Promise<ContainmentKind[]> {
  const wanted: ContainmentKind[] = process.platform === 'linux' ? ['cgroup', 'pid-namespace', 'mark'] : ['group']
  const tried = await Promise.all(
    wanted.map((kind) =>
      detectContainment(kind).then(
        () => kind,
        (error: Error) => void console.warn(`containment ${kind} is not tested here: ${error.message}`),
      ),
    ),
  )
  return tried.filter((kind) => kind !== undefined)
}

/** Looks, without any of our own code, for living processes whose arguments or environment hold the text. */
export function processesWith(text: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const isMeant = (pid: string) => {
    const line = slurp(pid, 'cmdline')
    // It has said the end and is on its way out; it is none of the command's. Its line comes first: who ends has none, and no environment.
    if (line.includes('supervisor-main')) return false
    return line.includes(text) || slurp(pid, 'environ').includes(text)
  }
  return pids.filter((pid) => isAlive(pid) && isMeant(pid)).map(Number)
}

const isAlive = (pid: string) => !/^State:\s+[ZX]/m.test(slurp(pid, 'status'))

function slurp(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    return ''
  }
}

/**
 * On a busy machine everything takes several times as long. A deadline tells slow from never; whether something is quick
 * is said by what it did, not by how long it took.
 */
const PATIENCE = 4

/** Resolves when the reader has seen the text. */
export function seen(text: string) {
  const { promise, resolve } = Promise.withResolvers<void>()
  let all = ''
  const reader = (chunk: Buffer) => {
    all = (all + chunk.toString('latin1')).slice(-4096)
    if (all.includes(text)) resolve()
  }
  return { promise: within(10_000, promise, `"${text}" was never printed`), reader }
}

export function within<T>(ms: number, promise: Promise<T>, otherwise: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`${otherwise} within ${ms * PATIENCE} ms`)), ms * PATIENCE)
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

export async function until(condition: () => boolean, ms: number, what: string): Promise<void> {
  const deadline = performance.now() + ms * PATIENCE
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${ms * PATIENCE} ms`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
