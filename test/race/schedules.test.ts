import { describe, expect, test } from 'vitest'

import { newMessageId, newRunId, newScheduleId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ScheduleId } from '../../src/base/ids.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { editSchedule, pauseSchedule, removeSchedule } from '../../src/schedule/edit.ts'
import { dueSchedules, fireAgain, fireSchedule, runNow } from '../../src/schedule/fire.ts'
import { listOccurrences } from '../../src/schedule/occurrence.ts'
import { DEFAULT_OPTIONS } from '../../src/schedule/schedule.ts'
import type { ScheduleOptions } from '../../src/schedule/schedule.ts'
import { integer, row } from '../../src/store/row.ts'
import { now, sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { one, run, single } from '../../src/store/transition.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { buryUntaken } from '../../src/threads/dead-letter.ts'
import { removeThread, reopenThread, stopThread } from '../../src/threads/remove.ts'
import { AGENT, START, ScheduleWorld, newIds } from '../schedule/support.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { engines } from '../support/engines.ts'
import { startProcess } from '../support/holdfast.ts'
import { assertInvariants, violations } from '../support/invariants.ts'
import { late } from '../support/late.ts'
import { printedChance } from '../support/seed.ts'
import type { Chance } from '../support/seed.ts'
import { twoProcesses } from '../support/two-processes.ts'

const FIRE_ALL = builtFixture(new URL('fixtures/fire-all.ts', import.meta.url))
const isDeep = process.env['HOLDFAST_DEEP'] === '1'
const OCCURRENCES = isDeep ? 10_000 : 400
const ROUNDS = isDeep ? 500 : 16
const MINUTE = 60_000
/** A firing has about as many statements. */
const MOST_LATE = 14
const postgres = engines.find(({ name }) => name === 'postgres')!

/** All at once: what is raced for is the firing, not the making. */
function* addMany(ids: readonly ScheduleId[]) {
  const rule = JSON.stringify({ kind: 'once', at: START + MINUTE })
  const target = JSON.stringify({ kind: 'command', argv: ['true'], cwd: '/' })
  const options = JSON.stringify(DEFAULT_OPTIONS)
  for (const id of ids)
    yield* run(sql`insert into schedules (id, name, kind, state, rule, target, options, made_by, next_at, next_fire_at, created_at, updated_at)
      values (${id}, ${id}, 'job', 'active', ${rule}, ${target}, ${options}, 'ada', ${START + MINUTE}, ${START + MINUTE}, ${now}, ${now})`)
}

/** What a daemon does that sees the same as the other one: how many of them it fired. */
async function fireAll(store: Store): Promise<number> {
  for (let fired = 0; ;) {
    const due = await store.read(dueSchedules, 128)
    if (due.length === 0) return fired
    const answers = await Promise.all(due.map(({ id, nextAt }) => store.apply(fireSchedule, id, nextAt, newIds())))
    fired += answers.filter(({ kind }) => kind === 'fired').length
  }
}

const countRow = row({ runs: integer, lines: integer, dispatched: integer })
const counts = single(() =>
  one(
    countRow,
    sql`select (select count(*) from runs) as runs, count(*) as lines, sum(case when state = 'dispatched' then 1 else 0 end) as dispatched
      from occurrences`,
  ),
)

test(`two workers race for ${OCCURRENCES} occurrences: none twice, none missing [schedule/every-firing-accounted]`, async () => {
  const { world, database } = await ScheduleWorld.openWith(postgres)
  const ids = Array.from({ length: OCCURRENCES }, () => newScheduleId(random))
  for (let from = 0; from < ids.length; from += 500) await world.store.apply(addMany, ids.slice(from, from + 500))
  world.clock.step(MINUTE)
  const rival = await database.open({ clock: world.clock })
  const [mine, theirs] = await Promise.all([fireAll(world.store), fireAll(rival)])
  expect(mine + theirs).toBe(OCCURRENCES)
  expect(await world.store.read(counts)).toEqual({ runs: OCCURRENCES, lines: OCCURRENCES, dispatched: OCCURRENCES })
}, 600_000)

test(`two processes race for ${OCCURRENCES / 2}: none twice, none missing`, async () => {
  const database = await postgres.database()
  const store = await database.open()
  const ids = Array.from({ length: OCCURRENCES / 2 }, () => newScheduleId(random))
  for (let from = 0; from < ids.length; from += 500) await store.apply(addMany, ids.slice(from, from + 500))
  const both = [1, 2].map(() => startProcess(process.execPath, [FIRE_ALL, database.url], {}).ended)
  const ended = await Promise.all(both)
  expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual([1, 2].map(() => ({ code: 0, stderr: '' })))
  expect(ended.reduce((sum, { stdout }) => sum + Number(stdout), 0)).toBe(ids.length)
  expect(await store.read(counts)).toEqual({ runs: ids.length, lines: ids.length, dispatched: ids.length })
}, 600_000)

type Deed = readonly [name: string, act: (store: Store, by: number) => Promise<unknown>]

const edit = { rule: { kind: 'every', everyMs: 2 * MINUTE, anchor: START } } as const
const away = { state: 'failed', code: 'model', error: 'away' } as const

/** A job whose first run is at work, whose second instant has come, and all that may happen to it in that moment. */
async function aMoment(world: ScheduleWorld, luck: Chance): Promise<{ id: ScheduleId; deeds: readonly Deed[] }> {
  const overlap = (['skip', 'queue', 'cancel'] as const)[luck.below(3)]!
  const stopped = (['hold', 'wake', 'drop'] as const)[luck.below(3)]!
  const misfire = luck.below(3) === 0 ? ({ policy: 'each', limit: 2 } as const) : ({ policy: 'once' } as const)
  const options: Partial<ScheduleOptions> = { overlap, stopped, misfire, deleteAfterRun: luck.below(5) === 0 }
  const { id } = await world.add({
    options,
    rule: { kind: 'every', everyMs: MINUTE, anchor: world.clock.now() + MINUTE },
  })
  await world.pass(MINUTE)
  // At work on it, about to take it, or still in the queue.
  const claim = [() => world.begin(), () => world.claim(), () => undefined][luck.below(3)]!()
  const [begun, queued] = [await claim, await world.store.read(listRuns, { states: ['queued'], limit: 1 })]
  if (begun === undefined && luck.below(2) === 0) await world.store.apply(stopThread, world.thread)
  world.clock.step(MINUTE * (1 + luck.below(3)))
  const { nextAt } = await world.reread(id)
  const fire: Deed = ['fire', (store, by) => store.apply(late(by, fireSchedule), id, nextAt ?? 0, newIds())]
  const letter = { messageId: newMessageId(random), runId: newRunId(random), threadId: world.thread, agent: AGENT }
  const possible: readonly Deed[] = [
    fire,
    ['edit', (store, by) => store.apply(late(by, editSchedule), id, edit, 'ada')],
    ['remove', (store, by) => store.apply(late(by, removeSchedule), id, 'ada', luck.below(2) === 0)],
    ['pause', (store, by) => store.apply(late(by, pauseSchedule), id, 'ada')],
    ['now', (store, by) => store.apply(late(by, runNow), id, 'k', 'ada', newIds())],
    ['stop', (store, by) => store.apply(late(by, stopThread), world.thread)],
    ['reopen', (store, by) => store.apply(late(by, reopenThread), world.thread)],
    ['remove thread', (store, by) => store.apply(late(by, removeThread), world.thread)],
    ['write', (store, by) => store.apply(late(by, sendMessage), { ...letter, text: 'x', key: `k${by}` })],
    ['cancel', (store, by) => store.apply(late(by, cancelRun), queued[0]?.id ?? ('none' as RunId), { by: 'ada' })],
    ['bury', (store, by) => store.apply(late(by, buryUntaken), 10)],
  ]
  const deeds = possible.slice(1).filter(() => luck.below(3) === 0)
  if (begun !== undefined) {
    const ref = { id: begun.attempt.id, runId: begun.run.id, fence: begun.run.fence }
    const end = luck.below(2) === 0 ? away : ({ state: 'succeeded' } as const)
    deeds.push(['end', (store, by) => store.apply(late(by, finishRun), ref, end)])
  }
  return { id, deeds: [fire, ...deeds] }
}

/** Once everything has happened, everything comes to its end: nothing waits for what never comes. */
async function settle(world: ScheduleWorld, id: ScheduleId): Promise<void> {
  await world.store.apply(pauseSchedule, id, 'ada')
  await world.store.apply(reopenThread, world.thread)
  for (let round = 0; round < 40; round += 1) {
    await world.store.apply(buryUntaken, 10)
    const fired = await world.pass(1_000)
    if ((await world.finishAny()) + fired === 0) break
  }
  const open = await world.store.read(listOccurrences, { scheduleId: id, states: ['due', 'dispatched'], limit: 10 })
  expect(open).toEqual([])
}

describe.each(engines)('on $name', (engine) => {
  test(`${ROUNDS} times a firing meets ends, edits, removals, pauses, stops and firings by hand, in one batch and in two processes: each instant has one line, and all come to their end [schedule/every-firing-accounted]`, async () => {
    const luck = printedChance(`schedules on ${engine.name}`)
    const { world: place, database } = await ScheduleWorld.openWith(engine)
    const rival = await database.open({ clock: place.clock })
    for (let round = 0; round < ROUNDS; round += 1) {
      const world = await ScheduleWorld.with(place.store, place.clock)
      const { id, deeds } = await aMoment(world, luck)
      const chosen = deeds.map(([name, act]) => ({ name, act, by: luck.below(MOST_LATE), there: luck.below(3) === 0 }))
      const what = `round ${round}: ${chosen.map(({ name, by, there }) => `${name}+${by}${there ? ' there' : ''}`).join(', ')}`
      await Promise.all(chosen.map(({ act, by, there }) => act(there ? rival : world.store, by)))
      expect(await violations(world.store), what).toEqual([])
      await settle(world, id).catch((error: unknown) => {
        throw new Error(`${what}: ${String(error)}`)
      })
      expect(await violations(world.store), what).toEqual([])
    }
  }, 600_000)

  test('two that fire the same instant, or the same retry, in one batch and in two processes: one does', async () => {
    const { world, database } = await ScheduleWorld.openWith(engine)
    const rival = await database.open({ clock: world.clock })
    const { id } = await world.add()
    world.clock.step(MINUTE)
    const both = (act: (store: Store) => Promise<{ kind: string }>) =>
      Promise.all([world.store, world.store, rival].map(async (store) => (await act(store)).kind))
    const fired = await both((store) => store.apply(fireSchedule, id, START + MINUTE, newIds()))
    expect(fired.toSorted()).toEqual(['fired', 'lost', 'lost'])
    await world.work(away)
    world.clock.step(200)
    const [line] = await world.lines(id)
    const again = await both((store) => store.apply(fireAgain, line!.id, newIds()))
    expect(again.toSorted()).toEqual(['fired', 'lost', 'lost'])
    expect(await world.lines(id)).toMatchObject([{ state: 'dispatched', attempts: 2 }])
    await assertInvariants(world.store)
  })
})

/** Both begin at once, in one batch; one of them some statements late, so that they meet at each of their statements. */
const MEETINGS: Readonly<Record<string, (world: ScheduleWorld) => Promise<(by: number) => Promise<unknown>>>> = {
  'its thread being opened again': async (world) => {
    await world.store.apply(stopThread, world.thread)
    return (by) => world.store.apply(late(by, reopenThread), world.thread)
  },
  'the failure of a run that has taken nothing': async (world) => {
    await world.write()
    const { attempt, run: begun } = (await world.claim())!
    const ref = { id: attempt.id, runId: begun.id, fence: begun.fence }
    return (by) => world.store.apply(late(by, finishRun), ref, away)
  },
}

test.each(Object.entries(MEETINGS))(
  'a firing meets %s at each of its statements: it is not forgotten',
  async (what, prepare) => {
    const place = await ScheduleWorld.open(postgres)
    for (let by = isDeep ? -MOST_LATE : 0; by <= (isDeep ? 2 * MOST_LATE : 10); by += isDeep ? 1 : 2) {
      const world = await ScheduleWorld.with(place.store, place.clock)
      const at = world.clock.now() + MINUTE
      const { id } = await world.add({ rule: { kind: 'once', at } })
      const meet = await prepare(world)
      world.clock.step(MINUTE)
      const fire = late(Math.max(-by, 0), fireSchedule)
      await Promise.all([world.store.apply(fire, id, at, newIds()), meet(Math.max(by, 0))])
      expect(await violations(world.store), `${what}, ${by} statements late`).toEqual([])
      await settle(world, id)
    }
  },
)

test('a thread that another process opens again while a firing finds it stopped: one waits for the other, and it fires [F7]', async () => {
  const { store, slow, stopped, go, endsOrWaits } = await twoProcesses(/update occurrences set waits = 'thread'/)
  const world = await ScheduleWorld.with(store, new FakeClock())
  const { id } = await world.add({ rule: { kind: 'once', at: START } })
  await store.apply(stopThread, world.thread)
  const firing = slow.apply(fireSchedule, id, START, newIds())
  await stopped
  const opening = store.apply(reopenThread, world.thread)
  await endsOrWaits(opening)
  go()
  await Promise.all([firing, opening])
  await assertInvariants(store)
  expect(await world.look()).toBe(1)
  expect(await world.states(id)).toEqual(['dispatched'])
})
