import { describe, expect, test } from 'vitest'

import type { Store, StoreProbe } from '../../src/store/store.ts'
import { sql } from '../../src/store/sql.ts'
import { run, single } from '../../src/store/transition.ts'
import { mortal } from '../../src/testing/faults.ts'
import { hurriedClock } from '../support/clocks.ts'
import type { HurriedClock } from '../support/clocks.ts'
import { engines } from '../support/engines.ts'
import type { TestDatabase, TestEngine } from '../support/engines.ts'
import { assertInvariants, comparable, comparableSnapshot } from '../support/invariants.ts'
import type { Snapshot } from '../support/invariants.ts'
import { settleEverything } from '../support/settle.ts'
import { FAULTS, probeOf } from './fault-table.ts'
import type { StoreFault } from './fault-table.ts'
import { SCENARIOS } from './scenarios.ts'
import type { Scenario } from './scenarios.ts'

/** No transition has nearly so many; a loop that gets here would otherwise never end. */
const MOST_POINTS = 400

/** Begin, one statement and, on SQLite, the batch's number; commit. Each before and after, and the last two if anything changes. */
const fewestPoints = (engine: TestEngine, changes: boolean) => ({ sqlite: changes ? 8 : 4, postgres: 2 })[engine.name]

/**
 * In a normal run SQLite dies at every point of every transition in its first situation, and of every third of the other
 * situations; these suffer one of the faults each, always the next one. PostgreSQL needs a schema and several connections for
 * each death: every eighth scenario, every fifth point of it, each beginning at another, and one fault of every second of those.
 * The deep run takes all.
 */
const isDeep = process.env.HOLDFAST_DEEP !== undefined
const STRIDE = isDeep ? { sqlite: 1, postgres: 1 } : { sqlite: 1, postgres: 5 }
const SCENARIO_SHARE = isDeep ? { sqlite: 1, postgres: 1 } : { sqlite: 3, postgres: 8 }
const FAULT_SHARE = { sqlite: 3, postgres: 16 }

const isFirstSituation = ({ change }: Scenario, index: number) =>
  SCENARIOS.findIndex((each) => each.change === change) === index

const isTaken = ({ name }: TestEngine, scenario: Scenario, index: number) =>
  index % SCENARIO_SHARE[name] === 0 || (name === 'sqlite' && isFirstSituation(scenario, index))

function faultsFor(engine: TestEngine, index: number): readonly StoreFault[] {
  const all = FAULTS[engine.name]
  if (isDeep) return all
  const turn = index / FAULT_SHARE[engine.name]
  return Number.isInteger(turn) ? [all[turn % all.length]!] : []
}

const casesOn = (engine: TestEngine) =>
  SCENARIOS.map((scenario, index) => ({
    engine,
    scenario,
    name: `${scenario.change}: ${scenario.situation}`,
    firstPoint: 1 + (index % STRIDE[engine.name]),
    faults: faultsFor(engine, index),
  })).filter(({ scenario }, index) => isTaken(engine, scenario, index))

/** A situation on disk, what the transition should make of it, and as many copies as one likes. */
interface Stage {
  readonly scenario: Scenario
  readonly clock: HurriedClock
  readonly template: TestDatabase
  readonly act: (store: Store) => Promise<unknown>
  readonly before: Snapshot
  readonly after: Snapshot
  readonly answer: unknown
}

async function stageOf(engine: TestEngine, scenario: Scenario): Promise<Stage> {
  const clock = hurriedClock()
  const template = await engine.database()
  const preparing = await template.open({ clock })
  const act = await scenario.prepare({ store: preparing, clock })
  const before = await comparableSnapshot(preparing)
  await assertInvariants(preparing)
  await preparing.close()
  const reference = await (await template.copy()).open({ clock })
  const answer = comparable(await act(reference))
  const after = await comparableSnapshot(reference)
  await assertInvariants(reference)
  await reference.close()
  return { scenario, clock, template, act, before, after, answer }
}

type Outcome = { readonly done: true; readonly answer: unknown } | { readonly done: false; readonly error: unknown }

const outcomeOf = (promise: Promise<unknown>): Promise<Outcome> =>
  promise.then(
    (answer) => ({ done: true as const, answer: comparable(answer) }),
    (error: unknown) => ({ done: false as const, error }),
  )

/** How many points there are, where that is known beforehand; and those to die at, up to one that is lived through. */
interface Points {
  readonly points?: number
  readonly worthwhile: Iterable<number>
}

/**
 * Nothing is written before the commit: where the disk can be looked at, a death at most points leaves, to the byte, what the
 * one before it would have left. Those are died once; the commits always, for what was answered by then.
 */
async function pointsOf(stage: Stage, engine: TestEngine, firstPoint: number): Promise<Points> {
  const database = await stage.template.copy()
  if (isDeep || database.bytes === undefined) return { worthwhile: everyPoint(firstPoint, STRIDE[engine.name]) }
  let [points, isActing] = [0, false]
  let seen: Buffer = Buffer.of()
  const worthwhile: number[] = []
  const probe: StoreProbe = ({ at }) => {
    if (!isActing) return
    points += 1
    const disk = database.bytes!()
    if (at === 'commit' || !seen.equals(disk)) worthwhile.push(points)
    seen = disk
  }
  const store = await database.open({ clock: stage.clock, probe })
  isActing = true
  await stage.act(store)
  isActing = false
  await store.close()
  return { points, worthwhile: [...worthwhile, points + 1] }
}

