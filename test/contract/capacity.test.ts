import { describe, expect, test } from 'vitest'

import type { RunId } from '../../src/base/ids.ts'
import { openBreakers } from '../../src/runs/breaker.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { usedSlots } from '../../src/runs/capacity.ts'
import type { Claim } from '../../src/runs/claim.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { Outcome } from '../../src/runs/finish.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants, snapshot } from '../support/invariants.ts'
import { addWorker, claim, reread, running, submit, submitted } from '../support/world.ts'

const authFailed: Outcome = { state: 'failed', code: 'auth', error: '401' }
const succeeded: Outcome = { state: 'succeeded' }
const refOf = ({ attempt, run }: Claim) => ({ id: attempt.id, runId: run.id, fence: run.fence })

describe.each(engines)('capacity on $name', (engine) => {
  const open = async () => (await engine.database()).open()

  test('first in, first out within a priority, higher priorities first', async () => {
    const store = await open()
    const order: RunId[] = []
    for (const priority of [0, 5, 0, 5, -1]) order.push((await submitted(store, { priority })).id)
    const workerId = await addWorker(store)
    const claimed: RunId[] = []
    for (let next = await claim(store, workerId); next !== undefined; next = await claim(store, workerId))
      claimed.push(next.run.id)
    expect(claimed).toEqual([order[1], order[3], order[0], order[2], order[4]])
  })

  test('slots in all and per agent bound what runs at once; a full agent does not hold up another', async () => {
    const store = await open()
    const limits = { total: 3, perAgent: { coder: 1 } }
    for (const agent of ['coder', 'coder', 'clerk', 'clerk', 'clerk']) await submitted(store, { agent })
    const workerId = await addWorker(store)
    const agents: (string | undefined)[] = []
    for (let i = 0; i < 5; i++) agents.push((await claim(store, workerId, limits))?.run.agent)
    expect(agents).toEqual(['coder', 'clerk', 'clerk', undefined, undefined])
    await assertInvariants(store)
  })

  test('two stores racing for the last slots never take more than there are', async () => {
    const database = await engine.database()
    const stores = [await database.open(), await database.open()]
    const workers = [await addWorker(stores[0]!), await addWorker(stores[1]!)]
    await Promise.all(Array.from({ length: 30 }, () => submitted(stores[0]!)))
    const limits = { total: 7 }
    const claims = await Promise.all(
      Array.from({ length: 30 }, (_, index) => claim(stores[index % 2]!, workers[index % 2]!, limits)),
    )
    expect(claims.filter((claimed) => claimed !== undefined)).toHaveLength(7)
    await assertInvariants(stores[0]!)
  })

  test('an attempt gives its own slot back, whatever the verdict, and only its own [T5]', async () => {
    const store = await open()
    const limits = { total: 2, eachAgent: 2 }
    const [won, other] = [await running(store, {}, limits), await running(store, {}, limits)]
    await store.apply(cancelRun, won.run.id, { by: 'tester' })
    expect(await store.read(usedSlots)).toMatchObject([{ used: 2 }, { used: 2 }])
    await store.apply(finishRun, won.ref, succeeded)
    await store.apply(finishRun, won.ref, succeeded)
    expect(await store.read(usedSlots)).toMatchObject([{ used: 1 }, { used: 1 }])
    expect((await reread(store, other.run.id)).state).toBe('running')
    await assertInvariants(store)
  })

  test('limits that change while runs are under way keep the count true', async () => {
    const store = await open()
    const unlimited = await running(store)
    const limited = await running(store, {}, { total: 1 })
    await store.apply(finishRun, unlimited.ref, succeeded)
    expect(await store.read(usedSlots)).toEqual([{ scope: 'total', used: 1 }])
    await store.apply(finishRun, limited.ref, succeeded)
    expect(await store.read(usedSlots)).toEqual([])
    await assertInvariants(store)
  })

  test('a full backlog refuses with its limit and stores nothing', async () => {
    const store = await open()
    await submitted(store, { backlogLimit: 2 })
    await submitted(store, { backlogLimit: 2 })
    const before = await snapshot(store)
    expect(await submit(store, { backlogLimit: 2 })).toEqual({ kind: 'backlog-full', limit: 2 })
    expect(await snapshot(store)).toEqual(before)
  })
})

