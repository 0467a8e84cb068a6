import { spawnSync } from 'node:child_process'

import { createRuntime, defineFunction } from '../../src/index.ts'
import type { FunctionRun } from '../../src/index.ts'
import { defineBench } from '../bench.ts'
import type { Engine, Place, Row } from '../bench.ts'
import { walkAgents } from '../history/walkers.ts'
import { installedProgram, newHome, pause } from '../product.ts'
import type { Home } from '../product.ts'
import { bytesOf, tidyUp, walOf } from './size.ts'

/** Calls of a function with so many steps each, all to their end. */
async function callFunctions({ home, store }: Home, runs: number, each: number): Promise<void> {
  const walk = defineFunction('walk', async (run: FunctionRun<number>) => {
    for (let step = 0; step < run.input; step += 1) await run.step(`s${step}`, () => ({ ok: step }))
  })
  const capacity = { backlog: 10_000_000 }
  const runtime = await createRuntime({ home, agents: [walk], capacity, ...(store === undefined ? {} : { store }) })
  const calls = await runtime.callAll(Array.from({ length: runs }, () => ({ function: 'walk', input: each })))
  await runtime.start()
  await Promise.all(calls.map((call) => call.result()))
  await runtime.close()
}

/** What the work between two looks at the disk has added, in bytes. */
async function grown(at: Home, work: () => Promise<unknown>): Promise<number> {
  const before = await bytesOf(at)
  await work()
  return (await bytesOf(at)) - before
}

async function walkAgent(at: Home, count: number, prompt?: string): Promise<void> {
  const walking = await walkAgents(at, prompt)
  const walker = await walking.walker('grows')
  for (let step = 0; step < count; step += 1) await walker.step()
  await walking.close()
}

async function steps(place: Place, engine: Engine, { runs, each, turns }: Sizes): Promise<Row[]> {
  const [functions, starts, agents] = [
    await newHome(place, engine),
    await newHome(place, engine),
    await newHome(place, engine),
  ]
  await callFunctions(functions, 1, 1)
  await callFunctions(starts, 1, 1)
  const logBefore = engine === 'postgres' ? await walOf(functions) : 0
  const inAll = await grown(functions, () => callFunctions(functions, runs, each))
  const log = engine === 'postgres' ? (await walOf(functions)) - logBefore : 0
  const aRun = (await grown(starts, () => callFunctions(starts, runs * 4, 0))) / (runs * 4)
  await callFunctions(agents, 1, 1)
  const agent = await grown(agents, () => walkAgent(agents, turns))
  const bytes = (name: string, value: number): Row => ({ name: `${title(engine)}: ${name}`, value, unit: 'bytes' })
  return [
    bytes('a step of a function', (inAll / runs - aRun) / each),
    bytes('a run of a function, without its steps', aRun),
    ...(engine === 'postgres' ? [bytes('written to the log for a step of a function', log / runs / each)] : []),
    bytes('a step of an agent (a reply, a read, a write)', agent / turns),
  ]
}

/** The same walk with a short prompt and with a long one: how often the long one was stored, after one step and after many. */
async function prompts(place: Place, engine: Engine, { prompt, walked }: Sizes): Promise<Row[]> {
  const of = async (text: string, count: number) => {
    const at = await newHome(place, engine)
    await walkAgent(at, count, text)
    return bytesOf(at)
  }
  const long = wordsOf(prompt)
  const copies = async (count: number) => ((await of(long, count)) - (await of('walk', count))) / long.length
  const [value, raw] = [await copies(walked), await copies(1)]
  const name = `${title(engine)}: copies of a prompt of ${prompt / 1_000} kB after ${walked} steps (raw: after one)`
  return [{ name, value, unit: 'times', raw, ratio: value / raw, bound: { of: 'value', most: 4 } }]
}

/** That do not pack well: PostgreSQL packs long texts. */
function wordsOf(length: number): string {
  const word = (index: number) => ((index * 2_654_435_761) % 2 ** 32).toString(36).padStart(7, 'x')
  return Array.from({ length: length / 8 }, (_, index) => word(index)).join(' ')
}

/** The same work over and over: without retention the store grows each time, with it what was forgotten makes room. */
async function retention(place: Place, engine: Engine, { runs, each }: Sizes): Promise<Row[]> {
  const at = await newHome(place, engine)
  const work = () => callFunctions(at, runs, each)
  await callFunctions(at, 1, 1)
  const without = ((await grown(at, work)) + (await grown(at, work))) / 2
  // What ended less than a second ago is kept.
  await pause(1_500)
  const before = await bytesOf(at)
  const forgotten = prune(at)
  if (forgotten === undefined) return []
  await tidyUp(at)
  await work()
  // Against the store as it was: PostgreSQL gives some of the room back at once, SQLite keeps it for what comes.
  const within = Math.max(0, (await bytesOf(at)) - before)
  const mebi = (name: string, value: number): Row => ({
    name: `${title(engine)}: ${(runs * each).toLocaleString('en-US')} steps more, ${name}`,
    value: value / 2 ** 20,
    unit: 'MiB',
  })
  return [
    mebi('nothing forgotten', without),
    {
      ...mebi('after those before were forgotten', within),
      ratio: within / without,
      bound: { of: 'ratio', most: 0.5 },
    },
    {
      name: `${title(engine)}: runs of ${each} steps forgotten`,
      value: forgotten.runs / forgotten.seconds,
      unit: 'runs/s',
    },
  ]
}

/** By the command that people have, its start included. */
function prune({ home, store }: Home): { readonly runs: number; readonly seconds: number } | undefined {
  const program = installedProgram()
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    HOLDFAST_HOME: home,
    ...(store === undefined ? {} : { HOLDFAST_STORE: store }),
  }
  const from = performance.now()
  const { status, stdout, stderr } = spawnSync(program, ['--json', 'prune', '--older-than', '1s'], {
    env,
    encoding: 'utf8',
  })
  const seconds = (performance.now() - from) / 1_000
  if (status === 0) return { ...(JSON.parse(stdout) as { runs: number }), seconds }
  console.error(`  nothing was forgotten: ${stderr.trim()}`)
  return undefined
}

const title = (engine: Engine) => (engine === 'sqlite' ? 'SQLite' : 'PostgreSQL')

interface Sizes {
  readonly runs: number
  readonly each: number
  readonly turns: number
  readonly prompt: number
  readonly walked: number
}

/** What a step leaves on disk, that a prompt is stored once and not with each step, and that what is forgotten makes room. */
export const bench = defineBench({
  name: 'growth',
  what: 'bytes on disk a step, a long prompt over many steps, and what retention gives back',
  full: { runs: 200, each: 100, turns: 1_000, prompt: 100_000, walked: 50 },
  quick: { runs: 20, each: 100, turns: 100, prompt: 100_000, walked: 50 },
  async run(sizes, place) {
    const rows: Row[] = []
    for (const engine of place.engines) {
      rows.push(...(await steps(place, engine, sizes)))
      rows.push(...(await prompts(place, engine, sizes)))
      rows.push(...(await retention(place, engine, sizes)))
    }
    return rows
  },
})