function* everyPoint(first: number, stride: number): Generator<number> {
  for (let nth = first; nth < MOST_POINTS; nth += stride) yield nth
}

/** Dies at the nth point and says what the next process finds; undefined when there is no nth point. */
async function dieAt(stage: Stage, nth: number) {
  const database = await stage.template.copy()
  let left: TestDatabase | undefined
  const death = mortal(() => {
    left = database.killed?.()
  })
  const store = await database.open({ clock: stage.clock, probe: death.probe })
  death.arm(nth)
  const outcome = await outcomeOf(stage.act(store))
  if (!death.died()) death.disarm()
  await store.close()
  return { outcome, died: death.died(), left: left ?? database }
}

/**
 * Done again, it has been done once; and from there everything comes to its end. What is, row for row, as it was the last time
 * is as sound, and comes to the same end: a normal run looks at that once in a test.
 */
async function redoAndSettle(stage: Stage, store: Store, wasDone: boolean, isFirst: boolean): Promise<void> {
  const again = await outcomeOf(stage.act(store))
  if (!wasDone) expect(again).toEqual({ done: true, answer: stage.answer })
  if (wasDone) expect(again.done).toBe(stage.scenario.again === 'harmless')
  expect(await comparableSnapshot(store)).toEqual(stage.after)
  if (!isFirst && !isDeep) return
  await assertInvariants(store)
  await settleEverything(store)
}

/** Every transition, interrupted at each point and in each way; the engines are files of their own, so that both cores are used. */
export function interruptEverything(name: TestEngine['name']): void {
  const engine = engines.find((each) => each.name === name)!
  describe.each(casesOn(engine))('$engine.name, $name', (each) => {
    interrupt(each)
  })
}

function interrupt({ engine, scenario, firstPoint, faults }: ReturnType<typeof casesOn>[number]): void {
  test('killed at any point it has happened or it has not, acknowledged only if it has, and can be done again [durable/acknowledged]', async () => {
    const stage = await stageOf(engine, scenario)
    let deaths = 0
    let seen: Buffer | undefined
    let isFirst = true
    const { points, worthwhile } = await pointsOf(stage, engine, firstPoint)
    for (const nth of worthwhile) {
      const { outcome, died, left } = await dieAt(stage, nth)
      if (died) deaths += 1
      // What the next process finds is, to the byte, what it found the last time.
      const disk = left.bytes?.()
      if (!isDeep && died && !outcome.done && disk !== undefined && seen?.equals(disk) === true) continue
      seen = disk
      const store = await left.open({ clock: stage.clock })
      if (isDeep) await assertInvariants(store)
      const found = await comparableSnapshot(store)
      const happened = isEqual(found, stage.after)
      if (!happened) expect(found, `at point ${nth}: neither before nor after`).toEqual(stage.before)
      if (outcome.done) expect({ happened, answer: outcome.answer }).toEqual({ happened: true, answer: stage.answer })
      await redoAndSettle(stage, store, happened, isFirst)
      isFirst = false
      await store.close()
      if (!died) break
    }
    const fewest = fewestPoints(engine, !isEqual(stage.before, stage.after))
    expect(points ?? deaths).toBeGreaterThanOrEqual(Math.floor(fewest / STRIDE[engine.name]))
    // In strides the first point may lie behind the last one.
    if (points !== undefined) expect(deaths).toBeGreaterThan(0)
    expect(points ?? deaths).toBeLessThan(MOST_POINTS - 1)
  })

  test.each(faults)('$title: the answer says what is on disk, and the store goes on', async (fault) => {
    const stage = await stageOf(engine, scenario)
    const seen = await pointsSeen(stage, fault)
    // What changes nothing commits nothing, so its commit cannot fail.
    if (fault.atCommit && seen === 0) return expect(stage.after).toEqual(stage.before)
    expect(seen).toBeGreaterThan(0)
    for (let nth = 1; nth <= (fault.lasting ? 1 : seen); nth++) await suffer(stage, fault, nth)
  })
}

const isEqual = (left: unknown, right: unknown) => JSON.stringify(left) === JSON.stringify(right)

async function pointsSeen(stage: Stage, fault: StoreFault): Promise<number> {
  let seen = 0
  let counting = false
  const probe: StoreProbe = (point) => {
    if (counting && fault.matches(point)) seen += 1
  }
  const store = await (await stage.template.copy()).open({ clock: stage.clock, probe })
  counting = true
  await stage.act(store)
  counting = false
  await store.close()
  return seen
}

/** A write of nothing: it needs the lock, so it shows that nobody kept it. */
const touch = single(() => run(sql`update capacity set used = used where scope = 'nobody'`))

async function suffer(stage: Stage, fault: StoreFault, nth: number): Promise<void> {
  const database = await stage.template.copy()
  const sickness = probeOf(fault, nth)
  const store = await database.open({ clock: stage.clock, probe: sickness.probe })
  sickness.begin()
  const outcome = await outcomeOf(stage.act(store))
  sickness.end()
  const where = `${fault.title}, point ${nth}`
  if (fault.answer === 'done') expect(outcome, where).toEqual({ done: true, answer: stage.answer })
  else expect(outcome, where).toMatchObject({ done: false, error: { code: fault.answer, name: 'HoldfastError' } })

  const other = await database.open({ clock: stage.clock })
  if (isDeep) await assertInvariants(other)
  expect(await comparableSnapshot(other), where).toEqual(outcome.done ? stage.after : stage.before)
  await other.apply(touch)
  await other.close()
  await redoAndSettle(stage, store, outcome.done, nth === 1)
  await store.close()
}
