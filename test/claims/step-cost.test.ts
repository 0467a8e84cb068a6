import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync, StatementSync } from 'node:sqlite'

import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { LIMITS } from '../../src/base/limits.ts'
import { createRuntime, defineFunction } from '../../src/index.ts'
import type { FunctionRun, Runtime } from '../../src/index.ts'
import { engines, temporaryFolder } from '../support/engines.ts'

/*
 * What a step costs, where the cost can be counted: a commit more, or a statement more, is a regression on every machine, however
 * busy it is. Time is only compared with what the database itself takes for the same rows, in the same run and in turns.
 */

const CALLERS = 64
/** Measured: 12 to 20, the more the busier the machine. A commit for each caller makes it 65. */
const MOST_TIMES = 40
/** Renewals of leases, heartbeats and looks at the clock that may fall into a measurement. */
const BESIDE = 12

const walk = defineFunction('walk', async (run: FunctionRun<number>) => {
  for (let step = 0; step < run.input; step += 1) await run.step(`s${step}`, () => ({ ok: step }))
})

interface Walking {
  readonly runtime: Runtime
  readonly url: string
  /** So many calls at once, each with so many steps, to their end. */
  readonly call: (callers: number, steps: number) => Promise<void>
}

async function walking(url: string, home = temporaryFolder()): Promise<Walking> {
  const runtime = await createRuntime({ home, store: url, agents: [walk] })
  onTestFinished(() => runtime.close())
  await runtime.start()
  const call = async (callers: number, steps: number) => {
    const calls = await Promise.all(
      Array.from({ length: callers }, () => runtime.call({ function: 'walk', input: steps })),
    )
    await Promise.all(calls.map((each) => each.result()))
  }
  // Compiles, prepares, and opens what there is to open.
  await call(CALLERS, 3)
  return { runtime, url, call }
}

interface Counted {
  readonly commits: number
  /** Those about steps, events and the batch's number: what goes on besides depends on how long it takes. */
  readonly statements: number
}

/** What goes to the database while `work` does: statements as the drivers see them, commits as the database has counted them. */
async function counted(url: string, work: () => Promise<unknown>): Promise<Counted> {
  const [texts, before]: [string[], number] = [[], await commitsOn(url)]
  const undo = [...watchSqlite(texts), watchPostgres(texts)]
  try {
    await work()
  } finally {
    undo.forEach((each) => each())
  }
  const ofSteps = texts.filter((text) => /\b(steps|events|writers)\b/.test(text))
  return { commits: (await commitsOn(url)) - before, statements: ofSteps.length }
}

/** Every commit of a store carries the number of its batch. */
async function commitsOn(url: string): Promise<number> {
  const question = 'select sum(batch) as commits from writers'
  if (url.startsWith('sqlite:')) {
    const side = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true, timeout: 5_000 })
    try {
      return Number(side.prepare(question).get()?.['commits'])
    } finally {
      side.close()
    }
  }
  const side = new pg.Client(url)
  await side.connect()
  try {
    await side.query(`set search_path to ${new URL(url).searchParams.get('schema')}`)
    return Number((await side.query<{ commits: string }>(question)).rows[0]?.commits)
  } finally {
    await side.end()
  }
}

function watchSqlite(texts: string[]): (() => void)[] {
  const runs = (['run', 'all', 'get'] as const).map((name) => {
    const own = StatementSync.prototype[name] as (this: StatementSync, ...args: never[]) => never
    StatementSync.prototype[name] = function watched(this: StatementSync, ...args: never[]) {
      texts.push(this.sourceSQL)
      return own.apply(this, args)
    }
    return () => void (StatementSync.prototype[name] = own as never)
  })
  const { exec } = DatabaseSync.prototype as { exec: (this: DatabaseSync, text: string) => void }
  DatabaseSync.prototype.exec = function watched(this: DatabaseSync, text: string) {
    texts.push(text)
    return exec.call(this, text)
  }
  return [...runs, () => void (DatabaseSync.prototype.exec = exec)]
}

function watchPostgres(texts: string[]): () => void {
  const { query } = pg.Client.prototype as unknown as { query: (this: pg.Client, ...args: unknown[]) => unknown }
  pg.Client.prototype.query = function watched(this: pg.Client, ...args: unknown[]) {
    const [given] = args as [string | { text?: string }]
    texts.push(typeof given === 'string' ? given : (given.text ?? ''))
    return query.apply(this, args)
  } as never
  return () => void (pg.Client.prototype.query = query as never)
}

