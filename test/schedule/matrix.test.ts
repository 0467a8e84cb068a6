import { describe, expect, test } from 'vitest'

import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ScheduleId } from '../../src/base/ids.ts'
import type { Claim } from '../../src/runs/claim.ts'
import type { Outcome } from '../../src/runs/finish.ts'
import { parkRun, resumeRun } from '../../src/runs/park.ts'
import { heldAttempts, takeOverRun } from '../../src/runs/recover.ts'
import { dueSchedules, fireSchedule } from '../../src/schedule/fire.ts'
import type { Rule } from '../../src/schedule/rule.ts'
import { mortal } from '../../src/testing/faults.ts'
import { consumeMessages } from '../../src/threads/consume.ts'
import { pendingMessages } from '../../src/threads/message.ts'
import { removeThread, reopenThread, stopThread } from '../../src/threads/remove.ts'
import { engines } from '../support/engines.ts'
import type { TestDatabase, TestEngine } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LEASE_MS } from '../support/world.ts'
import { START, ScheduleWorld, newIds } from './support.ts'

const MINUTE = 60_000
const FIRST = START + MINUTE
const isDeep = process.env['HOLDFAST_DEEP'] === '1'
/**
 * Each death on PostgreSQL is a new connection: a normal run takes every fifth case there, and every seventh point of it; on SQLite
 * every case and every third point, beginning at another one each. The deep run takes all.
 */
const STRIDE = isDeep ? { sqlite: 1, postgres: 1 } : { sqlite: 3, postgres: 7 }
const SHARE = isDeep ? { sqlite: 1, postgres: 1 } : { sqlite: 1, postgres: 5 }

const RULES: Readonly<Record<string, Rule>> = {
  once: { kind: 'once', at: FIRST },
  every: { kind: 'every', everyMs: MINUTE, anchor: FIRST },
  cron: { kind: 'cron', expression: '* * * * *', zone: 'UTC' },
}

const away: Outcome = { state: 'failed', code: 'model', error: 'away' }

interface Stage {
  readonly world: ScheduleWorld
  readonly database: TestDatabase
  readonly id: ScheduleId
  /** How a run of it is begun: as any, or by a worker that is killed and another one that takes over. */
  readonly begin: () => Promise<Claim>
}

interface TargetCase {
  readonly before?: (world: ScheduleWorld) => Promise<unknown>
  /** From the dispatch to the end. */
  readonly act: (stage: Stage) => Promise<unknown>
  readonly ends: Readonly<Record<string, unknown>>
}

async function retryAfter({ world, begin }: Stage, waitMs: number): Promise<void> {
  await world.end(await begin(), away)
  expect(await world.pass(waitMs - 1)).toBe(0)
  expect(await world.pass(1)).toBe(1)
}

const succeed = async ({ world, begin }: Stage) => world.end(await begin(), { state: 'succeeded' })

async function takeInbox({ store }: ScheduleWorld, { run }: Claim): Promise<void> {
  const ids = (await store.read(pendingMessages, run.threadId, 10)).map(({ id }) => id)
  await store.apply(consumeMessages, ids, run.id, run.threadId)
}

let busy: Claim | undefined

const TARGETS: Readonly<Record<string, TargetCase>> = {
  'is fine': { act: succeed, ends: { state: 'succeeded', attempts: 1 } },
  'fails once': {
    act: async (stage) => {
      await retryAfter(stage, 200)
      await succeed(stage)
    },
    ends: { state: 'succeeded', attempts: 2 },
  },
  'always fails': {
    act: async (stage) => {
      for (const waitMs of [200, 400, 800]) await retryAfter(stage, waitMs)
      await stage.world.end(await stage.begin(), away)
    },
    ends: { state: 'dropped', attempts: 4, reason: 'model: away (after 4 attempts)' },
  },
  'is removed': {
    before: (world) => world.store.apply(removeThread, world.thread),
    act: () => Promise.resolve(),
    ends: { state: 'dropped', attempts: 1, reason: expect.stringContaining('was removed') },
  },
  'is stopped': {
    before: (world) => world.store.apply(stopThread, world.thread),
    act: async (stage) => {
      const { world, id } = stage
      expect((await world.lines(id)).at(-1)).toMatchObject({ state: 'due', waits: 'thread', attempts: 0 })
      await world.store.apply(reopenThread, world.thread)
      expect(await world.look()).toBe(1)
      await succeed(stage)
    },
    ends: { state: 'succeeded', attempts: 1 },
  },
  'is busy': {
    before: async (world) => {
      await world.write()
      busy = await world.begin()
    },
    act: async ({ world, id }) => {
      expect(await world.begin()).toBeUndefined()
      await takeInbox(world, busy!)
      expect((await world.lines(id)).at(-1)).toMatchObject({ state: 'dispatched', runId: busy!.run.id })
      await world.end(busy!, { state: 'succeeded' })
    },
    ends: { state: 'succeeded', attempts: 1 },
  },
  'needs approval': {
    act: async ({ world, id, begin }) => {
      const { run, attempt } = await begin()
      await world.store.apply(parkRun, { id: attempt.id, runId: run.id, fence: run.fence }, 'a person')
      expect((await world.lines(id)).at(-1)).toMatchObject({ state: 'dispatched', runId: run.id })
      await world.store.apply(resumeRun, run.id)
      await world.end((await world.begin())!, { state: 'succeeded' })
    },
    ends: { state: 'succeeded', attempts: 1 },
  },
}

