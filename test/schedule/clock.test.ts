import { describe, expect, onTestFinished, test } from 'vitest'

import { systemRandomness as random } from '../../src/base/ids.ts'
import type { ScheduleId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { sql } from '../../src/store/sql.ts'
import { run } from '../../src/store/transition.ts'
import { Scheduler } from '../../src/workers/scheduler.ts'
import { engines } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { START, ScheduleWorld } from './support.ts'

const MINUTE = 60_000
const command = { kind: 'command', argv: ['true'], cwd: '/' } as const

function schedulerFor({ store, clock }: ScheduleWorld): { scheduler: Scheduler; warnings: string[] } {
  const warnings: string[] = []
  const scheduler = new Scheduler({ store, clock, random, warn: (message) => void warnings.push(message) })
  onTestFinished(() => scheduler.stop())
  return { scheduler, warnings }
}

const hasLines = (world: ScheduleWorld, id: ScheduleId, count: number) =>
  until(`${count} lines`, async () => {
    // A timer that is due at once, too.
    world.clock.advance(0)
    const lines = await world.lines(id)
    return lines.length >= count ? lines : undefined
  })

function* corrupt(id: ScheduleId, rule: string | null, target: string | null) {
  yield* run(
    sql`update schedules set rule = coalesce(${rule}, rule), target = coalesce(${target}, target) where id = ${id}`,
  )
}

describe.each(engines)('the clock, on $name', (engine) => {
  test('set back: nothing fires again, nothing fires early, and it goes on where it was', async () => {
    const world = await ScheduleWorld.open(engine)
    const { id } = await world.add({ target: command })
    expect(await world.pass(3 * MINUTE)).toBe(1)
    await world.finishAny()
    world.clock.step(-2 * MINUTE)
    for (let n = 0; n < 5; n += 1) expect(await world.pass(30_000)).toBe(0)
    expect(await world.reread(id)).toMatchObject({ nextAt: START + 4 * MINUTE })
    expect(await world.pass(29_999)).toBe(0)
    expect(await world.lines(id)).toHaveLength(2)
    expect(await world.pass(1)).toBe(1)
    expect((await world.lines(id)).map(({ dueAt }) => (dueAt - START) / MINUTE)).toEqual([1, 3, 4])
    await assertInvariants(world.store)
  })

  test('set forward by a year: what is now due follows its misfire policy, without a burst, and every keeps its spacing', async () => {
    const world = await ScheduleWorld.open(engine)
    const year = 365 * 86_400_000
    const jobs = await Promise.all(
      [{ policy: 'once' } as const, { policy: 'skip' } as const, { policy: 'each', limit: 3 } as const].map((misfire) =>
        world.add({ target: command, options: { misfire, graceMs: 1_000 } }),
      ),
    )
    await world.pass(year + 10_000)
    const lines = await Promise.all(jobs.map(({ id }) => world.states(id)))
    expect(lines).toEqual([['skipped', 'dispatched'], ['skipped'], ['skipped', 'dispatched', 'due', 'due']])
    for (const { id } of jobs) {
      expect((await world.reread(id)).nextAt).toBe(START + year + MINUTE)
      const all = (await world.lines(id)).reduce((sum, { instants }) => sum + instants, 0)
      expect(all).toBe(year / MINUTE)
    }
    await assertInvariants(world.store)
  })
})

test('one timer is enough: each instant is acted on when it comes, and a schedule that is added comes in time', async () => {
  const world = await ScheduleWorld.open(engines[0]!)
  const { scheduler } = schedulerFor(world)
  await scheduler.look()
  const { id } = await world.add({ target: command, rule: { kind: 'every', everyMs: 7_000, anchor: START + 7_000 } })
  // What was just stored is looked at a moment later; only then does time pass here.
  world.clock.advance(LIMITS.scheduleLookMs)
  await scheduler.look()
  for (let n = 1; n <= 3; n += 1) {
    world.clock.advance(n === 1 ? 7_000 - LIMITS.scheduleLookMs : 7_000)
    const lines = await hasLines(world, id, n)
    expect(lines.at(-1)).toMatchObject({ dueAt: START + n * 7_000, lateMs: 0 })
    await scheduler.look()
    await world.finishAny()
  }
})

test('one that retries, and ones that cannot be carried out at all, delay no other [F6]', async () => {
  const world = await ScheduleWorld.open(engines[0]!)
  const { scheduler, warnings } = schedulerFor(world)
  const retries = await world.add({ rule: { kind: 'once', at: START + 1_000 } })
  const [noTarget, noRule] = [await world.add({ target: command }), await world.add({ target: command })]
  await world.store.apply(corrupt, noTarget.id, null, 'null')
  await world.store.apply(corrupt, noRule.id, '{"kind":"cron","expression":"nonsense","zone":"UTC"}', null)
  const others = await Promise.all(
    [1_000, 1_100, 1_200, MINUTE].map((ms) => world.add({ target: command, rule: { kind: 'once', at: START + ms } })),
  )
  for (const ms of [1_000, 100, 100, MINUTE - 1_200]) {
    world.clock.step(ms)
    await scheduler.look()
    if (ms !== 1_000) continue
    // Two were fired by one commit: which of them is first there is nobody's promise.
    const begun = [await world.begin(), await world.begin()].find((claim) => claim?.run.request.kind === 'agent')
    await world.end(begun!, { state: 'failed', code: 'model', error: 'away' })
  }
  for (const { id } of others) expect(await world.lines(id)).toMatchObject([{ lateMs: 0, attempts: 1 }])
  expect(await world.lines(retries.id)).toMatchObject([{ state: 'dispatched', attempts: 2 }])
  expect(await world.lines(noTarget.id)).toMatchObject([
    { state: 'dropped', reason: expect.stringContaining('carried out') },
  ])
  expect(await world.reread(noTarget.id)).toMatchObject({ state: 'active', nextAt: START + 2 * MINUTE })
  expect(await world.lines(noRule.id)).toMatchObject([
    { state: 'dropped', reason: expect.stringContaining('carried out') },
  ])
  expect(await world.reread(noRule.id)).toMatchObject({ state: 'ended' })
  expect(warnings).toHaveLength(2)
  await assertInvariants(world.store)
})