/** What the longer of two walks had more than the shorter: its steps, without what a call costs besides. */
async function costOfSteps({ url, call }: Walking, callers: number, steps: number): Promise<Counted> {
  const short = await counted(url, () => call(callers, 2))
  const long = await counted(url, () => call(callers, 2 + steps))
  return { commits: long.commits - short.commits, statements: long.statements - short.statements }
}

/** A statement more a step than today is a decision, and is written down here. */
const STATEMENTS = { sqlite: { alone: 4.5, together: 0.5 }, postgres: { alone: 2, together: 0.25 } } as const

test.for(engines)('a step of a function is one commit and few statements, on $name', async (engine) => {
  const { commits, statements } = await costOfSteps(await walking((await engine.database()).url), 1, 200)
  console.log(`${engine.name}: ${commits / 200} commits and ${statements / 200} statements a step`)
  // The first bound shows that commits are seen at all.
  expect(commits).toBeGreaterThan(200 - BESIDE)
  expect(commits).toBeLessThan(200 + BESIDE)
  expect(statements / 200).toBeLessThan(STATEMENTS[engine.name].alone)
})

test.for(engines)('steps of many callers share commits and statements, on $name', async (engine) => {
  const steps = CALLERS * 20
  const { commits, statements } = await costOfSteps(await walking((await engine.database()).url), CALLERS, 20)
  console.log(
    `${engine.name}: ${(commits / steps).toFixed(3)} commits and ${(statements / steps).toFixed(2)} statements a step`,
  )
  expect(commits).toBeGreaterThan(0)
  // All 64 in each commit would be 0.016 a step.
  expect(commits / steps).toBeLessThan(0.1)
  expect(statements / steps).toBeLessThan(STATEMENTS[engine.name].together)
})

test('a step leaves little on disk: its row, its event, and no copy of anything else', async () => {
  const home = temporaryFolder()
  const path = join(home, 'holdfast.db')
  const { call } = await walking(`sqlite:${path}`, home)
  const before = bytesOf(path)
  await call(CALLERS, 100)
  const bytes = (bytesOf(path) - before) / (CALLERS * 100)
  console.log(`${bytes.toFixed(0)} bytes a step`)
  expect(bytes).toBeGreaterThan(50)
  // With its run by its id instead of its number, an event alone takes 70 more.
  expect(bytes).toBeLessThan(180)
})

test('no step waits for the log to become longer: it is as long as it gets when a worker has started', async () => {
  const home = temporaryFolder()
  const path = join(home, 'holdfast.db')
  const { call } = await walking(`sqlite:${path}`, home)
  const lengthOfLog = () => statSync(`${path}-wal`).size
  await expect.poll(lengthOfLog, { timeout: 10_000 }).toBeGreaterThan(LIMITS.logPages * 4096)
  const length = lengthOfLog()
  await call(CALLERS, 20)
  expect(lengthOfLog()).toBe(length)
})

function bytesOf(path: string): number {
  const side = new DatabaseSync(path, { timeout: 5_000 })
  side.exec('pragma wal_checkpoint(truncate)')
  side.close()
  return statSync(path).size
}

/** The same number of rows as steps, 64 a commit, written by hand. */
function rawRows(path: string): (commits: number) => void {
  const raw = new DatabaseSync(path)
  onTestFinished(() => raw.close())
  raw.exec(
    'pragma journal_mode = wal; pragma synchronous = full; create table rows (id integer primary key, row text not null)',
  )
  const insert = raw.prepare('insert into rows (row) values (?)')
  return (commits) => {
    for (let commit = 0; commit < commits; commit += 1) {
      raw.exec('begin immediate')
      for (let row = 0; row < CALLERS; row += 1) insert.run(`{"ok":${row},"padding":"${'x'.repeat(80)}"}`)
      raw.exec('commit')
    }
  }
}

/** Of this thread: what others do on the machine, or beside it in the process, does not count. */
async function processorMs(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

test('a step of many callers takes a small multiple of the processor time of a raw row', async () => {
  const { url } = await engines.find(({ name }) => name === 'sqlite')!.database()
  const { call } = await walking(url)
  const write = rawRows(join(dirname(url.slice('sqlite:'.length)), 'raw.db'))
  const [ours, raw]: [number[], number[]] = [[], []]
  for (let round = -2; round < 9; round += 1) {
    const [step, row] = [await processorMs(() => call(CALLERS, 20)), (await processorMs(() => write(20 * 5))) / 5]
    // The first rounds warm the compiler.
    if (round < 0) continue
    ours.push(step)
    raw.push(row)
  }
  const times = median(ours) / median(raw)
  console.log(`a step takes ${times.toFixed(1)} times a raw row`)
  expect(times).toBeLessThan(MOST_TIMES)
})
