/** The workloads of the peers' benchmark whose targets are missed, by the public library, as `bench/peers/holdfast.mjs` has them. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import pg from 'pg'

import { createRuntime, defineFunction } from '../../src/index.ts'
import type { FunctionRun, Runtime } from '../../src/index.ts'
import { pause } from '../product.ts'
import type { Home } from '../product.ts'
import type { Watch } from './watch.ts'

const CALLERS = 64
/** More than are claimed before the last of the others has ended. */
const SPARE = 512
const SCHEDULED_TOGETHER = 256
/** Until the first is due, beside a millisecond for storing each. */
const LEAD_MS = 1_000

/** Calls `work` with 0, 1, 2 …, so many at a time. */
export async function inTurns(count: number, together: number, work: (index: number) => Promise<unknown>) {
  let next = 0
  const lane = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: Math.min(together, count) }, lane))
}

interface Flow {
  readonly steps: number
}

/** Opened, and closed at the end whatever happens; `job` is what a job does. */
async function withProduct({ home, store }: Home, work: (runtime: Runtime) => Promise<void>, job = () => {}) {
  const flow = defineFunction('flow', async (run: FunctionRun<Flow>) => {
    for (let step = 0; step < run.input.steps; step += 1) await run.step(`s${step}`, () => ({ ok: step }))
  })
  const agents = [flow, defineFunction('job', () => job())]
  const runtime = await createRuntime({
    home,
    ...(store === undefined ? {} : { store }),
    agents,
    capacity: { backlog: 10_000_000 },
  })
  try {
    await work(runtime)
  } finally {
    await runtime.close()
  }
}

const carryOut = async (runtime: Runtime, steps: number) =>
  (await runtime.call({ function: 'flow', input: { steps } })).result()

const jobCall = (index: number) => ({ function: 'job', input: { id: `j${index}`, at: 0 } })

export const steps = (home: Home, flows: number, perFlow: number, watch: Watch) =>
  withProduct(home, async (runtime) => {
    await runtime.start({ calls: CALLERS })
    await inTurns(Math.min(flows, CALLERS), CALLERS, () => carryOut(runtime, perFlow))
    watch.begin()
    await inTurns(flows, CALLERS, () => carryOut(runtime, perFlow))
    watch.end()
  })

/** One caller, one flow after the other. */
export const alone = (home: Home, flows: number, perFlow: number, watch: Watch) =>
  withProduct(home, async (runtime) => {
    await runtime.start({ calls: 4 })
    await inTurns(3, 1, () => carryOut(runtime, perFlow))
    await inTurns(flows, 1, async () => {
      watch.begin()
      await carryOut(runtime, perFlow)
      watch.end()
    })
  })

/** One after the other, with a rest before each. */
export const results = (home: Home, rests: readonly number[], watch: Watch) =>
  withProduct(home, async (runtime) => {
    await runtime.start({ calls: 4 })
    await inTurns(2, 1, () => carryOut(runtime, 1))
    for (const restMs of rests) {
      await watch.rest(restMs)
      watch.begin()
      await carryOut(runtime, 1)
      watch.end()
    }
  })

export const singles = (home: Home, count: number, watch: Watch) =>
  withProduct(home, async (runtime) => {
    watch.begin()
    await inTurns(count, CALLERS, (index) => runtime.call(jobCall(index)))
    watch.end()
  })

export const bulk = (home: Home, count: number, watch: Watch) =>
  withProduct(home, async (runtime) => {
    const calls = Array.from({ length: count }, (_, index) => jobCall(index))
    watch.begin()
    await runtime.callAll(calls)
    watch.end()
  })

/**
 * From the first body until so many have ended in the database. There are a few more than that: of the last ones one claim would get
 * some and the next none, and another time it would be otherwise.
 */
export async function drain(home: Home, count: number, watch: Watch): Promise<void> {
  const bodies = counter(count, () => watch.begin())
  const work = async (runtime: Runtime) => {
    const calls = Array.from({ length: count + SPARE }, (_, index) => jobCall(index))
    await runtime.callAll(calls)
    await runtime.start({ calls: CALLERS })
    await bodies.all
    await ended(home, watch, SPARE)
    watch.end()
  }
  await withProduct(home, work, bodies.one)
}

/** Jobs at their instants, in ms after the first could be. */
export async function due(home: Home, instants: readonly number[], watch: Watch): Promise<void> {
  const bodies = counter(instants.length)
  const work = async (runtime: Runtime) => {
    const begin = Date.now() + LEAD_MS + instants.length
    await inTurns(instants.length, SCHEDULED_TOGETHER, (index) =>
      runtime.schedules.add({ name: `d${index}`, at: new Date(begin + instants[index]!), ...jobCall(index) }),
    )
    await runtime.start({ calls: CALLERS })
    await pause(Math.max(begin - Date.now(), 0))
    watch.begin()
    await bodies.all
    await ended(home, watch)
    watch.end()
  }
  await withProduct(home, work, bodies.one)
}

function counter(count: number, onFirst = () => {}) {
  const { promise: all, resolve } = Promise.withResolvers<void>()
  let done = 0
  const one = () => {
    if (done === 0) onFirst()
    done += 1
    if (done === count) resolve()
  }
  return { all, one }
}

const UNFINISHED = `from runs where state in ('queued', 'running', 'parked')`

const LOOK_EVERY_MS = 2

/** No more than so many are unfinished on disk, seen by a connection that is none of the store's. */
async function ended(home: Home, watch: Watch, spare = 0): Promise<void> {
  const side = await sideOf(home)
  while ((await watch.aside(side.unfinished)) > spare) await pause(LOOK_EVERY_MS)
  await side.close()
}

async function sideOf({ home, store }: Home) {
  if (store === undefined) {
    const database = new DatabaseSync(join(home, 'holdfast.db'), { readOnly: true, timeout: 5_000 })
    const count = database.prepare(`select count(*) as n ${UNFINISHED}`)
    return { unfinished: async () => Number(count.get()!['n']), close: async () => database.close() }
  }
  const client = new pg.Client({ connectionString: store, options: '-c search_path=holdfast' })
  client.on('error', () => {})
  await client.connect()
  return {
    unfinished: async () => Number((await client.query(`select count(*) as n ${UNFINISHED}`)).rows[0].n),
    close: () => client.end(),
  }
}