describe.each(engines)('breakers on $name', (engine) => {
  const open = async () => {
    const clock = new FakeClock()
    return { clock, store: await (await engine.database()).open({ clock }) }
  }
  const fail = async (store: Store, count: number) => {
    for (let i = 0; i < count; i++)
      await store.apply(finishRun, (await running(store, { agent: 'helper' })).ref, authFailed)
  }
  const nextEnd = async (store: Store) => {
    const run = await submitted(store, { agent: 'helper' })
    const claimed = await claim(store, await addWorker(store), {}, run.id)
    return claimed === undefined ? await reread(store, run.id) : claimed
  }

  test('three authentication failures in a row open it; then runs fail fast, which counts for nothing [T6]', async () => {
    const { store } = await open()
    await fail(store, 3)
    expect(await store.read(openBreakers)).toMatchObject([{ agent: 'helper', cause: 'auth', failures: 3 }])
    expect(await nextEnd(store)).toMatchObject({ state: 'failed', code: 'circuit_open' })
    expect(await store.read(openBreakers)).toMatchObject([{ failures: 3, openings: 1 }])
    expect(
      await claim(store, await addWorker(store), {}, (await submitted(store, { agent: 'other' })).id),
    ).toBeDefined()
    await assertInvariants(store)
  })

  test('an authentication failure of a superseded or cancelled run counts for nothing [T6]', async () => {
    const { store } = await open()
    await fail(store, 2)
    const superseded = await running(store, { agent: 'helper' })
    await store.apply(finishRun, { ...superseded.ref, fence: 0 }, authFailed)
    const cancelled = await running(store, { agent: 'helper' })
    await store.apply(cancelRun, cancelled.run.id, { by: 'tester' })
    await store.apply(finishRun, cancelled.ref, authFailed)
    expect(await store.read(openBreakers)).toEqual([])
  })

  test('a won success resets it in the same transaction, a lost one does not [T2] [T4]', async () => {
    const { store } = await open()
    const [lost, won] = [await running(store, { agent: 'helper' }), await running(store, { agent: 'helper' })]
    await fail(store, 3)
    await store.apply(cancelRun, lost.run.id, { by: 'tester' })
    await store.apply(finishRun, lost.ref, succeeded)
    expect(await store.read(openBreakers)).toHaveLength(1)
    await store.apply(finishRun, won.ref, succeeded)
    expect(await store.read(openBreakers)).toEqual([])
  })

  test('when its time is over one probe goes through and holds its place until it ends', async () => {
    const { store, clock } = await open()
    await fail(store, 3)
    clock.advance(30_000)
    const probe = (await nextEnd(store)) as Claim
    expect(probe.run.state).toBe('running')
    clock.advance(600_000)
    expect(await nextEnd(store)).toMatchObject({ code: 'circuit_open' })
    await store.apply(finishRun, refOf(probe), { state: 'failed', code: 'exit', error: 'x' })
    const second = (await nextEnd(store)) as Claim
    await store.apply(finishRun, refOf(second), authFailed)
    expect(await store.read(openBreakers)).toMatchObject([{ openings: 2, openUntil: clock.now() + 60_000 }])
    await assertInvariants(store)
  })

  test('it opens for 30 s, doubling to 300 s', async () => {
    const { store, clock } = await open()
    await fail(store, 3)
    const durations: number[] = []
    for (let opening = 0; opening < 6; opening++) {
      const [breaker] = await store.read(openBreakers)
      durations.push(breaker!.openUntil! - clock.now())
      clock.advance(durations.at(-1)!)
      await store.apply(finishRun, refOf((await nextEnd(store)) as Claim), authFailed)
    }
    expect(durations).toEqual([30_000, 60_000, 120_000, 240_000, 300_000, 300_000])
  })
})
