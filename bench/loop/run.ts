/**
 * What a long run and many waiting ones cost.
 *
 *   node bench/loop/run.ts [--steps N] [--rounds N] [--parked N] [--json FILE] [--check]
 *
 * Steps: the last hundred of a long run beside its first hundred. A shorter run comes first, so that the compiler is warm and the
 * first hundred are not slow for a reason of their own.
 * Parked: the memory of a daemon whose store has so many parked runs beside that of one with none.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { putParkedRuns } from '../../test/support/parked.ts'
import { costsOfSteps } from './steps.ts'

const PROGRAM = fileURLToPath(new URL('../../bin/holdfast', import.meta.url))
const SPAN = 100
/** Several heartbeats of a daemon with a lease of 3 s. */
const SETTLING_MS = 5_000

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
const total = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)

interface Comparison {
  readonly title: string
  readonly value: number
  readonly holds: boolean
}

async function benchSteps(folder: string, steps: number, rounds: number): Promise<Comparison[]> {
  await costsOfSteps(folder, 'warm', Math.min(steps, 600))
  const ratios: { wall: number; cpu: number }[] = []
  for (let round = 1; round <= rounds; round++) {
    const { wallMs, cpuMs } = await costsOfSteps(folder, `steps-${round}`, steps)
    const [first, last] = [wallMs.slice(0, SPAN), wallMs.slice(-SPAN)]
    const cpu = total(cpuMs.slice(-SPAN)) / total(cpuMs.slice(0, SPAN))
    console.log(
      `round ${round}: first ${SPAN} steps ${total(first).toFixed(0)} ms, last ${total(last).toFixed(0)} ms; medians ${median(first).toFixed(2)} and ${median(last).toFixed(2)} ms; processor ${cpu.toFixed(2)} times`,
    )
    ratios.push({ wall: median(last) / median(first), cpu })
  }
  const wall = median(ratios.map((each) => each.wall))
  const cpu = median(ratios.map((each) => each.cpu))
  const title = `the last ${SPAN} of ${steps} steps against the first ${SPAN}`
  return [
    { title: `${title}, median step (at most 1.2)`, value: wall, holds: wall <= 1.2 },
    { title: `${title}, processor time (at most 1.2)`, value: cpu, holds: cpu <= 1.2 },
  ]
}

/** The memory of a daemon a few heartbeats after its start, in MiB. */
async function daemonMemory(folder: string, parked: number): Promise<number> {
  const home = mkdtempSync(join(folder, 'home-'))
  const path = join(home, 'holdfast.db')
  await (await openSqliteStore({ path })).close()
  if (parked > 0) putParkedRuns(path, parked)
  const config = join(home, 'holdfast.config.json')
  writeFileSync(join(home, 'replies.json'), '{ "replies": [{ "text": "done" }] }')
  writeFileSync(config, JSON.stringify({ lease: '3s', agents: { clerk: { model: 'scripted:./replies.json' } } }))
  const env = { PATH: process.env.PATH ?? '', HOME: home, HOLDFAST_HOME: home }
  const daemon = spawn(PROGRAM, ['--config', config, 'up', '--port', '0'], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise((resolve) => daemon.once('close', resolve))
  try {
    await isUp(daemon)
    await new Promise((resolve) => setTimeout(resolve, SETTLING_MS))
    const status = readFileSync(`/proc/${daemon.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024
  } finally {
    daemon.kill('SIGKILL')
    await ended
  }
}

function isUp(daemon: ChildProcess): Promise<void> {
  let said = ''
  return new Promise((resolve, reject) => {
    daemon.stderr?.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (said.includes('holdfast: up:')) resolve()
    })
    daemon.once('close', (code) => reject(new Error(`the daemon ended (${code}): ${said}`)))
  })
}

async function benchParked(folder: string, parked: number, rounds: number): Promise<Comparison[]> {
  const [none, many]: [number[], number[]] = [[], []]
  for (let round = 1; round <= rounds; round++) {
    none.push(await daemonMemory(folder, 0))
    many.push(await daemonMemory(folder, parked))
    console.log(`round ${round}: ${none.at(-1)!.toFixed(1)} MiB without, ${many.at(-1)!.toFixed(1)} MiB with ${parked}`)
  }
  const more = median(many) - median(none)
  return [{ title: `MiB that ${parked} parked runs cost a daemon (under 50)`, value: more, holds: more < 50 }]
}

const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '3' },
    parked: { type: 'string', default: '10000' },
    json: { type: 'string' },
    check: { type: 'boolean', default: false },
  },
})
const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
try {
  mkdirSync(folder, { recursive: true })
  const rounds = Number(values.rounds)
  const comparisons = [
    ...(await benchSteps(folder, Number(values.steps), rounds)),
    ...(await benchParked(folder, Number(values.parked), rounds)),
  ]
  for (const { title, value, holds } of comparisons) console.log(`${holds ? '  ' : '✗ '}${value.toFixed(2)}  ${title}`)
  const about = { node: process.version, sqlite: process.versions.sqlite, rounds }
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify({ ...about, comparisons }, null, 2))
  if (values.check && comparisons.some(({ holds }) => !holds)) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
