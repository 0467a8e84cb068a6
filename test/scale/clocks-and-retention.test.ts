import { describe, expect, test } from 'vitest'

import { systemRandomness as random } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { raw } from '../../src/store/sql.ts'
import { run, single } from '../../src/store/transition.ts'
import { ClockTrust } from '../../src/workers/history/clock-trust.ts'
import { Keeper } from '../../src/workers/history/keeper.ts'
import { doEach, oldJobs } from '../../src/workers/tend-inbox.ts'
import { succeeded } from '../crash/scenario.ts'
import { hurriedClock } from '../support/clocks.ts'
import { engines } from '../support/engines.ts'
import { DAY_MS, countOf, forget } from '../support/forgetting.ts'
import { assertInvariants } from '../support/invariants.ts'
import { addWorker, running } from '../support/world.ts'

const CUT_MS = 30 * DAY_MS

describe.each(engines)('the clock of $name', (engine) => {
  /** A store with a run that ended, by a clock that then goes ahead. */
  async function wrong() {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    const finish = async () => store.apply(finishRun, (await running(store)).ref, succeeded)
    for (let i = 0; i < 5; i++) await finish()
    clock.step(400 * DAY_MS)
    const warnings: string[] = []
    let monotonicMs = 0
    const keeping = { ...clock, monotonicMs: () => monotonicMs }
    const warn = (said: string) => void warnings.push(said)
    const open = () => ({
      keeper: new Keeper({ store, clock: keeping, random, warn, cut: { runsMs: CUT_MS } }),
      trust: new ClockTrust({ store, clock: keeping, warn }),
    })
    const left = async ({ keeper, trust } = open()) => {
      await keeper.look(trust)
      return countOf(store, 'runs')
    }
    return { clock, store, finish, warnings, open, left, pass: (ms: number) => void (monotonicMs += ms) }
  }

  test('that is suddenly far ahead has a day to be set right, however often its daemon is started', async () => {
    const { clock, store, finish, warnings, left } = await wrong()
    expect(await left()).toBe(5)
    await finish()
    for (let i = 0; i < 30; i++) await finish()
    expect(await left()).toBe(36)
    expect(warnings).toEqual([expect.stringContaining('by 400 days'), expect.stringContaining('by 400 days')])
    clock.step(-400 * DAY_MS)
    expect(await left()).toBe(36)
    expect(warnings).toHaveLength(2)
    await assertInvariants(store)
  })

  test('that was right is believed after a day: by what happened since, or by the daemon that waits', async () => {
    const { clock, finish, open, left, pass } = await wrong()
    const keeper = open()
    expect(await left(keeper)).toBe(5)
    pass(LIMITS.clockDoubtMs - 1)
    expect(await left(keeper)).toBe(5)
    pass(1 + LIMITS.forgetRestMs)
    expect(await left(keeper)).toBe(0)
    await finish()
    clock.step(400 * DAY_MS)
    await finish()
    expect(await left()).toBe(2)
    clock.step(LIMITS.clockDoubtMs)
    await finish()
    expect(await left()).toBe(2)
  })

  test('that goes ahead under a worker takes nothing with it: a mark that a call was made stays', async () => {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    const { ref } = await running(store)
    const mark = `insert into once_marks (scope, signature, action_id, ends_at) values ('everywhere', 's', 'act_1', ${clock.now()})`
    await store.apply(single(() => run(raw(mark))))
    const trust = new ClockTrust({ store, clock, warn: () => {} })
    const tend = () => doEach(oldJobs({ store, trust }), () => {})
    await tend()
    clock.step(400 * DAY_MS)
    await store.apply(finishRun, ref, succeeded)
    await tend()
    expect(await countOf(store, 'once_marks')).toBe(1)
    clock.step(2 * LIMITS.clockDoubtMs)
    await store.apply(finishRun, (await running(store)).ref, succeeded)
    await tend()
    expect(await countOf(store, 'once_marks')).toBe(0)
  })

  test('that is suddenly far ahead takes no message, no act and no worker with it either, and says of nobody that he stopped', async () => {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    const { ref, run: turn } = await running(store)
    await store.apply(finishRun, ref, succeeded)
    const [at, gone] = [clock.now(), await addWorker(store)]
    for (const statement of [
      `insert into messages (id, thread_id, generation, kind, key, state, body, created_at, settled_at, consumed_by_run)
        values ('m', '${turn.threadId}', 1, 'prompt', 'k', 'consumed', '{}', ${at}, ${at}, '${turn.id}')`,
      `insert into acts (id, at, call, by, via) values ('a', ${at}, 'runs.cancel', 'somebody', 'cli')`,
      `update workers set stopped_at = ${at} where id = '${gone}'`,
    ])
      await store.apply(single(() => run(raw(statement))))
    const tables = ['messages', 'acts', 'workers', 'workers where stopped_at is null']
    const left = () => Promise.all(tables.map((table) => countOf(store, table)))
    clock.step(2_000 * DAY_MS)
    const trust = new ClockTrust({ store, clock, warn: () => {} })
    const keeper = () => new Keeper({ store, clock, random, warn: () => {}, cut: { runsMs: CUT_MS } })
    await keeper().look(trust)
    expect(await left()).toEqual([1, 1, 2, 1])
    await keeper().look({ holds: async () => true })
    expect(await left()).toEqual([0, 0, 1, 0])
  })

  test('that was wrong once, and was set right, is believed at once', async () => {
    const { clock, finish, warnings, left } = await wrong()
    for (let i = 0; i < 10; i++) await finish()
    clock.step(-400 * DAY_MS)
    for (let i = 0; i < 3; i++) await finish()
    expect(await left()).toBe(18)
    clock.step(20 * DAY_MS)
    await finish()
    clock.step(20 * DAY_MS)
    expect(await left()).toBe(11)
    expect(warnings).toEqual([])
  })

  test('that was far behind when a run was ended does not make it older than the word that asked for it', async () => {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    const { ref } = await running(store)
    clock.step(-400 * DAY_MS)
    await store.apply(finishRun, ref, succeeded)
    clock.step(400 * DAY_MS)
    expect(await forget(store, CUT_MS)).toMatchObject({ runs: 0, held: 1 })
    clock.step(CUT_MS)
    expect(await forget(store, CUT_MS)).toMatchObject({ runs: 1, held: 0 })
  })
})