const DAEMONS: Readonly<Record<string, { readonly downMs: number; readonly dies: boolean; readonly killed: boolean }>> =
  {
    'is up': { downMs: 0, dies: false, killed: false },
    'is down across the due time': { downMs: 2.5 * MINUTE, dies: false, killed: false },
    'is killed at each statement from the claim to the dispatch': { downMs: 0, dies: true, killed: false },
    'is killed after the dispatch': { downMs: 0, dies: false, killed: true },
  }

/** Dies in the firing at the first point, then at the next one, until it has happened. */
async function dieWhileFiring({ world, database }: Omit<Stage, 'begin'>, engine: TestEngine, from: number) {
  for (let nth = 1 + (from % STRIDE[engine.name]); ; nth += STRIDE[engine.name]) {
    const [due] = await world.store.read(dueSchedules, 1)
    if (due === undefined) return
    const death = mortal()
    const store = await database.open({ clock: world.clock, probe: death.probe })
    death.arm(nth)
    await store.apply(fireSchedule, due.id, due.nextAt, newIds()).catch(() => undefined)
    if (!death.died()) death.disarm()
    await store.close()
    await assertInvariants(world.store)
  }
}

/** The worker that began it is killed; another one takes over. */
async function beginAndDie(world: ScheduleWorld): Promise<Claim> {
  const begun = await world.begin()
  const held = (await world.store.read(heldAttempts)).find(({ id }) => id === begun?.attempt.id)
  if (held === undefined) throw new Error('nothing was begun')
  const taker = { workerId: world.worker, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
  const taken = await world.store.apply(takeOverRun, held, 'owner-dead', taker)
  if (taken === undefined) throw new Error('not taken over')
  return taken
}

const CASES = Object.keys(TARGETS).flatMap((target) =>
  Object.keys(RULES).flatMap((rule) => Object.keys(DAEMONS).map((daemon) => ({ target, rule, daemon }))),
)
const casesOn = ({ name }: TestEngine) =>
  CASES.map((each, index) => ({ ...each, index })).filter(({ index }) => index % SHARE[name] === 0)

describe.each(engines)('on $name', (engine) => {
  test.each(casesOn(engine))(
    'the target $target, $rule, the daemon $daemon: the promised attempts, one terminal line, nothing again [schedule/every-firing-accounted]',
    async ({ target, rule, daemon, index }) => {
      const { downMs, dies, killed } = DAEMONS[daemon]!
      const { before, act, ends } = TARGETS[target]!
      const { world, database } = await ScheduleWorld.openWith(engine)
      await before?.(world)
      const { id } = await world.add({ rule: RULES[rule]! })
      world.clock.step(MINUTE + downMs)
      if (dies) await dieWhileFiring({ world, database, id }, engine, index)
      else expect(await world.look()).toBe(1)
      const begin = killed ? () => beginAndDie(world) : async () => (await world.begin())!
      await act({ world, database, id, begin })
      await accountedFor(world, id, rule, downMs, ends)
    },
  )
})

async function accountedFor(world: ScheduleWorld, id: ScheduleId, rule: string, downMs: number, ends: object) {
  const missed = rule === 'once' || downMs === 0 ? 0 : Math.floor(downMs / MINUTE)
  const lines = await world.lines(id)
  const passed = { state: 'skipped', dueAt: FIRST, instants: missed, attempts: 0 }
  const dueAt = FIRST + missed * MINUTE
  const origin = rule === 'once' && downMs > 0 ? 'catch_up' : 'due'
  expect(lines).toMatchObject([...(missed > 0 ? [passed] : []), { dueAt, origin, ...ends }])
  const settled = await world.events('occurrence.settled', id)
  expect(settled.map((data) => data['dueAt'])).toEqual(lines.map((line) => line.dueAt))
  expect(await world.look()).toBe(0)
  const { state, nextAt } = await world.reread(id)
  expect([state, nextAt]).toEqual(rule === 'once' ? ['ended', null] : ['active', dueAt + MINUTE])
  await assertInvariants(world.store)
  if (rule !== 'once') return
  expect(await world.pass(366 * 86_400_000)).toBe(0)
  expect(await world.lines(id)).toHaveLength(1)
}
