/** The parts of the product as their users have them: a store with its secrets kept out, a daemon in a process of its own. */
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { createRuntime } from '../src/runtime.ts'
import type { Runtime } from '../src/runtime.ts'
import type { Engine, Place } from './bench.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

let program: string | undefined

/** The command as an installed package has it: a clone runs its sources, which takes more time and memory. Built once a process. */
export function installedProgram(): string {
  if (program !== undefined) return program
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-package-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const tsdown = join(ROOT, 'node_modules', '.bin', 'tsdown')
  const built = spawnSync(tsdown, ['--out-dir', join(folder, 'dist'), '--no-dts'], { cwd: ROOT, encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`the build failed: ${built.stdout}${built.stderr}`)
  for (const part of ['bin', 'package.json', 'dashboard/dist'])
    if (existsSync(join(ROOT, part))) cpSync(join(ROOT, part), join(folder, part), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return (program = join(folder, 'bin', 'holdfast'))
}

/** The path of a product's store and nothing else: opened by the only wiring, so with what every text passes through. */
export async function openProduct(home: string, store?: string): Promise<Runtime> {
  const environment = Object.fromEntries(
    Object.entries(process.env).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  )
  return createRuntime({ home, environment, ...(store === undefined ? {} : { store }) })
}

/** A home folder, and where its store is: undefined for a file in it. */
export interface Home {
  readonly engine: Engine
  readonly home: string
  readonly store: string | undefined
}

let schemas = 0

export async function newHome(place: Place, engine: Engine): Promise<Home> {
  const home = mkdtempSync(join(place.folder, 'home-'))
  if (engine === 'sqlite') return { engine, home, store: undefined }
  const url = await place.postgres()
  return { engine, home, store: `${url}${url.includes('?') ? '&' : '?'}schema=bench_${(schemas += 1)}` }
}

export interface Daemon {
  readonly pid: number
  /** Of its API. */
  readonly url: string
  readonly token: string
  stop(): Promise<void>
}

export interface DaemonOptions {
  readonly workers?: number
  /** As in a configuration file. */
  readonly config?: Readonly<Record<string, unknown>>
}

/** The real daemon, `holdfast up`. */
export async function startDaemon(
  { home, store }: Home,
  { workers, config = {} }: DaemonOptions = {},
): Promise<Daemon> {
  const file = join(home, 'holdfast.config.json')
  writeFileSync(file, JSON.stringify(config))
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    HOLDFAST_HOME: home,
    ...(store === undefined ? {} : { HOLDFAST_STORE: store }),
  }
  const args = ['--config', file, 'up', '--port', '0', ...(workers === undefined ? [] : ['--workers', String(workers)])]
  const daemon = spawn(installedProgram(), args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise<number | null>((resolve) => daemon.once('close', resolve))
  process.once('exit', () => daemon.kill('SIGKILL'))
  let said = ''
  await new Promise<void>((resolve, reject) => {
    daemon.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (said.includes('holdfast: up:')) resolve()
    })
    void ended.then((code) => reject(new Error(`the daemon ended (${code}): ${said}`)))
  })
  const { url } = await until('the daemon says where it listens', () => readDaemonFile(home))
  return {
    pid: daemon.pid!,
    url: `${url}/api/v1`,
    token: readFileSync(join(home, 'token'), 'utf8').trim(),
    async stop() {
      daemon.kill('SIGKILL')
      await ended
    },
  }
}

function readDaemonFile(home: string): { url: string } | undefined {
  try {
    return JSON.parse(readFileSync(join(home, 'daemon.json'), 'utf8')) as { url: string }
  } catch {
    return undefined
  }
}

export async function until<T>(what: string, look: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + 120_000
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await pause(20)
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Resident memory of a process, in MiB. */
export function memoryOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

/** Processor time of a process so far, in ms; the kernel counts in hundredths of a second. */
export function processorOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** A request as a browser or a script makes it. */
export async function ask<T>({ url, token }: Daemon, path: string, body?: object): Promise<T> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const answer = await fetch(`${url}${path}`, {
    headers,
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as T
}
