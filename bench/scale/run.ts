/**
 * 1, 2, 4 and 8 worker processes on one PostgreSQL: steps a second, from a call to its beginning, lateness of what is due, and what is used
 * up first. `node bench/scale/run.ts [--workers 1,2,4,8] [--runs 3000] [--steps 10] [--json FILE]`
 */
import { fork, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'

import pg from 'pg'

import { createRuntime, defineFunction } from '../../src/index.ts'
import { PostgresServer } from '../../test/support/postgres-server.ts'
import { POSTGRES_SETTINGS } from '../alone.ts'
import { scaleTable } from '../page/scale.ts'
import type { ScaleRow, Spread } from '../page/scale.ts'
import { ServerWatch } from './server.ts'
import type { ServerReport } from './server.ts'

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '1,2,4,8' },
    runs: { type: 'string', default: '3000' },
    steps: { type: 'string', default: '10' },
    calls: { type: 'string', default: '64' },
    probes: { type: 'string', default: '100' },
    json: { type: 'string' },
  },
})
const [runs, steps, probes] = [values.runs, values.steps, values.probes].map(Number) as [number, number, number]

interface Used {
  readonly cpuMs: number
  readonly rssMiB: number
}

/** What the page shows, and what is worth keeping besides. */
interface Result extends ScaleRow {
  readonly coresUsed: number
  readonly workerRssMiB: number
  readonly server: ServerReport
}

const spread = (of: readonly number[]): Spread => {
  const sorted = of.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}

/** The next message of a process. */
const heard = <T>(child: ChildProcess) =>
  new Promise<T>((resolve, reject) => {
    child.once('message', (message) => resolve(message as T))
    child.once('exit', (code) => reject(new Error(`a worker ended with ${code}`)))
  })

async function startWorkers(count: number, folder: string, url: string): Promise<ChildProcess[]> {
  const children = Array.from({ length: count }, (_, index) =>
    fork(new URL('worker.ts', import.meta.url), [join(folder, `home-${index}`), url, values.calls]),
  )
  await Promise.all(children.map((child) => heard(child)))
  return children
}

/** Says it to all of them, and waits for their answers. */
async function tell<T>(children: readonly ChildProcess[], word: 'go' | 'used' | 'end'): Promise<T[]> {
  const answers = children.map((child) => heard<T>(child))
  for (const child of children) child.send(word)
  return Promise.all(answers)
}

type Runtime = Awaited<ReturnType<typeof createRuntime>>

async function drain(runtime: Runtime, children: readonly ChildProcess[]): Promise<number> {
  const ask = Array.from({ length: runs }, () => ({ function: 'flow', input: { steps } }))
  const called = []
  for (let from = 0; from < ask.length; from += 1_000)
    called.push(...(await runtime.callAll(ask.slice(from, from + 1_000))))
  const begin = performance.now()
  await tell(children, 'go')
  await Promise.all(called.map((call) => call.result()))
  return performance.now() - begin
}

/** One call after the other: from asking to its first line. */
async function claims(runtime: Runtime): Promise<number[]> {
  const taken: number[] = []
  for (let i = 0; i < probes; i++) {
    const call = await runtime.call({ function: 'late', input: { at: Date.now() } })
    taken.push(((await call.result()) as { ms: number }).ms)
  }
  return taken
}

/** What is due at instants that are spread over a few seconds. */
async function lateness(runtime: Runtime, asking: pg.Client, schema: string): Promise<number[]> {
  const begin = Date.now() + 1_500
  const names = Array.from({ length: probes }, (_, index) => ({ name: `at-${begin}-${index}`, at: begin + index * 20 }))
  await Promise.all(
    names.map(({ name, at }) => runtime.schedules.add({ name, at: new Date(at), function: 'late', input: { at } })),
  )
  await new Promise((resolve) => setTimeout(resolve, 1_500 + probes * 20 + 2_000))
  const { rows } = await asking.query<{ result: string }>(
    `select result from ${schema}.runs where agent = 'late' and ended_at is not null and created_at >= $1`,
    [begin - 100],
  )
  return rows.map(({ result }) => (JSON.parse(result) as { ms: number }).ms)
}

async function measure(count: number, base: string): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-scale-'))
  const schema = `scale_${count}`
  const url = `${base}${base.endsWith('?') ? '' : '&'}schema=${schema}`
  const asking = new pg.Client(base.replace(/\?.*/, ''))
  await asking.connect()
  // Its own worker does nothing: what is measured is done elsewhere.
  const functions = ['flow', 'late'].map((name) => defineFunction(name, () => undefined))
  const runtime = await createRuntime({
    home: join(folder, 'asking'),
    store: url,
    agents: functions,
    capacity: { backlog: 10_000_000 },
  })
  const children = await startWorkers(count, folder, url)
  const watch = new ServerWatch(base)
  await watch.begin()
  try {
    const ms = await drain(runtime, children)
    const [used, server] = [await tell<Used>(children, 'used'), await watch.end()]
    const [claimMs, lateMs] = [spread(await claims(runtime)), spread(await lateness(runtime, asking, schema))]
    await tell(children, 'end')
    const cpuMs = used.reduce((sum, each) => sum + each.cpuMs, 0)
    const all = runs * steps
    return {
      workers: count,
      stepsPerSecond: (all / ms) * 1_000,
      claimMs,
      lateMs,
      workerCpuMsPerStep: cpuMs / all,
      serverCpuMsPerStep: server.cpuMs / all,
      commitsPerStep: server.commits / all,
      walKibPerStep: server.walBytes / 1_024 / all,
      diskKibPerStep: server.diskBytes / 1_024 / all,
      coresUsed: (cpuMs + server.cpuMs) / ms,
      workerRssMiB: Math.max(...used.map(({ rssMiB }) => rssMiB)),
      server,
    }
  } finally {
    for (const child of children) child.kill()
    await runtime.close()
    await asking.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** With the server's own statistics of statements where it has them. */
async function startServer(): Promise<PostgresServer> {
  const settings = { ...POSTGRES_SETTINGS, shared_preload_libraries: 'pg_stat_statements' }
  return PostgresServer.create({ settings }).catch(() => PostgresServer.create({ settings: POSTGRES_SETTINGS }))
}

const before = loadavg()
const server = await startServer()
const results: Result[] = []
try {
  for (const count of values.workers.split(',').map(Number)) {
    const result = await measure(count, server.url())
    results.push(result)
    console.error(`${count} workers: ${Math.round(result.stepsPerSecond)} steps/s`)
  }
} finally {
  await server.stop()
}
const git = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: import.meta.dirname, encoding: 'utf8' })
const measured = {
  date: new Date().toISOString(),
  commit: git.stdout.trim() || 'unknown',
  machine: { cores: availableParallelism(), cpu: cpus()[0]?.model, load: before, node: process.version },
  runs,
  steps,
  results,
}
console.log(scaleTable(measured))
if (values.json !== undefined) {
  mkdirSync(dirname(values.json), { recursive: true })
  writeFileSync(values.json, `${JSON.stringify(measured, null, 2)}\n`)
}
